package bsoncodec_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

var errBroken = errors.New("broken")

// breaksOnce is a reader that fails once, between before and after.
type breaksOnce struct{ before, after []byte }

// fullEverywhere returns targets for the document of newEverywhere, empty ones and ones that hold elements.
func fullEverywhere() map[string]func() any {
	return map[string]func() any{
		"struct": func() any { return new(everywhere) },
		"full": func() any {
			v := newEverywhere()
			v.Any, v.A = []any{testUUID, nil}, bson.A{testUUID, nil}
			return &v
		},
		"bson.D": func() any { return new(bson.D) }, "bson.M": func() any { return new(bson.M) },
	}
}

// An error of reading a document is returned, wherever it comes.
func TestStreamsThatBreakOff(t *testing.T) {
	withDocuments := func(b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
		return b.RegisterUUIDType(reflect.TypeFor[orderID]()).RegisterUUIDType(reflect.TypeFor[textID]()).AlsoDecodeString()
	}
	reg := build(t, withDocuments(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)))
	doc := marshal(t, reg, newEverywhere())
	// What programs without these codecs wrote.
	v, null := bson.D{{Key: "uuid", Value: testUUID}}, bson.D{{Key: "uuid", Value: testUUID}, {Key: "valid", Value: true}}
	old := marshal(t, reg, bson.D{{Key: "valid", Value: null}, {Key: "nulls", Value: bson.A{null}}, {Key: "field", Value: testUUID.String()},
		{Key: "any", Value: bson.A{bson.Binary{Data: octetsStandard}, bson.Binary{Subtype: 2, Data: octetsStandard}}}, {Key: "pointer", Value: bson.Undefined{}}})
	wrapped := build(t, wrappedTypes(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)))
	wrappers := marshal(t, reg, bson.D{{Key: "e", Value: v}, {Key: "p", Value: bson.Binary{Subtype: 3, Data: octetsJava}}})
	others := build(t, withDocuments(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy)).With(func(reg *bson.Registry) {
		reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[bson.RawValue]())
	}))
	for _, tt := range []struct {
		reg     *bson.Registry
		doc     []byte
		targets map[string]func() any
	}{
		{reg, doc, fullEverywhere()}, {reg, old, fullEverywhere()}, {others, old, fullEverywhere()},
		{wrapped, wrappers, map[string]func() any{"wrappers": func() any {
			return new(struct {
				E embeddedID
				P privateID
			})
		}}},
	} {
		for mode, reg := range withTwin(tt.reg) {
			for name, target := range tt.targets {
				for n := range tt.doc {
					dec := bson.NewDecoder(bson.NewDocumentReader(&breaksOnce{tt.doc[:n], tt.doc[n:]}))
					dec.SetRegistry(reg)
					if err := dec.Decode(target()); !errors.Is(err, errBroken) {
						t.Fatalf("%s, %s: got %v after %d of %d bytes of %v", mode, name, err, n, len(tt.doc), bson.Raw(tt.doc))
					}
				}
			}
		}
	}
}

// An error of the writer is returned, wherever it comes.
func TestWritersThatFail(t *testing.T) {
	type wrappers struct {
		E embeddedID
		P privateID
	}
	for name, b := range map[string]*bsoncodec.RegistryBuilder{
		"Standard": bsoncodec.NewRegistryBuilder(uuidrep.Standard), "JavaLegacy": bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy),
		"strings": bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).EncodeAsString(), "zero": bsoncodec.NewRegistryBuilder(uuidrep.Standard).EncodeZeroAsNull(),
	} {
		in := newEverywhere()
		in.Field = uuid.Nil // null to one of them
		for mode, reg := range withTwin(build(t, wrappedTypes(b).RegisterUUIDType(reflect.TypeFor[orderID]()).RegisterUUIDType(reflect.TypeFor[textID]()))) {
			for _, v := range []any{in, &in, wrappers{embeddedID{testUUID}, privateID{testUUID}}, bson.D{{Key: "u", Value: testUUID}, {Key: "ids", Value: []uuid.UUID{testUUID}}}} {
				whole := false
				for n := 0; !whole; n++ {
					w := &keepingWriter{left: n, err: errBroken}
					enc := bson.NewEncoder(w)
					enc.SetRegistry(reg)
					switch err := enc.Encode(v); {
					case w.left >= 0:
						whole = true
						if err != nil {
							t.Errorf("%s, %s, %T: got %v", name, mode, v, err)
						}
					case !errors.Is(err, errBroken):
						t.Errorf("%s, %s, %T: call %d of the writer failed, got %v", name, mode, v, n, err)
					}
				}
			}
		}
	}
}

func (r *breaksOnce) Read(p []byte) (int, error) {
	if len(r.before) == 0 {
		r.before, r.after = r.after, nil
		return 0, errBroken
	}
	n := copy(p, r.before)
	r.before = r.before[n:]
	return n, nil
}
