package autoid

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// idWriter stands before the driver's ValueWriter for one document and writes the _id in front of
// its first element. The elements' values are written to the driver's own writer.
type idWriter struct {
	bson.ValueWriter
	ec    bson.EncodeContext
	d     *document
	where placement
	p     *plan
	dw    bson.DocumentWriter // of the document, if its keys matter
	value idValueWriter
}

var idWriters = sync.Pool{New: func() any { return new(idWriter) }}

// Unwrap returns the driver's ValueWriter. It lets a codec of whole documents write to an idWriter
// as it writes to the driver's.
func (w *idWriter) Unwrap() bson.ValueWriter { return w.ValueWriter }

// WriteDocument begins the document. The driver's codecs for documents call it once, on the writer
// they were given.
func (w *idWriter) WriteDocument() (bson.DocumentWriter, error) {
	dw, err := w.ValueWriter.WriteDocument()
	if err != nil {
		return nil, err
	}
	switch w.where {
	case nowhere:
		return dw, w.writeID(dw)
	case replaced:
		w.dw = dw
		return (*replacingWriter)(w), w.writeID(dw)
	default:
		w.dw = dw
		return (*firstKeyWriter)(w), nil
	}
}

// EditDocument appends doc with the _id in front of its elements, and without the one that counts as missing. It leaves to
// the other methods what depends on more than the first key, and ids that are not simple or have no plan.
func (w *idWriter) EditDocument(dst []byte, doc bson.Raw, values structcodec.ValueAppender) (edited []byte, ok bool, err error) {
	elements := doc[4:]
	if key := []byte("_id\x00"); bytes.HasPrefix(elements[1:], key) {
		first, err := doc.IndexErr(0)
		if err != nil || w.where != replaced {
			return dst, false, nil
		}
		elements = elements[len(first):]
	} else if w.where == replaced && bytes.Contains(elements, key) {
		return dst, false, nil
	}
	id, draw, err := w.drawID()
	if err != nil {
		return dst, true, err
	}
	if !isSimple(reflect.TypeOf(id)) {
		return dst, false, nil
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, '_', 'i', 'd', 0)
	at := len(dst)
	t, edited, planned, err := values.AppendValue(&w.ec, dst, id)
	if !planned || err != nil || len(edited)-start+len(elements) > math.MaxInt32 {
		return dst, false, nil
	}
	switch form := formOfRaw(bson.RawValue{Type: t, Value: edited[at:]}); {
	case form == nullForm:
		err = errNilID
	case form.refused(w.d):
		err = form.ofSource()
	}
	if err != nil {
		w.d.dropID(draw)
		return edited, true, w.d.idError(err)
	}
	edited[at-5] = byte(t)
	edited = append(edited, elements...)
	binary.LittleEndian.PutUint32(edited[start:], uint32(len(edited)-start))
	return edited, true, nil
}

// isSimple reports whether ids of type t have no values of other types in them, which most have not.
func isSimple(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Elem().Kind() == reflect.Uint8
	case reflect.String, reflect.Int, reflect.Int32, reflect.Int64:
		return true
	}
	return false
}

// drawID returns the id of the document, which fits, and the number of its draw.
func (w *idWriter) drawID() (id any, draw uint32, err error) {
	if id, draw, err = w.d.drawID(); err == nil {
		err = w.p.fits(w.ec, w.d, id)
	}
	if err != nil {
		return nil, 0, w.d.idError(err)
	}
	return id, draw, nil
}

func (w *idWriter) writeID(dw bson.DocumentWriter) error {
	id, draw, err := w.drawID()
	if err != nil {
		return err
	}
	vw, err := dw.WriteDocumentElement("_id")
	if err != nil {
		return err
	}
	if oid, ok := id.(bson.ObjectID); ok && w.p.oid && !oid.IsZero() {
		return vw.WriteObjectID(oid)
	}
	enc, v, err := encoderBehind(w.ec, reflect.ValueOf(id))
	if err == nil && enc == nil {
		w.d.dropID(draw)
		err = errNilID
	}
	if err != nil {
		return w.d.idError(err)
	}
	w.value = idValueWriter{ValueWriter: vw, d: w.d, drawn: true}
	if isCopied(v) {
		var raw bson.RawValue
		if raw, err = encodeValue(w.ec, id); err == nil {
			w.value.refuse(formOfRaw(raw))
			err = rawValueCodec.EncodeValue(w.ec, vw, reflect.ValueOf(raw))
		}
	} else {
		err = enc.EncodeValue(w.ec, &w.value, v)
	}
	if w.value.err != nil {
		w.d.dropID(draw)
		err = w.value.err
	}
	if err != nil {
		return w.d.idError(err)
	}
	return nil
}

