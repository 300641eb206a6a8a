package autoid

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// zeroed is a type whose IsZero method reports true for 9 only.
type zeroed int32

func (z zeroed) IsZero() bool { return z == 9 }

type inlineBase struct {
	ID uuid.UUID `bson:"_id,omitempty"`
}

// Structs that resemble a UUID that can be null.
type (
	numberOrNot struct {
		N     int
		Valid bool
	}
	octetsOrNot struct {
		N     [8]byte
		Valid bool
	}
	numbersOrNot struct {
		N     [16]int16
		Valid bool
	}
	uuidAndCount struct {
		U uuid.UUID
		N int
	}
	omittedID[T any] struct {
		ID T `bson:"_id,omitempty"`
	}
)

// TestZeroArray tests that a zero array is a missing id if its tag has omitempty. The driver itself
// does not apply omitempty to arrays.
func TestZeroArray(t *testing.T) {
	type first struct {
		ID   uuid.UUID `bson:"_id,omitempty"`
		Name string    `bson:"name"`
	}
	type late struct {
		Name string    `bson:"name"`
		ID   uuid.UUID `bson:"_id,omitempty"`
		Age  int32     `bson:"age"`
	}
	type inline struct {
		Name string     `bson:"name"`
		Base inlineBase `bson:",inline"`
	}
	type inlinePointer struct {
		Base *inlineBase `bson:",inline"`
		Name string      `bson:"name"`
	}
	type inlineMap struct {
		ID   uuid.UUID `bson:"_id,omitempty"`
		Rest bson.M    `bson:",inline"`
	}
	type kept struct {
		ID   uuid.UUID `bson:"_id"`
		Name string    `bson:"name"`
	}
	type pointer struct {
		ID *uuid.UUID `bson:"_id,omitempty"`
	}
	id := uuid.UUID{1}
	name := bson.E{Key: "name", Value: "Ada"}
	one := bson.E{Key: "_id", Value: int32(1)}
	for _, c := range []struct {
		doc  any
		want bson.D
	}{
		{first{Name: "Ada"}, bson.D{one, name}},
		{&first{Name: "Ada"}, bson.D{one, name}},
		{first{ID: id, Name: "Ada"}, bson.D{{Key: "_id", Value: id}, name}},
		{late{Name: "Ada", Age: 36}, bson.D{one, name, {Key: "age", Value: int32(36)}}},
		{late{Name: "Ada", ID: id}, bson.D{name, {Key: "_id", Value: id}, {Key: "age", Value: int32(0)}}},
		{inline{Name: "Ada"}, bson.D{one, name}},
		{inlinePointer{Name: "Ada"}, bson.D{one, name}},
		{inlinePointer{Name: "Ada", Base: &inlineBase{}}, bson.D{one, name}},
		{inlinePointer{Name: "Ada", Base: &inlineBase{id}}, bson.D{{Key: "_id", Value: id}, name}},
		{inlineMap{Rest: bson.M{"name": "Ada"}}, bson.D{one, name}},
		{inlineMap{ID: id, Rest: bson.M{"name": "Ada"}}, bson.D{{Key: "_id", Value: id}, name}},
		{kept{Name: "Ada"}, bson.D{{Key: "_id", Value: uuid.Nil}, name}},
		{omittedID[[4]byte]{}, bson.D{one}},
		{omittedID[[4]byte]{[4]byte{3: 1}}, bson.D{{Key: "_id", Value: [4]byte{3: 1}}}},
		// A pointer to a struct that is not a UUID that can be null is written by the driver.
		{omittedID[*numberOrNot]{new(numberOrNot)}, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: 0}, {Key: "valid", Value: false}}}}},
		{omittedID[*octetsOrNot]{new(octetsOrNot)}, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: [8]byte{}}, {Key: "valid", Value: false}}}}},
		{omittedID[*numbersOrNot]{new(numbersOrNot)}, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: [16]int16{}}, {Key: "valid", Value: false}}}}},
		{omittedID[*uuidAndCount]{new(uuidAndCount)}, bson.D{{Key: "_id", Value: bson.D{{Key: "u", Value: uuid.Nil}, {Key: "n", Value: 0}}}}},
		{omittedID[*uuid.NullUUID]{new(uuid.NullUUID)}, bson.D{one}},
		{pointer{}, bson.D{one}},
		{pointer{new(uuid.UUID)}, bson.D{one}},
	} {
		wantEncoded(t, c.doc, c.want, WithZeroIDs())
	}
}

