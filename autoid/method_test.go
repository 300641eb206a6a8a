package autoid

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
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

// WholeMarshaler has MarshalBSON, and is embedded.
type WholeMarshaler struct{ N int32 }

// MarshalBSON encodes the fields.
func (m WholeMarshaler) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "n", Value: m.N}})
}

type embedsWhole struct {
	WholeMarshaler `bson:"d"`
	Name           string
}

// A document of a type that is registered as one has all its fields, those beside the embedded one, too.
func TestDocumentTypesOfWholeDocuments(t *testing.T) {
	b := bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterDocumentType(reflect.TypeFor[embedsWhole]())
	reg, err := b.With(Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	want := marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "d", Value: bson.D{{Key: "n", Value: int32(7)}}}, {Key: "name", Value: "x"}})
	doc := embedsWhole{WholeMarshaler{7}, "x"}
	for _, v := range []any{doc, &doc} {
		got, err := encode(reg, Document(new(counter), v))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T: got %s, %v; want %s", v, hex(got), err, hex(want))
		}
	}
}
