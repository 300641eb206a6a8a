package autoid

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
)

// embedsMarshaler has the MarshalBSON of what it embeds, which does not know Name.
type embedsMarshaler struct {
	marshaler
	Name string
}

// The driver calls MarshalBSON of a whole document without asking the registry. A wrapped collection asks it.
func TestMethodsOfWholeDocuments(t *testing.T) {
	_, plain, started := upsertServer(t)
	c := Wrap(plain, new(counter))
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	named := d("name", "x")
	sets := d("$set", d("u", uuid.New()))
	for name, do := range map[string]func() error{
		"insert": func() error {
			_, err := c.InsertOne(context.Background(), embedsMarshaler{marshaler{named}, "y"})
			return err
		},
		"insert subtype 0": func() error { _, err := c.InsertOne(context.Background(), marshaler{d("u", uuid.New())}); return err },
		"filter": func() error {
			return updateMethods(true)[0].do(c, embedsMarshaler{marshaler{named}, "y"}, d("$set", named))
		},
		"update": func() error {
			return updateMethods(true)[0].do(c, named, embedsMarshaler{marshaler{d("$set", named)}, "y"})
		},
		"update subtype 0":       func() error { return updateMethods(true)[0].do(c, named, marshaler{sets}) },
		"update value subtype 0": func() error { return updateMethods(true)[0].do(c, named, valueMarshaler{sets}) },
	} {
		before := len(started())
		var e *bsoncodec.UnregisteredTypeError
		if err := do(); !errors.As(err, &e) || len(started()) != before {
			t.Errorf("%s: got %v and %d commands", name, err, len(started())-before)
		}
	}
	if err := updateMethods(true)[0].do(c, named, valueMarshaler{d("$set", bson.D{{Key: "b", Value: []byte("0123456789abcdef")}})}); err != nil {
		t.Error(err)
	}
}
