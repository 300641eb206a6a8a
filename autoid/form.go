package autoid

import (
	"fmt"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// An idForm classifies an encoded id. It decides whether the id is refused.
type idForm uint8

const (
	otherForm    idForm = iota
	nullForm            // null or undefined
	zeroOIDForm         // an ObjectID of zero octets
	zeroUUIDForm        // a binary value of 16 octets, all zero
	genericForm         // 16 other octets of binary subtype 0
)

func (f idForm) String() string {
	return [...]string{"zero", "null", "the zero ObjectID", "16 zero octets", "16 octets of binary subtype 0"}[f]
}

func objectIDForm(id bson.ObjectID) idForm {
	if id.IsZero() {
		return zeroOIDForm
	}
	return otherForm
}

func binaryForm(subtype byte, b []byte) idForm {
	switch {
	case len(b) != 16:
		return otherForm
	case allZero(b):
		return zeroUUIDForm
	case subtype == bson.TypeBinaryGeneric:
		return genericForm
	default:
		return otherForm
	}
}

func formOfRaw(id bson.RawValue) idForm {
	switch id.Type {
	case bson.TypeNull, bson.TypeUndefined:
		return nullForm
	case bson.TypeObjectID:
		if oid, ok := id.ObjectIDOK(); ok {
			return objectIDForm(oid)
		}
	case bson.TypeBinary:
		if subtype, b, ok := id.BinaryOK(); ok {
			return binaryForm(subtype, b)
		}
	}
	return otherForm
}

// formOf returns the form of v, an _id that the registry of ec encodes. An error is that of a type without a codec. What fails
// otherwise has another form: the encoding of its document reports the error.
func formOf(ec bson.EncodeContext, v reflect.Value) (idForm, error) {
	enc, v, err := encoderBehind(ec, v)
	if err != nil || enc == nil {
		return nullForm, err
	}
	if isDocumentOrArray(ec, enc, v) {
		return otherForm, nil
	}
	w := formWriters.Get().(*formWriter)
	defer formWriters.Put(w)
	w.form = otherForm
	if enc.EncodeValue(ec, w, v) != nil {
		return otherForm, nil
	}
	return w.form, nil
}

// encoderBehind returns what encodes v, and what of v it encodes: it follows pointers and interfaces as the driver's codecs do.
// The codec is nil for nil and for a nil interface, which are null. The driver's codec of pointers returns an error when it first meets a
// type without a codec, and panics from then on, so it must not be asked.
func encoderBehind(ec bson.EncodeContext, v reflect.Value) (bson.ValueEncoder, reflect.Value, error) {
	if !v.IsValid() {
		return nil, v, nil
	}
	enc, err := ec.LookupEncoder(v.Type())
	for range maxPointers {
		switch {
		case v.Kind() == reflect.Interface && (err != nil || reflect.TypeOf(enc) == interfaceCodec):
			if v.IsNil() {
				return nil, v, nil
			}
		case v.Kind() != reflect.Pointer || v.IsNil() || reflect.TypeOf(enc) != pointerCodec:
			return enc, v, err
		}
		v = v.Elem()
		enc, err = ec.LookupEncoder(v.Type())
	}
	return enc, v, err
}

// isDocumentOrArray reports whether enc, a codec of the driver or one that stands in for it, writes a document or an array for
// v. What is in it need not be encoded then.
func isDocumentOrArray(ec bson.EncodeContext, enc bson.ValueEncoder, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return driver.IsStructEncoder(driver.EncoderBehind(ec.Registry, enc, v.Type()))
	case reflect.Map:
		return !v.IsNil() && driver.IsMapEncoder(driver.EncoderBehind(ec.Registry, enc, v.Type()))
	case reflect.Slice:
		return !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8 &&
			reflect.TypeOf(driver.EncoderBehind(ec.Registry, enc, v.Type())) == sliceCodec
	default:
		return false
	}
}

// isZero reports whether f is null or zero.
func (f idForm) isZero() bool { return f == nullForm || f == zeroOIDForm || f == zeroUUIDForm }

// refused reports whether d must not be inserted with an _id of the form f.
func (f idForm) refused(d *document) bool {
	if f == genericForm {
		return !d.genericIsID && d.id != nil
	}
	return f.isZero() && !d.zeroIsID
}

// ofDocument returns the error for an _id of the form f in a document.
func (f idForm) ofDocument() error {
	if f == genericForm {
		return f.ofSource()
	}
	return fmt.Errorf("%w: it is %v: give the field the tag omitempty, or the option WithZeroIDAsMissing, for an id of the source; "+
		"WithZeroIDs inserts it", ErrZeroID, f)
}

// ofSource returns the error for an id of the form f that a source gave.
func (f idForm) ofSource() error {
	if f == genericForm {
		return errGenericID
	}
	return fmt.Errorf("%w: the source gave %v; WithZeroIDs inserts it", ErrZeroID, f)
}

// formWriter takes an id and keeps its form alone.
type formWriter struct {
	discard
	form idForm
}

var formWriters = sync.Pool{New: func() any { return new(formWriter) }}

func (w *formWriter) WriteNull() error      { w.form = nullForm; return nil }
func (w *formWriter) WriteUndefined() error { w.form = nullForm; return nil }

func (w *formWriter) WriteObjectID(id bson.ObjectID) error { w.form = objectIDForm(id); return nil }

func (w *formWriter) WriteBinary(b []byte) error {
	w.form = binaryForm(bson.TypeBinaryGeneric, b)
	return nil
}

func (w *formWriter) WriteBinaryWithSubtype(b []byte, subtype byte) error {
	w.form = binaryForm(subtype, b)
	return nil
}

// CopiesBytes says that no byte slice is kept, which lets codecs reuse theirs.
func (w *formWriter) CopiesBytes() bool { return true }
