package structcodec

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// The types of the driver's writer and reader of BSON documents.
var (
	driverWriter = reflect.TypeOf(bson.NewDocumentWriter(io.Discard))
	driverReader = reflect.TypeOf(bson.NewDocumentReader(bytes.NewReader(nil)))
)

// isDriverWriter reports whether vw is the driver's writer of documents, or passes everything on to it.
func isDriverWriter(vw bson.ValueWriter) bool {
	if reflect.TypeOf(vw) == driverWriter {
		return true
	}
	w, ok := vw.(interface{ Unwrap() bson.ValueWriter })
	return ok && reflect.TypeOf(w.Unwrap()) == driverWriter
}

// A DocumentEditor is a writer that passes on to the driver's what it is given, but for an element of a document that it
// puts in front or leaves out.
type DocumentEditor interface {
	// Unwrap returns the driver's writer.
	Unwrap() bson.ValueWriter

	// EditDocument appends to dst what the driver's writer receives if doc, a valid document, is written. If ok is false,
	// nothing was done, and doc is to be written element by element.
	EditDocument(dst []byte, doc bson.Raw, values ValueAppender) (edited []byte, ok bool, err error)
}

// A ValueAppender appends values as [Codec.AppendValue] does.
type ValueAppender interface {
	AppendValue(ec *bson.EncodeContext, dst []byte, v any) (t bson.Type, value []byte, planned bool, err error)
}

// A buffer holds one document on its way to the driver's writer or from its reader.
type buffer struct {
	octets   []byte
	edited   []byte
	raw      bson.Raw
	rawValue reflect.Value // of raw, addressable
}

// write writes doc, a valid document, to vw. The name is the key of its first element, or another one.
func (b *buffer) write(c *encodeMode, vw bson.ValueWriter, doc []byte, name string) error {
	if w, ok := vw.(DocumentEditor); ok && reflect.TypeOf(w.Unwrap()) == driverWriter && writesBytes() {
		edited, ok, err := w.EditDocument(b.edited[:0], doc, c.Codec)
		if cap(edited) <= maxPooled {
			b.edited = edited
		}
		switch {
		case err != nil:
			return err
		case ok && len(edited) > 5:
			return writeElements(c.ec, w.Unwrap(), edited, "_id")
		}
	}
	ec := c.ec
	if len(doc) == 5 || reflect.TypeOf(vw) != driverWriter || !writesBytes() {
		b.raw = doc
		return stock().rawEncoder.EncodeValue(ec, vw, b.rawValue)
	}
	return writeElements(ec, vw, doc, name)
}

// WriteDocument writes doc, a valid document, to vw.
func WriteDocument(ec bson.EncodeContext, vw bson.ValueWriter, doc bson.Raw) error {
	if len(doc) == 5 || reflect.TypeOf(vw) != driverWriter || !writesBytes() {
		return stock().rawEncoder.EncodeValue(ec, vw, reflect.ValueOf(doc))
	}
	return writeElements(ec, vw, doc, "_id")
}

// writeElements writes doc, which is not empty, to the driver's writer vw: the first element as one whose value ends
// with the document.
func writeElements(ec bson.EncodeContext, vw bson.ValueWriter, doc []byte, name string) error {
	dw, err := vw.WriteDocument()
	if err != nil {
		return err
	}
	end := 4 + keyEnd(doc[4:])
	if key := doc[5:end]; string(key) != name {
		name = string(key)
	}
	if vw, err = dw.WriteDocumentElement(name); err != nil {
		return err
	}
	value := bson.RawValue{Type: bson.Type(doc[4]), Value: doc[end+1 : len(doc)-1]}
	if err := stock().rawValueEncoder.EncodeValue(ec, vw, reflect.ValueOf(value)); err != nil {
		return err
	}
	return dw.WriteDocumentEnd()
}

// writesBytes reports whether the driver's encoder of a [bson.RawValue] writes bytes as they are to the driver's writer.
var writesBytes = sync.OnceValue(func() bool {
	doc := []byte("\x14\x00\x00\x00\x10a\x00\x01\x00\x00\x00\x02b\x00\x01\x00\x00\x00\x00\x00")
	var buf bytes.Buffer
	err := writeElements(bson.EncodeContext{}, bson.NewDocumentWriter(&buf), doc, "")
	return err == nil && bytes.Equal(buf.Bytes(), doc)
})

