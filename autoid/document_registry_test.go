package autoid

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestNotRegistered tests that a Document is not encoded with a registry that is not registered.
func TestNotRegistered(t *testing.T) {
	d := Document(&counter{}, bson.D{{Key: "_id", Value: 1}})
	if _, err := encode(bson.NewRegistry(), d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("encoder: %v", err)
	}
	if _, err := bson.Marshal(d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.Marshal: %v", err)
	}
	if _, _, err := bson.MarshalValue(d); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.MarshalValue: %v", err)
	}
	if _, err := bson.MarshalExtJSON(bson.D{{Key: "d", Value: d}}, true, false); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("bson.MarshalExtJSON: %v", err)
	}
	if _, err := encode(bson.NewRegistry(), bson.M{"d": d}); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("as a value: %v", err)
	}

	// Register works after the registry was used, and when it is called twice.
	reg := bson.NewRegistry()
	if _, err := encode(reg, d); !errors.Is(err, ErrNotRegistered) {
		t.Error(err)
	}
	Register(reg)
	Register(reg)
	if _, err := encode(reg, d); err != nil {
		t.Error(err)
	}
}

// TestDocumentRegistry tests that the codecs of the application for its documents are used, and
// that the _id they write is found.
func TestDocumentRegistry(t *testing.T) {
	type secret struct{}
	type secretMap map[string]any
	key := bson.D{{Key: "n", Value: 1}, {Key: "_id", Value: 2}}
	as := func(d bson.D) bson.ValueEncoder {
		return bson.ValueEncoderFunc(func(ec bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			enc, err := ec.LookupEncoder(reflect.TypeFor[[]bson.E]())
			if err != nil {
				return err
			}
			return enc.EncodeValue(ec, vw, reflect.ValueOf([]bson.E(d)))
		})
	}
	for _, doc := range []any{secret{}, &secret{}, secretMap{"_id": 1}, secretMap{}, bson.D{}, bson.M{"_id": 7}, bson.Raw{5, 0, 0, 0, 0}} {
		for _, d := range []bson.D{key, key[:1]} {
			reg := registered()
			for _, typ := range []reflect.Type{
				reflect.TypeFor[secret](), reflect.TypeFor[secretMap](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](),
				reflect.TypeFor[bson.Raw](),
			} {
				reg.RegisterTypeEncoder(typ, as(d))
			}
			plain, err := encode(reg, doc)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(reg, Document(&counter{}, doc))
			if want := withID(t, plain, int32(1)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T: got %s, %v\nwant %s", doc, hex(got), err, hex(want))
			}
		}
	}
}

// TestDocumentExtJSON tests a ValueWriter that does not write BSON.
func TestDocumentExtJSON(t *testing.T) {
	type late struct {
		A  int   `bson:"a"`
		ID int32 `bson:"_id,omitempty"`
	}
	for _, doc := range []any{bson.D{{Key: "a", Value: 1}}, late{A: 1}, &late{A: 1}, marshaler{bson.D{{Key: "a", Value: 1}}}} {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, false, false))
		enc.SetRegistry(registered())
		if err := enc.Encode(Document(&counter{}, doc)); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.TrimSpace(buf.String()), `{"_id":1,"a":1}`; got != want {
			t.Errorf("%T: got %s, want %s", doc, got, want)
		}
	}
}

// TestLargeDocument tests a document that is encoded into a buffer first and is too large for the
// buffers that are kept.
func TestLargeDocument(t *testing.T) {
	type late struct {
		Text string `bson:"text"`
		ID   int32  `bson:"_id,omitempty"`
	}
	reg := registered()
	for _, n := range []int{1, 64 << 10, 2 << 20, 1} {
		doc := late{Text: strings.Repeat("x", n)}
		plain, err := encode(reg, doc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(reg, Document(&counter{}, doc))
		if err != nil || !bytes.Equal(got, withID(t, plain, int32(1))) {
			t.Errorf("%d: %d octets, %v", n, len(got), err)
		}
		// A failure in between must not change the next document.
		if _, err := encode(reg, Document(&counter{}, struct {
			A  int
			ID any    `bson:"_id,omitempty"`
			F  func() `bson:"f"`
		}{F: func() {}})); err == nil {
			t.Error("a function was encoded")
		}
	}
}

// unfinished has a codec that begins a document and does not end it.
type unfinished struct{}

// TestUnfinishedDocument tests that a document that its codec does not end is an error, and that it
// does not change the next document.
func TestUnfinishedDocument(t *testing.T) {
	reg := registered()
	type whole struct{ A int32 }
	reg.RegisterTypeEncoder(reflect.TypeFor[unfinished](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			vw, err = dw.WriteDocumentElement("spoilt")
			if err != nil {
				return err
			}
			return vw.WriteInt32(1)
		}))
	reg.RegisterTypeEncoder(reflect.TypeFor[whole](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			if vw, err = dw.WriteDocumentElement("a"); err != nil {
				return err
			}
			if err := vw.WriteInt32(v.Interface().(whole).A); err != nil {
				return err
			}
			return dw.WriteDocumentEnd()
		}))
	want := withID(t, marshal(t, bson.D{{Key: "a", Value: int32(7)}}), int32(1))
	for range 10 { // at least one encoding reuses a buffer
		if got, err := encode(reg, Document(&counter{}, unfinished{})); err == nil {
			t.Errorf("unfinished: %s", hex(got))
		}
		if got, err := encode(reg, Document(&counter{}, whole{7})); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s, %v", hex(got), err)
		}
	}
}

// oneAndAHalf has a codec that writes a document and begins another one.
type oneAndAHalf struct{}

// TestSecondDocumentBegun tests that a codec that begins a second document is an error, and that it
// does not change the next document.
func TestSecondDocumentBegun(t *testing.T) {
	reg := registered()
	type later struct {
		A  int32
		ID any `bson:"_id,omitempty"` // because of this type, the document is encoded into a buffer first
	}
	reg.RegisterTypeEncoder(reflect.TypeFor[oneAndAHalf](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			dw, err := vw.WriteDocument()
			if err != nil {
				return err
			}
			if err := dw.WriteDocumentEnd(); err != nil {
				return err
			}
			_, err = vw.WriteDocument()
			return err
		}))
	want := withID(t, marshal(t, bson.D{{Key: "a", Value: int32(7)}}), int32(1))
	for range 10 { // at least one encoding reuses a buffer
		if got, err := encode(reg, Document(&counter{}, oneAndAHalf{})); err == nil {
			t.Errorf("one and a half: %s", hex(got))
		}
		if got, err := encode(reg, Document(&counter{}, later{A: 7})); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %s, %v", hex(got), err)
		}
	}
}
