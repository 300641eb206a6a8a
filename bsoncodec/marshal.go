package bsoncodec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// documentEncoder is an encoder with the writer that it writes to, and the buffer of that. It can be used again after a
// document that was written whole.
type documentEncoder struct {
	buf bytes.Buffer
	vw  bson.ValueWriter
	enc *bson.Encoder
}

var documentEncoders = sync.Pool{New: func() any {
	e := new(documentEncoder)
	e.vw = bson.NewDocumentWriter(&e.buf)
	e.enc = bson.NewEncoder(e.vw)
	return e
}}

// document returns the document that write writes.
func document(write func(*documentEncoder) error) ([]byte, error) {
	e := documentEncoders.Get().(*documentEncoder)
	e.buf.Reset()
	if err := write(e); err != nil {
		return nil, err // e is left in the middle of a document
	}
	data := bytes.Clone(e.buf.Bytes())
	if e.buf.Cap() <= maxPooled {
		documentEncoders.Put(e)
	}
	return data, nil
}

// Marshal returns v as a BSON document, encoded with reg. It is [bson.Marshal] but for the registry, which that one
// does not take; errors are those of the codecs, and [bson.ErrNilRegistry].
func Marshal(reg *bson.Registry, v any) ([]byte, error) {
	if reg == nil {
		return nil, errNilRegistry("encode")
	}
	return document(func(e *documentEncoder) error {
		e.enc.SetRegistry(reg)
		return e.enc.Encode(v)
	})
}

// Unmarshal decodes the BSON document data with reg into v, a pointer that is not nil or a map. It is [bson.Unmarshal]
// but for the registry; errors are those of the codecs, [bson.ErrNilRegistry], [bson.ErrDecodeToNil], and one for data
// that is not as long as its first four octets say.
//
// Data that no server has checked should pass [bson.Raw.Validate] first: the driver's reader, of version 2.9.3, never
// comes back from skipping a value with a negative length.
//
// It reads from memory, where the Decode and All methods of a mongo.Cursor read from a stream: Unmarshal on
// Cursor.Current is the fastest way to decode what a cursor returns.
func Unmarshal(reg *bson.Registry, data []byte, v any) error {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) != uint64(len(data)) {
		return fmt.Errorf("bsoncodec: invalid document length: the document has %d octets and says otherwise", len(data))
	}
	if reg == nil {
		return errNilRegistry("decode")
	}
	switch target := v.(type) {
	case bson.Unmarshaler: // comes before the registry, as in the driver's Decoder
		if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || !p.IsNil() {
			return target.UnmarshalBSON(bytes.Clone(data))
		}
	case *any:
		if target != nil && !sameAtTheTop(reg) {
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(data)))
			dec.SetRegistry(reg)
			return dec.Decode(v)
		}
	}
	return UnmarshalValue(reg, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: data}, v)
}

// sameAtTheTop reports whether the type map of reg has any receive the same type for a whole document, of no BSON type,
// as for one within another. A RawValue, the way to the reader from memory, can be the latter alone.
func sameAtTheTop(reg *bson.Registry) bool {
	top, errTop := reg.LookupTypeMapEntry(0)
	embedded, errEmbedded := reg.LookupTypeMapEntry(bson.TypeEmbeddedDocument)
	return errTop == nil && errEmbedded == nil && top == embedded
}

// MarshalExtJSON returns v as an Extended JSON document, encoded with reg. It is [bson.MarshalExtJSON] but for the
// registry; errors are those of the codecs, and [bson.ErrNilRegistry].
func MarshalExtJSON(reg *bson.Registry, v any, canonical, escapeHTML bool) ([]byte, error) {
	if reg == nil {
		return nil, errNilRegistry("encode")
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, canonical, escapeHTML))
	enc.SetRegistry(reg)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// UnmarshalExtJSON decodes the Extended JSON document data with reg into v, a pointer that is not nil or a map; a UUID