var buffers = sync.Pool{New: func() any {
	b := new(buffer)
	b.rawValue = reflect.ValueOf(&b.raw).Elem()
	return b
}}

// maxPooled keeps a rare large document from staying in memory.
const maxPooled = 1 << 20

// read returns the document at vr, which is at the top level.
func (b *buffer) read(vr bson.ValueReader) ([]byte, error) {
	b.raw = b.octets[:0]
	if b.raw == nil {
		b.raw = make(bson.Raw, 0, 512)
	}
	err := stock().rawDecoder.DecodeValue(bson.DecodeContext{}, vr, b.rawValue)
	return b.raw, err
}

// keep puts b back into the pool with the bytes of doc.
func (b *buffer) keep(doc []byte) {
	b.raw = nil
	if cap(doc) <= maxPooled {
		b.octets = doc[:0]
		buffers.Put(b)
	}
}

// errStream returns the error of reading a document from vr. Unless the stream ended within the document, nothing was
// read, and the fallback finds the error again.
func (c *decodeMode) errStream(fallback bson.ValueDecoder, vr bson.ValueReader, val reflect.Value, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return fallback.DecodeValue(c.dc, vr, val)
}

// decodeMalformed decodes the bytes of a document that is not valid into val by the fallback. The driver's reader of
// streams allocates what a length says, so a document with a length far beyond its end is decoded from memory. The error
// is not io.EOF, by which a loop over a stream would end as if nothing followed.
func (c *decodeMode) decodeMalformed(fallback bson.ValueDecoder, doc []byte, val reflect.Value) error {
	if len(doc) < 4 { // the length that was stated
		doc = []byte{byte(len(doc)), 0, 0, 0}
	}
	switch back, beyond := driver.Skips(bson.TypeEmbeddedDocument, doc); {
	case beyond <= driver.MaxBeyond:
	case back: // the reader from memory may not come to an end
		return errBeyond
	default:
		raw := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}
		return unexpected(raw.UnmarshalWithRegistry(detourRegistry(), &detour{c.dc, fallback, val}))
	}
	return unexpected(fallback.DecodeValue(c.dc, bson.NewDocumentReader(bytes.NewReader(doc)), val))
}

// unexpected returns err with io.ErrUnexpectedEOF in place of io.EOF, which would say that a stream ends between two
// documents.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	d, ok := err.(*bson.DecodeError)
	if !ok || d.Unwrap() != io.EOF {
		return err
	}
	keys := d.Keys()
	err = io.ErrUnexpectedEOF
	for i := len(keys) - 1; i >= 0; i-- {
		err = wrapKey(keys[i], err)
	}
	return err
}

var errBeyond = errors.New("structcodec: the document is malformed: a length in it is negative, and another is beyond its end")

// A detour makes the driver create its reader from memory for any decoder and target. The driver has no exported
// function that returns such a reader, but it makes one for the decoder of this type.
type detour struct {
	dc      bson.DecodeContext
	decoder bson.ValueDecoder
	target  reflect.Value
}

var detourRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeDecoder(reflect.TypeFor[detour](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
			d := val.Addr().Interface().(*detour)
			return d.decoder.DecodeValue(d.dc, vr, d.target)
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[failure](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error { return vr.(*failingReader).err }))
	return reg
})

// maxShort is the length of the longest value that an elementReader reads.
const maxShort = 64

// decodeRaw decodes the value of type t in data into v with dec. The driver's reader from memory takes far more memory than
// a short value has, and cannot be used again.
func (c *decodeMode) decodeRaw(dec bson.ValueDecoder, t byte, data []byte, v reflect.Value) error {
	switch {
	case checkValue(t, data, 0) != len(data):
		return errMalformed
	case len(data) > maxShort:
		return bson.RawValue{Type: bson.Type(t), Value: data}.UnmarshalWithRegistry(
			detourRegistry(), &detour{c.dc, dec, v})
	}
	r := elementReaders.Get().(*elementReader)
	r.doc = append(append(append(r.doc[:4], t, 0), data...), 0)
	putLength(r.doc, 0)
	r.src.Reset(r.doc)
	dr, err := r.vr.ReadDocument()
	if err != nil {
		return err
	}
	_, vr, err := dr.ReadElement()
	if err != nil {
		return err
	}
	if err := dec.DecodeValue(c.dc, vr, v); err != nil {
		return err // r is left in the middle of a document
	}
	if _, _, err := dr.ReadElement(); err == bson.ErrEOD { // dec has read the value
		elementReaders.Put(r)
	}
	return nil
}