// isCopied reports whether the driver copies the bytes of v value by value to a writer that is not its own, which makes four
// octets of an empty binary value of subtype 2.
func isCopied(v reflect.Value) bool {
	switch v.Interface().(type) {
	case bson.RawValue, bson.ValueMarshaler, bson.Marshaler:
		return true
	}
	return false
}

// firstKeyWriter is an idWriter whose document has begun, and whose first key decides.
type firstKeyWriter idWriter

func (w *firstKeyWriter) WriteDocumentElement(key string) (bson.ValueWriter, error) {
	if w.where == somewhere {
		return w.dw.WriteDocumentElement(key)
	}
	w.where = somewhere
	if key != "_id" {
		if err := (*idWriter)(w).writeID(w.dw); err != nil {
			return nil, err
		}
		return w.dw.WriteDocumentElement(key)
	}
	vw, err := w.dw.WriteDocumentElement(key)
	w.value = idValueWriter{ValueWriter: vw, d: w.d}
	return &w.value, err
}

func (w *firstKeyWriter) WriteDocumentEnd() error {
	if w.where != somewhere {
		if err := (*idWriter)(w).writeID(w.dw); err != nil {
			return err
		}
	}
	return w.dw.WriteDocumentEnd()
}

// replacingWriter is an idWriter that has written the _id and drops the one that counts as missing, which is the first. A
// second one, of a [bson.D] for instance, stays for the server to refuse.
type replacingWriter idWriter

func (w *replacingWriter) WriteDocumentElement(key string) (bson.ValueWriter, error) {
	if key == "_id" && w.where == replaced {
		w.where = somewhere
		return discard{}, nil
	}
	return w.dw.WriteDocumentElement(key)
}

func (w *replacingWriter) WriteDocumentEnd() error { return w.dw.WriteDocumentEnd() }

// idValueWriter refuses an id that is null or zero, and 16 octets of subtype 0 from a source. It
// remembers that it did and writes the id, because the driver's codec for maps tries something else
// after an error. The document is not used then.
type idValueWriter struct {
	bson.ValueWriter
	d     *document
	drawn bool // the id is from the source
	err   error
}

// refuse sets the error if an id of the form is refused.
func (w *idValueWriter) refuse(form idForm) {
	switch {
	case w.drawn && form == nullForm:
		w.err = errNilID
	case w.drawn && form.refused(w.d):
		w.err = form.ofSource()
	case !w.drawn && form.refused(w.d):
		w.err = w.d.idError(form.ofDocument())
	}
}

func (w *idValueWriter) WriteNull() error {
	w.refuse(nullForm)
	return w.ValueWriter.WriteNull()
}

func (w *idValueWriter) WriteUndefined() error {
	w.refuse(nullForm)
	return w.ValueWriter.WriteUndefined()
}

func (w *idValueWriter) WriteObjectID(id bson.ObjectID) error {
	w.refuse(objectIDForm(id))
	return w.ValueWriter.WriteObjectID(id)
}

func (w *idValueWriter) WriteBinary(b []byte) error {
	w.refuse(binaryForm(bson.TypeBinaryGeneric, b))
	return w.ValueWriter.WriteBinary(b)
}

func (w *idValueWriter) WriteBinaryWithSubtype(b []byte, subtype byte) error {
	w.refuse(binaryForm(subtype, b))
	return w.ValueWriter.WriteBinaryWithSubtype(b, subtype)
}

// CopiesBytes says that no byte slice is kept here, which lets codecs reuse theirs.
func (w *idValueWriter) CopiesBytes() bool { return driver.CopiesBytes(w.ValueWriter) }
