package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Types of the kinds that stand before the driver's encoders, one for each place of the test.
type (
	metInt64   int64
	metString  string
	metSlice   []int
	metInline  string
	metPointer int64
	metElement int64
	metEntry   []string
	metAny     string
	metTop     []int
)

// The types of kinds of which driver version 1 has types cost nothing after the first value: the registry has the driver's
// encoder for them then.
func TestKindEncodersStepAside(t *testing.T) {
	type inline struct{ S metInline }
	type inlinePtr struct{ N metPointer }
	type doc struct {
		N       metInt64
		S       metString
		L       metSlice
		In      inline     `bson:",inline"`
		Ptr     *inlinePtr `bson:",inline"`
		Array   [1]metElement
		Entries map[string]metEntry
		Any     any
	}
	stock := bson.NewRegistry()
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans())
	marshal(t, reg, doc{1, "s", metSlice{1}, inline{"i"}, &inlinePtr{2}, [1]metElement{3}, map[string]metEntry{"k": {"e"}}, metAny("a")})
	if _, err := bsoncodec.MarshalValue(reg, metTop{1}); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[metInt64](), reflect.TypeFor[metString](), reflect.TypeFor[metSlice](), reflect.TypeFor[metInline](), reflect.TypeFor[metPointer](),
		reflect.TypeFor[metElement](), reflect.TypeFor[metEntry](), reflect.TypeFor[metAny](), reflect.TypeFor[metTop](),
	} {
		got, err := reg.LookupEncoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		want, err := stock.LookupEncoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.TypeOf(got) != reflect.TypeOf(want) {
			t.Errorf("%v has the encoder %T, want %T", typ, got, want)
		}
	}
}

// A value that is no document is none at the top either.
func TestValuesAtTheTop(t *testing.T) {
	for _, b := range []*bsoncodec.RegistryBuilder{
		bsoncodec.NewRegistryBuilder(uuidrep.Standard), bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy), bsoncodec.NewRegistryBuilder(uuidrep.Standard).EncodeAsString(),
		bsoncodec.NewRegistryBuilder(uuidrep.Standard).EncodeZeroAsNull(),
	} {
		reg := build(t, wrappedTypes(b).RegisterUUIDType(reflect.TypeFor[orderID]()))
		for _, v := range []any{
			testUUID, &testUUID, uuid.Nil, orderID(testUUID), embeddedID{testUUID}, &embeddedID{testUUID}, uuid.NullUUID{}, uuid.NullUUID{UUID: testUUID, Valid: true},
			[]uuid.UUID{testUUID}, [1]uuid.UUID{testUUID},
		} {
			if raw, err := encode(t, reg, v); err == nil {
				t.Errorf("%T: got %v", v, bson.Raw(raw))
			}
		}
		for _, target := range []any{new(uuid.UUID), new(orderID), new(uuid.NullUUID), new([]uuid.UUID)} {
			if err := decode(t, reg, marshal(t, reg, bson.D{{Key: "other", Value: testUUID}}), target); err == nil {
				t.Errorf("a document was decoded into a %T", target)
			}
		}
	}
}

// A codec of a caller's can keep an encoder of a kind, and call it with a context that has no registry.
func TestKindsWithoutRegistry(t *testing.T) {
	type text string
	type count int64
	driver, ours := bson.NewRegistry(), build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard))
	for _, v := range []any{"x", text("x"), int64(1), count(1), 1, []byte{1}, time.UnixMilli(0)} {
		var docs [2][]byte
		for i, reg := range []*bson.Registry{driver, ours} {
			enc, err := reg.LookupEncoder(reflect.TypeOf(v))
			if err != nil {
				t.Fatal(err)
			}
			var buf bytes.Buffer
			dw, _ := bson.NewDocumentWriter(&buf).WriteDocument()
			vw, _ := dw.WriteDocumentElement("a")
			if err := errors.Join(enc.EncodeValue(bson.EncodeContext{}, vw, reflect.ValueOf(v)), dw.WriteDocumentEnd()); err != nil {
				t.Errorf("%T: %v", v, err)
			}
			docs[i] = buf.Bytes()
		}
		if !bytes.Equal(docs[0], docs[1]) {
			t.Errorf("%T: got %x, want %x", v, docs[1], docs[0])
		}
	}
}
