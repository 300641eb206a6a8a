package bsoncodec_test

import (
	"bytes"
	"errors"
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

func (w *keepingWriter) WriteBinary(b []byte) error                            { return w.WriteBinaryWithSubtype(b, 0) }
func (w *keepingWriter) WriteNull() error                                      { return w.called() }
func (w *keepingWriter) WriteInt32(int32) error                                { return w.called() }
func (w *keepingWriter) WriteString(string) error                              { return w.called() }
func (w *keepingWriter) WriteDocument() (bson.DocumentWriter, error)           { return w, w.called() }
func (w *keepingWriter) WriteDocumentElement(string) (bson.ValueWriter, error) { return w, w.called() }
func (w *keepingWriter) WriteDocumentEnd() error                               { return w.called() }
func (w *keepingWriter) WriteArray() (bson.ArrayWriter, error)                 { return w, w.called() }
func (w *keepingWriter) WriteArrayElement() (bson.ValueWriter, error)          { return w, w.called() }
func (w *keepingWriter) WriteArrayEnd() error                                  { return w.called() }

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

// badEncoder is encoded by a function of the test's.
type badEncoder struct{ N int }

// An encoder that reports no error and does not write one whole document gets an error, and changes
// no other document.
func TestEncodersThatDoNotWriteOneDocument(t *testing.T) {
	document := func(vw bson.ValueWriter, end bool) error {
		dw, err := vw.WriteDocument()
		if err != nil {
			return err
		}
		vw, err = dw.WriteDocumentElement("secret")
		if err != nil {
			return err
		}
		if err := vw.WriteString("another caller's"); err != nil || !end {
			return err
		}
		return dw.WriteDocumentEnd()
	}
	for name, encode := range map[string]func(bson.ValueWriter) error{
		"nothing":        func(bson.ValueWriter) error { return nil },
		"only the start": func(vw bson.ValueWriter) error { _, err := vw.WriteDocument(); return err },
		"no end":         func(vw bson.ValueWriter) error { return document(vw, false) },
		"no value": func(vw bson.ValueWriter) error {
			dw, err := vw.WriteDocument()
			if err == nil {
				_, err = dw.WriteDocumentElement("a")
			}
			return err
		},
		"an array begun": func(vw bson.ValueWriter) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			vw, err = dw.WriteDocumentElement("a")
			if err == nil {
				_, err = vw.WriteArray()
			}
			return err
		},
		"two":               func(vw bson.ValueWriter) error { return errors.Join(document(vw, true), document(vw, true)) },
		"one and one begun": func(vw bson.ValueWriter) error { return errors.Join(document(vw, true), document(vw, false)) },
		"one and the start of one": func(vw bson.ValueWriter) error {
			err := document(vw, true)
			_, err2 := vw.WriteDocument()
			return errors.Join(err, err2)
		},
		"one and an element": func(vw bson.ValueWriter) error {
			err := document(vw, true)
			_, err2 := vw.(bson.DocumentWriter).WriteDocumentElement("a")
			return errors.Join(err, err2)
		},
	} {
		reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[badEncoder](), bson.ValueEncoderFunc(
				func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error { return encode(vw) }))
		}))
		want := marshal(t, bson.NewRegistry(), bson.D{{Key: "a", Value: int32(1)}})
		for range 20 { // one of them gets the buffer of another
			if got, err := bsoncodec.Marshal(reg, badEncoder{}); err == nil {
				t.Errorf("%s: Marshal returns %v", name, bson.Raw(got))
			}
			func() {
				defer func() { _ = recover() }() // the driver's writer panics when a document ends twice
				if _, err := bsoncodec.MarshalValue(reg, badEncoder{}); err == nil && name == "nothing" {
					t.Errorf("%s: MarshalValue reports no error", name)
				}
			}()
			if got := marshal(t, reg, bson.D{{Key: "a", Value: int32(1)}}); !bytes.Equal(got, want) {
				t.Fatalf("%s: the next document is %v", name, got)
			}
			if got, err := bsoncodec.MarshalValue(reg, int32(1)); err != nil || !bytes.Equal(got.Value, []byte{1, 0, 0, 0}) {
				t.Fatalf("%s: the next value is %v, %v", name, got, err)
			}
		}
	}
}