// may be written as $uuid or as $binary. It is [bson.UnmarshalExtJSON] but for the registry; errors are those of the
// parser and the codecs, [bson.ErrNilRegistry] and [bson.ErrDecodeToNil].
//
// Text that may be malformed should pass [encoding/json.Valid] first: the driver's parser, of version 2.9.3, never comes back
// from skipping an object or an array that does not end.
func UnmarshalExtJSON(reg *bson.Registry, data []byte, canonical bool, v any) error {
	if reg == nil {
		return errNilRegistry("decode")
	}
	vr, err := bson.NewExtJSONValueReader(bytes.NewReader(data), canonical)
	if err != nil {
		return err
	}
	dec := bson.NewDecoder(vr)
	dec.SetRegistry(reg)
	return dec.Decode(v)
}

// MarshalValue returns v as one BSON value, encoded with reg: for client-side encryption and hand-made commands. A nil
// v is null. It is [bson.MarshalValue] but for the registry, with the errors of [Marshal].
func MarshalValue(reg *bson.Registry, v any) (bson.RawValue, error) {
	if reg == nil {
		return bson.RawValue{}, errNilRegistry("encode")
	}
	doc, err := document(func(e *documentEncoder) error {
		dw, err := e.vw.WriteDocument()
		if err != nil {
			return err
		}
		vw, err := dw.WriteDocumentElement("")
		if err != nil {
			return err
		}
		if err := encodeElement(reg, vw, v); err != nil {
			return err
		}
		return dw.WriteDocumentEnd()
	})
	if err != nil {
		return bson.RawValue{}, err
	}
	// int32 length, type, empty key, value, end
	return bson.RawValue{Type: bson.Type(doc[4]), Value: doc[6 : len(doc)-1 : len(doc)-1]}, nil
}

// encodeElement writes v as the driver's encoder of bson.D writes an element; the registry may have another one for these.
func encodeElement(reg *bson.Registry, vw bson.ValueWriter, v any) error {
	if v == nil {
		return vw.WriteNull()
	}
	enc, err := reg.LookupEncoder(reflect.TypeOf(v))
	if err != nil {
		return err
	}
	return enc.EncodeValue(bson.EncodeContext{Registry: reg}, vw, reflect.ValueOf(v))
}

// UnmarshalValue decodes the BSON value rv with reg into v, a pointer that is not nil or a map. It is
// [bson.UnmarshalValue] but for the registry; errors are those of the codecs, [bson.ErrNilRegistry] and
// [bson.ErrDecodeToNil].
func UnmarshalValue(reg *bson.Registry, rv bson.RawValue, v any) error {
	if reg == nil {
		return errNilRegistry("decode")
	}
	target := reflect.ValueOf(v)
	switch target.Kind() {
	case reflect.Pointer:
		if target.IsNil() {
			return errDecodeToNil
		}
	case reflect.Map:
		if target.IsNil() {
			return errDecodeToNil
		}
		p := reflect.New(target.Type())
		p.Elem().Set(target)
		v = p.Interface()
	case reflect.Invalid:
		return errDecodeToNil
	default:
		return fmt.Errorf("bsoncodec: cannot decode into a %T: it must be a pointer or a map", v)
	}
	return rv.UnmarshalWithRegistry(reg, v)
}

// Native returns v as reg would decode it into any once it was stored: a [bson.Binary] becomes a UUID where the
// registry's representation says so. The driver returns the UpsertedID of an update as a Binary whatever the registry;
// Native(reg, result.UpsertedID) is what InsertedID would have been. Errors are those of [Marshal] and [Unmarshal].
func Native(reg *bson.Registry, v any) (any, error) {
	rv, err := MarshalValue(reg, v)
	if err != nil {
		return nil, err
	}
	var native any
	if err := UnmarshalValue(reg, rv, &native); err != nil {
		return nil, err
	}
	return native, nil
}

var errDecodeToNil = fmt.Errorf("bsoncodec: %w", bson.ErrDecodeToNil)

func errNilRegistry(verb string) error {
	return fmt.Errorf("bsoncodec: cannot %s: %w", verb, bson.ErrNilRegistry)
}
