package autoid

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Documents whose value does not tell whether the driver writes the _id.
type (
	firstAny struct {
		ID   any    `bson:"_id,omitempty"`
		Name string `bson:"name"`
	}
	onlyAny struct {
		ID any `bson:"_id,omitempty"`
	}
	firstBytes struct {
		ID   []byte `bson:"_id,omitempty"`
		Name string `bson:"name"`
	}
	onlyBytes struct {
		ID []byte `bson:"_id,omitempty"`
	}
	hiddenAny struct {
		ID any `bson:"_id"`
	}
	embeddedAny struct {
		hiddenAny `bson:",inline"`
		Name      string
	}
)

// An _id that is null or zero is refused wherever it is written, and the error says which one it is. WithZeroIDs writes it. A
// source may not give 16 octets of subtype 0 either.
func TestRefusedForms(t *testing.T) {
	zeros := map[string][]any{
		"null": {bson.Null{}, bson.Undefined{}}, "the zero ObjectID": {bson.ObjectID{}}, "16 zero octets": {bson.Binary{Data: make([]byte, 16)}, bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
	}
	reg := bson.NewMgoRegistry() // which encodes embedded structs that are not exported
	Register(reg)
	for form, ids := range zeros {
		for _, id := range ids {
			for _, doc := range []any{embeddedAny{hiddenAny{id}, "x"}, &embeddedAny{hiddenAny{id}, ""}, bson.M{"_id": id}, bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: id}}, marshaler{bson.D{{Key: "_id", Value: id}}}} {
				_, err := encode(reg, Document(always("x"), doc))
				var failed *IDError
				if !errors.Is(err, ErrZeroID) || !strings.Contains(err.Error(), "it is "+form+":") || !strings.Contains(err.Error(), "bson.") && !strings.Contains(err.Error(), "autoid.") {
					t.Errorf("%T %v: got %v (%v)", doc, doc, err, failed)
				}
				raw, err := encode(reg, Document(always("x"), doc, WithZeroIDs()))
				want, _ := encode(reg, doc)
				if err != nil || !bytes.Equal(raw, want) {
					t.Errorf("%T %v with WithZeroIDs: got %v, %v", doc, doc, bson.Raw(raw), err)
				}
			}
			for _, doc := range []any{bson.M{}, bson.D{}, firstAny{}, onlyAny{}, firstBytes{ID: []byte{}}, onlyBytes{ID: []byte{}}} {
				_, err := encode(reg, Document(always(id), doc, WithMisfitIDs()))
				if form == "null" && !errors.Is(err, errNilID) || form != "null" && (!errors.Is(err, ErrZeroID) || !strings.Contains(err.Error(), "the source gave "+form)) {
					t.Errorf("a source of %T: got %v", id, err)
				}
				_, err = encode(reg, Document(always(id), doc, WithZeroIDs(), WithGenericIDs(), WithMisfitIDs()))
				if (err == nil) != (form != "null") {
					t.Errorf("a source of %T with WithZeroIDs: got %v", id, err)
				}
			}
		}
	}
	generic := bson.Binary{Data: []byte{1, 15: 0}}
	for _, doc := range []any{bson.M{}, firstAny{}, onlyAny{}, firstBytes{ID: []byte{}}, onlyBytes{ID: []byte{}}} {
		if _, err := encode(reg, Document(always(generic), doc)); !errors.Is(err, errGenericID) {
			t.Errorf("subtype 0: got %v", err)
		}
		if _, err := encode(reg, Document(always(generic), doc, WithGenericIDs())); err != nil {
			t.Error(err)
		}
		if _, err := encode(reg, Document(SourceFunc(func() (any, error) { return nil, errWriter }), doc)); !errors.Is(err, errWriter) {
			t.Errorf("a source that fails: got %v", err)
		}
	}
}

// An _id whose encoder fails is that error, whatever it wrote before.
func TestEncoderOfIDsFails(t *testing.T) {
	type id struct{}
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[id](), bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
		return errors.Join(vw.WriteNull(), errWriter)
	}))
	for _, doc := range []any{bson.M{"_id": id{}}, bson.D{{Key: "_id", Value: id{}}}, firstAny{ID: id{}}} {
		if _, err := encode(reg, Document(always("x"), doc, WithZeroIDAsMissing())); !errors.Is(err, errWriter) || errors.Is(err, ErrZeroID) {
			t.Errorf("%T: got %v", doc, err)
		}
	}
	for _, doc := range []any{bson.M{"_id": id{}}, bson.D{{Key: "_id", Value: id{}}}} {
		if _, err := encode(reg, Document(always("x"), doc)); !errors.Is(err, errWriter) || errors.Is(err, ErrZeroID) {
			t.Errorf("%T: got %v", doc, err)
		}
	}
	for _, doc := range []any{bson.M{"_id": make(chan int)}, bson.D{{Key: "_id", Value: func() {}}}} {
		if _, err := encode(reg, Document(always("x"), doc)); err == nil || errors.Is(err, ErrZeroID) {
			t.Errorf("%T: got %v", doc, err)
		}
	}
}

