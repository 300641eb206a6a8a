package structcodec

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// DocumentDecoder decodes whole documents into values that are not structs: a [bson.D], or a map of any type. It
// implements [bson.ValueDecoder], and is to be registered for the type [bson.D] or for the kind [reflect.Map] of the
// registry of its Codec.
//
// The decoder that it was made with decodes instead in the cases that the documentation of [Codec] lists, and values
// within a document that the driver decodes. What decodes the elements is looked up when a type is first decoded,
// except for the type map of the registry, which can be changed at any time.
//
// A DocumentDecoder is safe for concurrent use.
type DocumentDecoder struct {
	codec *Codec
	next  bson.ValueDecoder
	plans perContext[*decodeMode, *typeMap[readFunc]] // nil for a type that next decodes
}

var _ bson.ValueDecoder = (*DocumentDecoder)(nil)

// DocumentDecoder returns a decoder of whole documents. The decoder next is the fallback: the driver's, one with the
// same results, or one that passes types on to such a decoder as a [DecoderDelegator]. The documents that any other
// decoder reads have no plan. DocumentDecoder does not register what it returns.
func (c *Codec) DocumentDecoder(next bson.ValueDecoder) *DocumentDecoder {
	return &DocumentDecoder{codec: c, next: next}
}

// DecoderFor returns the fallback: a document within another one is part of the plan of that one.
func (d *DocumentDecoder) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return d.next }

// plan returns what reads a document into a value of type t, nil if the fallback must do it.
func (d *DocumentDecoder) plan(c *decodeMode, t reflect.Type) readFunc {
	plans := d.plans.get(c, func() *typeMap[readFunc] { return new(typeMap[readFunc]) })
	if read, ok := plans.load(t); ok {
		return read
	}
	var read readFunc
	switch k := knownDecoder(c.resolveDecoder(d.next, t)); {
	case k == knownD && t == tD, k == knownMap && t.Kind() == reflect.Map:
		c.compileDecoder(func(c decodeCompiler) { read, _ = c.compile(t, d.next) })
	}
	return plans.loadOrStore(t, read)
}

// DecodeValue is the ValueDecoder of documents.
func (d *DocumentDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	c := d.codec.atTheTop(&dc, vr)
	if c == nil || !val.IsValid() || !val.CanSet() && (val.Kind() != reflect.Map || val.IsNil()) {
		return d.next.DecodeValue(dc, vr, val)
	}
	read := d.plan(c, val.Type())
	if read == nil {
		return d.next.DecodeValue(dc, vr, val)
	}
	return c.decodeWhole(d.next, vr, val, func(doc []byte) error {
		if !validDocument(doc, 0) {
			return errMalformed
		}
		return read(byte(bson.TypeEmbeddedDocument), doc, val)
	})
}

// ReadDocument decodes doc, a whole BSON document, into v: a map that is not nil, or a pointer to a map, to a [bson.D],
// or to an any. The result is that of a Decoder of the driver with the registry and the options of dc; into an any, that
// of an embedded document. If planned is false, v is unchanged: v or doc needs the driver.
func (d *DocumentDecoder) ReadDocument(dc *bson.DecodeContext, doc []byte, v any) (planned bool, err error) {
	c := d.codec.decodeModeIn(dc)
	if c == nil {
		return false, nil
	}
	if target, ok := v.(*any); ok {
		if target == nil || !validDocument(doc, 0) {
			return false, nil
		}
		x, ok, err := c.any().read(byte(bson.TypeEmbeddedDocument), doc)
		if ok && err == nil {
			*target = x
		}
		return ok || err != nil, err
	}
	val := reflect.ValueOf(v)
	switch val.Kind() {
	case reflect.Map:
		if val.IsNil() {
			return false, nil
		}
	case reflect.Pointer:
		if val.IsNil() {
			return false, nil
		}
		val = val.Elem()
	default:
		return false, nil
	}
	read := d.plan(c, val.Type())
	if read == nil || !validDocument(doc, 0) {
		return false, nil
	}
	return true, read(byte(bson.TypeEmbeddedDocument), doc, val)
}

