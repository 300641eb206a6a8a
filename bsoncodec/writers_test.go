package bsoncodec_test

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// keepingWriter is a ValueWriter of another package. It keeps every byte slice that it is given,
// which the driver does not forbid. With err it fails once, after some calls.
type keepingWriter struct {
	bson.ValueWriter
	bson.DocumentWriter
	bson.ArrayWriter
	kept [][]byte
	err  error
	left int // calls, negative after the first that failed
}

// A writer that keeps what it is given has different UUIDs in the end, and the caller's memory is
// not among it.
func TestWriterThatKeepsItsBytes(t *testing.T) {
	ids := make([]uuid.UUID, 8)
	named := make([]orderID, 8)
	for i := range ids {
		ids[i] = uuid.UUID{byte(i), 1, 2, 3}
		named[i] = orderID(ids[i])
	}
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		reg := build(t, bsoncodec.NewRegistryBuilder(rep).RegisterUUIDType(reflect.TypeFor[orderID]()))
		for _, encode := range []func(*bson.Encoder) error{
			func(enc *bson.Encoder) error { return enc.Encode(bson.D{{Key: "ids", Value: ids}}) },
			func(enc *bson.Encoder) error { return enc.Encode(bson.D{{Key: "named", Value: named}}) },
			func(enc *bson.Encoder) error {
				for _, id := range named {
					if err := enc.Encode(bson.M{"id": id}); err != nil {
						return err
					}
				}
				return nil
			},
			func(enc *bson.Encoder) error {
				var v struct{ ID uuid.UUID } // one struct for all
				for _, v.ID = range ids {
					if err := enc.Encode(&v); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			w := new(keepingWriter)
			enc := bson.NewEncoder(w)
			enc.SetRegistry(reg)
			if err := encode(enc); err != nil {
				t.Fatal(err)
			}
			for range 100 { // what is pooled is used again
				marshal(t, reg, bson.D{{Key: "ids", Value: []uuid.UUID{testUUID, testUUID}}, {Key: "id", Value: orderID(testUUID)}})
			}
			if len(w.kept) != len(ids) {
				t.Fatalf("%v: %d values were written", rep, len(w.kept))
			}
			for i, b := range w.kept {
				u, err := uuidrep.AsWithRepresentation[uuid.UUID](bson.Binary{Subtype: map[bool]byte{true: 4, false: 3}[rep == uuidrep.Standard], Data: b}, rep)
				if err != nil || u != ids[i] {
					t.Errorf("%v: value %d is %v, %v; want %v", rep, i, u, err, ids[i])
				}
			}
		}
	}
}

func (w *keepingWriter) called() error {
	if w.left--; w.err != nil && w.left == -1 {
		return w.err
	}
	return nil
}

func (w *keepingWriter) WriteBinaryWithSubtype(b []byte, _ byte) error {
	w.kept = append(w.kept, b)
	return w.called()
}

func (w *keepingWriter) WriteBinary(b []byte) error { return w.WriteBinaryWithSubtype(b, 0) }

func (w *keepingWriter) WriteNull() error { return w.called() }

func (w *keepingWriter) WriteInt32(int32) error { return w.called() }

func (w *keepingWriter) WriteString(string) error { return w.called() }

func (w *keepingWriter) WriteDocument() (bson.DocumentWriter, error) { return w, w.called() }

func (w *keepingWriter) WriteDocumentElement(string) (bson.ValueWriter, error) { return w, w.called() }

func (w *keepingWriter) WriteDocumentEnd() error { return w.called() }

func (w *keepingWriter) WriteArray() (bson.ArrayWriter, error) { return w, w.called() }

func (w *keepingWriter) WriteArrayElement() (bson.ValueWriter, error) { return w, w.called() }

func (w *keepingWriter) WriteArrayEnd() error { return w.called() }