func wantEncoded(t *testing.T, doc any, want bson.D, opts ...Option) {
	t.Helper()
	got, err := encode(registered(), Document(&counter{}, doc, append(opts, WithMisfitIDs())...))
	if err != nil {
		t.Errorf("%#v: %v", doc, err)
		return
	}
	if b := marshal(t, want); !bytes.Equal(got, b) {
		t.Errorf("%#v:\ngot  %s\nwant %s", doc, hex(got), hex(b))
	}
}

// With ZeroIDAsMissing a zero _id is replaced by an id of the source, in every kind of document.
func TestZeroIDAsMissing(t *testing.T) {
	type object struct {
		Name string        `bson:"name"`
		ID   bson.ObjectID `bson:"_id"`
	}
	type pointer struct {
		ID *uuid.UUID `bson:"_id"`
	}
	type composite struct {
		ID struct {
			Shop, Number int32
			Tags         []string
			Map          map[string]any
		} `bson:"_id"`
		Name string `bson:"name"`
	}
	type own struct {
		ID zeroed `bson:"_id"`
	}
	type jsonTag struct {
		ID int32 `json:"_id"`
	}
	raw := func(id any) bson.Raw { return marshal(t, bson.D{{Key: "_id", Value: id}}) }
	name := bson.E{Key: "name", Value: "Ada"}
	one := bson.E{Key: "_id", Value: int32(1)}
	oid := bson.ObjectID{1}
	for _, c := range []struct {
		doc  any
		want bson.D
	}{
		{object{Name: "Ada"}, bson.D{one, name}},
		{object{Name: "Ada", ID: oid}, bson.D{name, {Key: "_id", Value: oid}}},
		{pointer{}, bson.D{one}},
		{pointer{new(uuid.UUID)}, bson.D{one}},
		{pointer{&uuid.UUID{1}}, bson.D{{Key: "_id", Value: uuid.UUID{1}}}},
		{composite{Name: "Ada"}, bson.D{one, name}},
		{own{9}, bson.D{one}},
		{own{0}, bson.D{{Key: "_id", Value: int32(0)}}},
		{jsonTag{}, bson.D{one, {Key: "id", Value: int32(0)}}},
		{bson.M{"_id": uuid.Nil}, bson.D{one}},
		{bson.M{"_id": nil}, bson.D{one}},
		{bson.M{"_id": new(int)}, bson.D{one}},
		{bson.M{"_id": int32(7)}, bson.D{{Key: "_id", Value: int32(7)}}},
		{bson.D{name, {Key: "_id", Value: ""}}, bson.D{one, name}},
		{bson.D{name, {Key: "_id", Value: "x"}}, bson.D{name, {Key: "_id", Value: "x"}}},
		{map[string]string{"_id": ""}, bson.D{one}},
		// A second _id is not lost. Servers refuse it.
		{bson.D{{Key: "_id", Value: nil}, name, {Key: "_id", Value: "x"}}, bson.D{one, name, {Key: "_id", Value: "x"}}},
		{marshal(t, bson.D{{Key: "_id", Value: nil}, name, {Key: "_id", Value: "x"}}), bson.D{one, name, {Key: "_id", Value: "x"}}},
		{raw(nil), bson.D{one}},
		{raw(""), bson.D{one}},
		{raw(0), bson.D{one}},
		{raw(0.0), bson.D{one}},
		{raw(false), bson.D{one}},
		{raw(bson.NilObjectID), bson.D{one}},
		{raw(bson.Binary{Subtype: 4, Data: make([]byte, 16)}), bson.D{one}},
		{raw(bson.Binary{Subtype: 2, Data: make([]byte, 3)}), bson.D{one}},
		{raw(bson.Binary{}), bson.D{one}},
		{raw("x"), bson.D{{Key: "_id", Value: "x"}}},
		{raw(bson.D{}), bson.D{{Key: "_id", Value: bson.D{}}}},
		{raw(bson.Binary{Subtype: 4, Data: []byte{1}}), bson.D{{Key: "_id", Value: bson.Binary{Subtype: 4, Data: []byte{1}}}}},
		{marshaler{bson.D{{Key: "_id", Value: 0}}}, bson.D{one}},
		{[]byte(raw(nil)), bson.D{one}},
	} {
		wantEncoded(t, c.doc, c.want, WithZeroIDAsMissing())
	}
	// A value of every kind can be omitted.
	for _, id := range []any{
		[0]int{}, []int(nil), bson.D(nil), bson.A{}, bson.Regex{}, bson.DateTime(0), bson.Timestamp{}, bson.Decimal128{},
		bson.DBPointer{}, bson.JavaScript(""), bson.Symbol(""), bson.Binary{}, int64(0), struct{ A, B any }{},
	} {
		got, err := encode(registered(), Document(&counter{}, bson.D{{Key: "_id", Value: id}, name}, WithZeroIDAsMissing()))
		want := marshal(t, bson.D{one, name})
		if a, ok := id.(bson.A); ok && a != nil {
			want = marshal(t, bson.D{{Key: "_id", Value: id}, name}) // empty but not nil, so it is not zero
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%#v: %s, %v", id, hex(got), err)
		}
	}
}