// DocumentEncoder encodes documents that are not structs: a [bson.D], or a map of any type. It implements
// [bson.ValueEncoder], and is to be registered for the kind [reflect.Slice] or for the kind [reflect.Map] of the registry
// of its Codec. A bson.D is a slice, and its encoder is that of its kind.
//
// The encoder that it was made with encodes instead in the cases that the documentation of [Codec] lists, and documents
// of so few elements that it is faster. What encodes the elements is looked up when a type is first encoded.
//
// A DocumentEncoder is safe for concurrent use.
type DocumentEncoder struct {
	codec *Codec
	next  bson.ValueEncoder
}

var _ bson.ValueEncoder = (*DocumentEncoder)(nil)

// DocumentEncoder returns an encoder of documents. The encoder next is the fallback: the driver's, one with the same
// results, or one that passes types on to such an encoder as an [EncoderDelegator]. The documents that any other encoder
// writes have no plan. DocumentEncoder does not register what it returns.
func (c *Codec) DocumentEncoder(next bson.ValueEncoder) *DocumentEncoder {
	return &DocumentEncoder{codec: c, next: next}
}

// EncoderFor returns the fallback.
func (e *DocumentEncoder) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return e.next }

// EncodeValue is the ValueEncoder of documents.
func (e *DocumentEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !isDocument(val) || !isDriverWriter(vw) {
		return e.next.EncodeValue(ec, vw, val)
	}
	in := e.codec.encodeModeIn(&ec)
	if in == nil {
		return e.next.EncodeValue(ec, vw, val)
	}
	p := in.documentPlan(val.Type())
	if n := val.Len(); p.append == nil || n == 0 || n < p.worth && !(val.CanInterface() && isWorth(val.Interface().(bson.D), p.worth)) {
		return e.next.EncodeValue(ec, vw, val)
	}
	return in.encodeWhole(e.next, vw, val, "_id", func(dst []byte, v reflect.Value) ([]byte, error) {
		_, dst, err := p.append(dst, v)
		return dst, err
	})
}

// isWorth reports whether a DocumentEncoder is faster than the driver for d, which has fewer than n elements: it holds an
// array, or has n elements together with those of the documents in it. An update with an operator, and a filter with $in or
// $or, are such documents.
func isWorth(d bson.D, n int) bool {
	n -= len(d)
	for i := range d {
		switch v := d[i].Value.(type) {
		case bson.D:
			n -= len(v)
		case bson.M:
			n -= len(v)
		case bson.A:
			return true
		}
	}
	return n <= 0
}

// isDocument reports whether val is a map or a [bson.D].
func isDocument(val reflect.Value) bool {
	return val.Kind() == reflect.Map || val.Kind() == reflect.Slice && val.Type() == tD
}

// A documentPlan is how a [bson.D], or a map of one type, is encoded at the top level.
type documentPlan struct {
	append   appendFunc        // nil if the driver must do it
	fallback bson.ValueEncoder // of the DocumentEncoder, nil if the registry has none for the type
	worth    int               // the number of elements from which on a DocumentEncoder is faster than the driver, for a bson.D
	pointer  bool              // the registry encodes a pointer to the value as the driver does
}

func (c *encodeMode) documentPlan(t reflect.Type) *documentPlan {
	if p, ok := c.documents.load(t); ok {
		return p
	}
	p := new(documentPlan)
	if t == tD {
		p.worth = 4
	}
	if enc, err := c.encoderOf(t); err == nil {
		if d, ok := enc.(*DocumentEncoder); ok {
			p.fallback = d.next
		}
		switch k := knownEncoder(c.resolveEncoder(enc, t)); {
		case k == knownSlice && t == tD, k == knownMap && t.Kind() == reflect.Map:
			c.compileEncoder(func(c encodeCompiler) { p.append, _ = c.compile(t, enc) })
		}
		pointer, err := c.encoderOf(reflect.PointerTo(t))
		p.pointer = err == nil && knownEncoder(c.resolveEncoder(pointer, reflect.PointerTo(t))) == knownPointer
	}
	return c.documents.loadOrStore(t, p)
}
