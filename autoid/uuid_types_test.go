package autoid_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The types below are ids of which the driver stores nothing.
type (
	roomID     struct{ value uuid.UUID }
	prefixedID struct {
		prefix string
		value  uuid.UUID
	}
	maybeID struct {
		known bool
		value uuid.UUID
	}
	withID[T any] struct {
		Name string
		ID   T `bson:"_id,omitempty"`
	}
	keepsID[T any] struct {
		ID T `bson:"_id"`
	}
)

// TestRegisteredIDs tests that types which are registered in each way are ids: of a source and of a document, where a zero
// one is missing.
func TestRegisteredIDs(t *testing.T) {
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, plans := range []bool{true, false} {
		b := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).RegisterUUIDType(reflect.TypeFor[roomID]()).RegisterNullUUIDType(reflect.TypeFor[maybeID]())
		bsoncodec.RegisterUUIDFunc(b, func(p prefixedID) (uuid.UUID, bool) { return p.value, p.prefix != "" },
			func(id uuid.UUID, ok bool) (prefixedID, error) { return prefixedID{"room", id}, nil })
		if !plans {
			b.WithoutPlans()
		}
		reg, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		autoid.Register(reg)
		wantRegisteredID(t, reg, u, roomID{u})
		wantRegisteredID(t, reg, u, prefixedID{"room", u})
		wantRegisteredID(t, reg, u, maybeID{true, u})
	}
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	autoid.Register(reg)
	var refused *bsoncodec.UnregisteredTypeError
	for _, doc := range []any{withID[roomID]{ID: roomID{u}}, bson.M{"_id": prefixedID{"room", u}}} {
		if got, err := encodeRegistered(reg, autoid.SourceFunc(func() (any, error) { return u, nil }), doc); !errors.As(err, &refused) {
			t.Errorf("%T: got %v, %v", doc, got, err)
		}
	}
	if got, err := encodeRegistered(reg, autoid.SourceFunc(func() (any, error) { return roomID{u}, nil }), bson.M{}); !errors.As(err, &refused) {
		t.Errorf("of a source: got %v, %v", got, err)
	}
}

func wantRegisteredID[T any](t *testing.T, reg *bson.Registry, u uuid.UUID, id T) {
	t.Helper()
	want, err := uuidrep.NewBinaryWithRepresentation(u, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	plain := autoid.SourceFunc(func() (any, error) { return u, nil })
	own := autoid.SourceFunc(func() (any, error) { return id, nil })
	none := autoid.SourceFunc(func() (any, error) { return nil, errors.New("asked") })
	for _, c := range []struct {
		src autoid.Source
		doc any
	}{
		{plain, withID[T]{}}, {own, withID[T]{}}, {own, &withID[*T]{}}, {plain, bson.M{}}, {own, bson.D{{Key: "a", Value: 1}}}, {own, withID[uuid.UUID]{}},
		{none, withID[T]{ID: id}}, {none, withID[*T]{ID: &id}}, {none, bson.D{{Key: "_id", Value: id}}}, {none, bson.M{"_id": &id}}, {none, keepsID[T]{id}},
	} {
		raw, err := encodeRegistered(reg, c.src, c.doc)
		if err != nil {
			t.Errorf("%T: %v", c.doc, err)
			continue
		}
		subtype, octets, ok := raw.Lookup("_id").BinaryOK()
		if !ok || subtype != want.Subtype || !bytes.Equal(octets, want.Data) {
			t.Errorf("%T: got %v", c.doc, raw)
		}
		var back keepsID[T]
		if err := bsoncodec.Unmarshal(reg, raw, &back); err != nil || !reflect.DeepEqual(back.ID, id) {
			t.Errorf("%T: got %v, %v", c.doc, back, err)
		}
	}
	for _, doc := range []any{keepsID[T]{}, bson.M{"_id": *new(T)}, bson.D{{Key: "_id", Value: new(T)}}} {
		if raw, err := encodeRegistered(reg, none, doc); !errors.Is(err, autoid.ErrZeroID) {
			t.Errorf("%T: got %v, %v", doc, raw, err)
		}
	}
}

func encodeRegistered(reg *bson.Registry, src autoid.Source, doc any) (bson.Raw, error) {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	err := enc.Encode(autoid.Document(src, doc))
	return buf.Bytes(), err
}