// An elementReader is the driver's reader for the decoder of a single value.
type elementReader struct {
	doc []byte // int32 length, type, 0, value, 0
	src bytes.Reader
	vr  bson.ValueReader
}

var elementReaders = sync.Pool{New: func() any {
	r := &elementReader{doc: make([]byte, 4)}
	r.vr = bson.NewDocumentReader(&r.src)
	return r
}}

// decodeElement decodes one element into the struct v by the fallback: a document that holds nothing else.
func (c *decodeMode) decodeElement(element []byte, v reflect.Value) error {
	doc := make([]byte, 4, 4+len(element)+1)
	doc = append(append(doc, element...), 0)
	putLength(doc, 0)
	return c.decodeRaw(c.decoder, byte(bson.TypeEmbeddedDocument), doc, v)
}

// errNoDecoder returns the driver's error for an element of a struct of type t whose field has no decoder.
func (c *decodeMode) errNoDecoder(element []byte, t reflect.Type) error {
	return c.decodeElement(element, reflect.New(t).Elem())
}

// wrapKey returns err with key in front of its path of keys, as a [bson.DecodeError]. The type has no exported
// constructor, but the driver's decoder of maps makes one when the decoder of an element fails.
func wrapKey(key string, err error) error {
	if err == errMalformed {
		return err
	}
	var m map[string]failure
	return failureDecoder().DecodeValue(bson.DecodeContext{Registry: detourRegistry()}, &failingReader{key: key, err: err},
		reflect.ValueOf(&m).Elem())
}

// failure is a type whose decoder fails with the error of the failingReader.
type failure struct{ _ int }

var failureDecoder = sync.OnceValue(func() bson.ValueDecoder {
	dec, _ := detourRegistry().LookupDecoder(reflect.TypeFor[map[string]failure]())
	return dec
})

// A failingReader is a document of one element that cannot be read.
type failingReader struct {
	bson.ValueReader
	key string
	err error
}

func (*failingReader) Type() bson.Type                              { return bson.TypeEmbeddedDocument }
func (r *failingReader) ReadDocument() (bson.DocumentReader, error) { return r, nil }
func (r *failingReader) ReadElement() (string, bson.ValueReader, error) {
	return r.key, r, nil
}

// errMalformed says that the whole document must be passed to the fallback: it is malformed, or an encoder did not write
// exactly one BSON value, or an inline map has the key of a field. The driver takes bytes that are not a value as they
// are, and its error for a value that is missing depends on what follows.
var errMalformed = errors.New("structcodec: the driver must do the document")

// An elementWriter is the driver's writer for the encoder of a single value.
type elementWriter struct {
	buf bytes.Buffer
	vw  bson.ValueWriter
}

var elementWriters = sync.Pool{New: func() any {
	w := new(elementWriter)
	w.vw = bson.NewDocumentWriter(&w.buf)
	return w
}}

// appendEncoded appends the value that enc writes for v.
func appendEncoded(dst []byte, ec bson.EncodeContext, enc bson.ValueEncoder, key string, v reflect.Value) (bson.Type, []byte, error) {
	w := elementWriters.Get().(*elementWriter)
	w.buf.Reset()
	dw, err := w.vw.WriteDocument()
	if err != nil {
		return 0, dst, err
	}
	vw, err := dw.WriteDocumentElement(key)
	if err != nil {
		return 0, dst, err
	}
	if err := enc.EncodeValue(ec, vw, v); err != nil {
		return 0, dst, err // w is left in the middle of a document
	}
	if err := dw.WriteDocumentEnd(); err != nil {
		return 0, dst, errMalformed // enc wrote nothing, or a part of a value
	}
	// int32 length, type, key, 0, value, 0
	doc := w.buf.Bytes()
	if len(doc) < 7+len(key) || int32At(doc) != len(doc) {
		return 0, dst, errMalformed
	}
	t, value := bson.Type(doc[4]), doc[6+len(key):len(doc)-1]
	if checkValue(byte(t), value, 0) != len(value) {
		return 0, dst, errMalformed
	}
	dst = append(dst, value...)
	if w.buf.Cap() <= maxPooled {
		elementWriters.Put(w)
	}
	return t, dst, nil
}
