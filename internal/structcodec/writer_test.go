package structcodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// elementsWriter passes everything on to the driver's writer and keeps the keys.
type elementsWriter struct {
	bson.ValueWriter
	dw   bson.DocumentWriter
	keys []string
}

func (w *elementsWriter) Unwrap() bson.ValueWriter { return w.ValueWriter }

func (w *elementsWriter) WriteDocument() (dw bson.DocumentWriter, err error) {
	w.dw, err = w.ValueWriter.WriteDocument()
	return (*elementsDocument)(w), err
}

type elementsDocument elementsWriter

func (w *elementsDocument) WriteDocumentElement(key string) (bson.ValueWriter, error) {
	w.keys = append(w.keys, key)
	return w.dw.WriteDocumentElement(key)
}

func (w *elementsDocument) WriteDocumentEnd() error { return w.dw.WriteDocumentEnd() }

// A writer that wraps the driver's is told of every element.
func TestWrappingWriter(t *testing.T) {
	_, plans := registries(registerCallers)
	v := struct {
		A int
		B string `bson:",omitempty"`
		C map[string]int
		D []int
	}{C: map[string]int{"x": 1}}
	var direct, wrapped bytes.Buffer
	w := &elementsWriter{ValueWriter: bson.NewDocumentWriter(&wrapped)}
	for _, vw := range []bson.ValueWriter{bson.NewDocumentWriter(&direct), w} {
		enc := bson.NewEncoder(vw)
		enc.SetRegistry(plans)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(w.keys, []string{"a", "c", "d"}) || !bytes.Equal(direct.Bytes(), wrapped.Bytes()) {
		t.Errorf("the keys are %q, the document %X, want %X", w.keys, wrapped.Bytes(), direct.Bytes())
	}
}

// failingWriter is an io.Writer that fails once.
type failingWriter struct {
	bytes.Buffer
	err error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if err := w.err; err != nil {
		w.err = nil
		return 0, err
	}
	return w.Buffer.Write(p)
}

// What a writer has after a document that could not be written, and after an encoder that stopped within a document, is
// what it has with the driver's codecs.
func TestWriterAfterError(t *testing.T) {
	driver, plans := registries(registerCallers)
	broken := errors.New("broken")
	values := []any{struct{}{}, struct{ A, B int }{1, 2}, struct {
		A string
		B *int `bson:",omitempty"`
	}{A: "text"}}
	for _, first := range values {
		for _, second := range values {
			var got, want failingWriter
			for _, c := range []struct {
				reg *bson.Registry
				out *failingWriter
			}{{driver, &want}, {plans, &got}} {
				c.out.err = broken
				enc := bson.NewEncoder(bson.NewDocumentWriter(c.out))
				enc.SetRegistry(c.reg)
				if err := enc.Encode(first); !errors.Is(err, broken) {
					t.Errorf("%+v: error %v, want %v", first, err, broken)
				}
				if err := enc.Encode(second); err != nil {
					t.Errorf("%+v: %v", second, err)
				}
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%+v, %+v: got %X, want %X", first, second, got.Bytes(), want.Bytes())
			}
		}
	}
}

// A document goes to the driver's writer at once, so the number of allocations is not that of the fields.
func TestWriterAllocations(t *testing.T) {
	_, plans := registries(registerCallers)
	fields := make([]reflect.StructField, 100)
	for i := range fields {
		name := string([]byte{'F', 'a' + byte(i/10), 'a' + byte(i%10)})
		fields[i] = reflect.StructField{Name: name, Type: reflect.TypeFor[int64]()}
	}
	v := reflect.New(reflect.StructOf(fields)).Interface()
	enc := bson.NewEncoder(bson.NewDocumentWriter(new(bytes.Buffer)))
	enc.SetRegistry(plans)
	allocations := testing.AllocsPerRun(100, func() {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	})
	if allocations >= float64(len(fields)) {
		t.Errorf("%v allocations for %d fields", allocations, len(fields))
	}
}