var errWriter = errors.New("the writer failed")

// failingWriter is a ValueWriter that fails after some calls.
type failingWriter struct {
	discard
	left int // calls, negative after the first that failed
}

func (w *failingWriter) called() error {
	if w.left--; w.left < 0 {
		return errWriter
	}
	return nil
}

func (w *failingWriter) WriteDocument() (bson.DocumentWriter, error) { return w, w.called() }
func (w *failingWriter) WriteDocumentElement(string) (bson.ValueWriter, error) {
	return w, w.called()
}
func (w *failingWriter) WriteDocumentEnd() error                   { return w.called() }
func (w *failingWriter) WriteBinary([]byte) error                  { return w.called() }
func (w *failingWriter) WriteBinaryWithSubtype([]byte, byte) error { return w.called() }
func (w *failingWriter) WriteInt32(int32) error                    { return w.called() }
func (w *failingWriter) WriteNull() error                          { return w.called() }
func (w *failingWriter) WriteUndefined() error                     { return w.called() }
func (w *failingWriter) WriteObjectID(bson.ObjectID) error         { return w.called() }
func (w *failingWriter) WriteString(string) error                  { return w.called() }

// An error of the writer is returned, wherever it comes, and nothing is written after it.
func TestWritersThatFail(t *testing.T) {
	type first struct {
		ID   int32  `bson:"_id"`
		Name string `bson:"name"`
	}
	type last struct {
		Name string `bson:"name"`
		ID   any    `bson:"_id,omitempty"`
	}
	oid := bson.ObjectID{1}
	zero := bson.ObjectID{}
	reg := bson.NewMgoRegistry()
	Register(reg)
	for _, id := range []any{oid, "x", int32(7), bson.Binary{Subtype: 4, Data: []byte{1, 15: 0}}, bson.Undefined{}, bson.Null{}, []byte{1}} {
		for _, doc := range []any{
			bson.M{}, bson.M{"a": 1}, bson.D{}, bson.D{{Key: "_id", Value: id}}, first{}, first{ID: 7}, &last{}, last{ID: id}, firstAny{}, firstAny{ID: id, Name: "x"}, firstAny{ID: zero}, onlyAny{}, firstBytes{ID: []byte{}}, onlyBytes{ID: []byte{}}, embeddedAny{hiddenAny{id}, "x"}, embeddedAny{hiddenAny{zero}, ""},
			bson.D{{Key: "_id", Value: zero}, {Key: "a", Value: 1}}, bson.M{"_id": zero}, omitID[uuid.NullUUID]{},
			marshal(t, bson.D{{Key: "a", Value: int32(1)}}), marshaler{bson.D{{Key: "_id", Value: id}, {Key: "a", Value: int32(1)}}}, map[shouting]int32{"x": 7},
		} {
			for _, opts := range [][]Option{{WithZeroIDs(), WithMisfitIDs()}, {WithZeroIDAsMissing(), WithMisfitIDs()}} {
				var free failingWriter
				free.left = 1 << 20
				enc := bson.NewEncoder(&free)
				enc.SetRegistry(reg)
				if err := enc.Encode(Document(always(id), doc, opts...)); err != nil {
					continue // refused, whatever the writer does
				}
				for n := range 1<<20 - free.left {
					w := &failingWriter{left: n}
					enc := bson.NewEncoder(w)
					enc.SetRegistry(reg)
					if err := enc.Encode(Document(always(id), doc, opts...)); !errors.Is(err, errWriter) || w.left != -1 {
						t.Errorf("%T %v in %T %v: call %d of the writer failed, got %v after %d more", id, id, doc, doc, n, err, -1-w.left)
					}
				}
			}
		}
	}
}

// The driver copies the bytes of an id value by value to a writer that is not its own. Its copier, of version 2.10.0 at
// least, makes four octets of an empty binary value of subtype 2.
func TestEmptyOldBinaryInIDs(t *testing.T) {
	f := bson.D{{Key: "f", Value: bson.Binary{Subtype: 2}}}
	raw, err := bson.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []any{
		f, bson.Raw(raw), bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}, marshaler{f}, &pointerMarshaler{f}, valueMarshaler{f},
		bson.M{"f": bson.Binary{Subtype: 2}}, struct{ F bson.Binary }{bson.Binary{Subtype: 2}}, bson.Binary{Subtype: 2},
	} {
		want, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range []any{bson.D{}, bson.M{}, struct{}{}, bson.Raw{5, 0, 0, 0, 0}} {
			reg := bson.NewRegistry()
			Register(reg)
			got, err := encode(reg, Document(SourceFunc(func() (any, error) { return id, nil }), doc))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T in %T: got %v, %v, want %v", id, doc, bson.Raw(got), err, bson.Raw(want))
			}
		}
	}
}