// TestZeroIDTwice tests that a document keeps its id when it is encoded again, and that the value
// of the caller does not change.
func TestZeroIDTwice(t *testing.T) {
	doc := inlineBase{}
	var src counter
	d := Document(&src, &doc, WithMisfitIDs())
	for range 3 {
		if got, err := encode(registered(), d); err != nil || !bytes.Equal(got, marshal(t, bson.D{{Key: "_id", Value: int32(1)}})) {
			t.Errorf("%s, %v", hex(got), err)
		}
	}
	if doc != (inlineBase{}) || src.drawn() != 1 {
		t.Errorf("%v, %d ids", doc, src.drawn())
	}
}

// A nil Option of Document, and one that it cannot obey, are an *IDError.
func TestDocumentOptionErrors(t *testing.T) {
	for _, opts := range [][]Option{{nil}, {WithZeroIDAsMissing(), nil}, {WithWriteBack()}} {
		_, err := encode(registered(), Document(&counter{}, bson.D{}, opts...))
		var failed *IDError
		if !errors.As(err, &failed) || failed.Index != -1 || !strings.Contains(err.Error(), "autoid: ") {
			t.Errorf("%v", err)
		}
	}
}

// TestZeroIDWithUUIDCodecs tests that an _id that counts as missing is replaced in documents that
// the codecs of package bsoncodec write as a whole.
func TestZeroIDWithUUIDCodecs(t *testing.T) {
	type late struct {
		Name string    `bson:"name"`
		ID   uuid.UUID `bson:"_id,omitempty"`
		Age  int32     `bson:"age"`
	}
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	Register(reg)
	id := uuid.UUID{1}
	name, age := bson.E{Key: "name", Value: "Ada"}, bson.E{Key: "age", Value: int32(36)}
	for range 3 { // the codecs are compiled in the meantime
		for _, c := range []struct {
			doc  any
			want bson.D
		}{
			{late{"Ada", uuid.Nil, 36}, bson.D{{Key: "_id", Value: uuidrep.NewBinary(id)}, name, age}},
			{&late{"Ada", uuid.Nil, 36}, bson.D{{Key: "_id", Value: uuidrep.NewBinary(id)}, name, age}},
			{late{"Ada", uuid.UUID{2}, 36}, bson.D{name, {Key: "_id", Value: uuidrep.NewBinary(uuid.UUID{2})}, age}},
			{bson.D{name, {Key: "_id", Value: uuid.Nil}, age}, bson.D{{Key: "_id", Value: uuidrep.NewBinary(id)}, name, age}},
			{bson.M{"_id": uuid.Nil}, bson.D{{Key: "_id", Value: uuidrep.NewBinary(id)}}},
		} {
			got, err := encode(reg, Document(always(id), c.doc, WithZeroIDAsMissing()))
			if want := marshal(t, c.want); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%#v:\ngot  %s, %v\nwant %s", c.doc, hex(got), err, hex(want))
			}
		}
	}
}
