package structcodec

import (
	"math"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// ValueCodec is the ValueCodec of package bsoncodec, with the same methods.
type ValueCodec interface {
	AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error)
	ReadValue(t bson.Type, data []byte, v reflect.Value) error
}

// Codec encodes and decodes structs. It implements [bson.ValueEncoder] and [bson.ValueDecoder], and is to be registered
// for the kind [reflect.Struct] of one registry.
//
// A plan is compiled when a type is first encoded, or first decoded, with the options of a context. It has the codecs that
// the registry has at that time for the types of the fields, and so have all later plans. A codec or a hook that is
// registered later is obeyed for the types that the Codec meets after that, and not for those that it has met. The type map
// is obeyed at any time. The fallback looks the codecs of some types up each time, as the driver does.
//
// The fallback encodes and decodes if
//   - the context belongs to another registry, or has an option that this package does not know: one that is newer than
//     those of [go.mongodb.org/mongo-driver/v2/mongo/options.BSONOptions] in version 2.10.0 of the driver;
//   - the writer or the reader is not the one of BSON documents of the driver: Extended JSON, or a caller's own. A writer
//     that passes everything on to the driver's can have a method Unwrap that returns it;
//   - a struct is decoded within a value that the driver decodes, such as a slice at the top level;
//   - the type has a field without a codec, an inline map of values without one, or tags that the driver refuses; or it
//     has an inline map and a field of an interface type, and is decoded;
//   - the document is malformed, or nests deeper than 200 levels and is checked first;
//   - the length of the document is not known before it is read, or is more than 24 KiB and not in memory. A
//     [bytes.Reader], as that of a cursor, and a [bytes.Buffer] are in memory. Of any other stream, the first document
//     is one of unknown length;
//   - a hook, a [bson.RawValue] or a [bson.Raw] holds bytes that are not a BSON value, or an encoder does not write
//     exactly one value, or an inline map has the key of a field. The hooks and the encoders of the document are then
//     called once more.
//
// A field whose codec is not known to the plan is passed to that codec alone.
//
// If codecs or methods of the caller take part in decoding, the whole document is checked first. Otherwise the plan checks
// it while it decodes; if the document is malformed, the fallback decodes it once more into the same target.
//
// What differs from the driver's codec is listed in docs/performance.md.
//
// A Codec is safe for concurrent use.
type Codec struct {
	reg     *bson.Registry
	encoder bson.ValueEncoder
	decoder bson.ValueDecoder
	// What a ValueCodec returns for a value that it leaves to its EncodeValue or DecodeValue method.
	notPlain error

	// Without options, and with some.
	encodeMode  *encodeMode
	encodeModes perContext[bson.EncodeContext, *encodeMode]
	decodeMode  *decodeMode
	decodeModes perContext[bson.DecodeContext, *decodeMode]

	compiling sync.Mutex
	encoders  typeMap[bson.ValueEncoder] // that plans use
	decoders  typeMap[bson.ValueDecoder]
}

var (
	_ bson.ValueEncoder = (*Codec)(nil)
	_ bson.ValueDecoder = (*Codec)(nil)
)

// New returns a Codec for structs in the registry reg. The encoder and the decoder are the fallback: the driver's
// struct codec, or one with the same results. The methods of a [ValueCodec] return notPlain for a value that they leave to
// the EncodeValue or DecodeValue method of the codec. New does not register the Codec.
func New(reg *bson.Registry, encoder bson.ValueEncoder, decoder bson.ValueDecoder, notPlain error) *Codec {
	c := &Codec{reg: reg, encoder: encoder, decoder: decoder, notPlain: notPlain}
	c.encodeMode = c.newEncodeMode(bson.EncodeContext{Registry: reg}, driver.Options{})
	c.decodeMode = c.newDecodeMode(bson.DecodeContext{Registry: reg}, driver.Options{})
	return c
}

// encoderOf returns the encoder that the registry had for values of type t when a plan first needed it.
func (c *Codec) encoderOf(t reflect.Type) (bson.ValueEncoder, error) {
	if enc, ok := c.encoders.load(t); ok {
		return enc, nil
	}
	enc, err := c.reg.LookupEncoder(t)
	if err != nil {
		return nil, err
	}
	return c.encoders.loadOrStore(t, enc), nil
}

// decoderOf returns the decoder that the registry had for values of type t when a plan first needed it.
func (c *Codec) decoderOf(t reflect.Type) (bson.ValueDecoder, error) {
	if dec, ok := c.decoders.load(t); ok {
		return dec, nil
	}
	dec, err := c.reg.LookupDecoder(t)
	if err != nil {
		return nil, err
	}
	return c.decoders.loadOrStore(t, dec), nil
}

// EncodeValue is the ValueEncoder of structs.
func (c *Codec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	e := c.encodeModeIn(&ec)
	if e == nil || !isDriverWriter(vw) || val.Kind() != reflect.Struct {
		return c.encoder.EncodeValue(ec, vw, val)
	}
	p := e.encodePlan(val.Type())
	if !p.planned {
		return c.encoder.EncodeValue(ec, vw, val)
	}
	return e.encodeWhole(c.encoder, vw, val, p.firstName(), p.appendDocument)
}

// encodeWhole writes to vw the document that append makes of val, with fallback if it returns errMalformed. The name is
// the key of the first element, or another one.
func (c *encodeMode) encodeWhole(
	fallback bson.ValueEncoder, vw bson.ValueWriter, val reflect.Value, name string,
	appendDocument func([]byte, reflect.Value) ([]byte, error),
) error {
	buf := buffers.Get().(*buffer)
	doc, err := appendDocument(buf.octets[:0], val)
	if err == errMalformed || len(doc) > math.MaxInt32 {
		return fallback.EncodeValue(c.ec, vw, val)
	}
	switch {
	case err == nil:
		err = buf.write(c, vw, doc, name)
	default:
		err = c.encodeError(val, err)
		// The driver begins the document before it meets the error. It may not get as far.
		if _, begin := vw.WriteDocument(); begin != nil {
			err = begin
		}
	}
	buf.keep(doc)
	return err
}

// AppendDocument appends the document of v to dst: a struct, a [bson.D], a map, or a pointer to one. The result is that
// of an Encoder of the driver with the registry and the options of ec. If planned is false, nothing was encoded, and the
// driver must encode v. AppendDocument does not keep ec, which is a pointer because a copy takes as long as a field.
func (c *Codec) AppendDocument(ec *bson.EncodeContext, dst []byte, v any) (doc []byte, planned bool, err error) {
	e := c.encodeModeIn(ec)
	if e == nil {
		return dst, false, nil
	}
	val := reflect.ValueOf(v)
	pointer := val.Kind() == reflect.Pointer
	if pointer {
		val = val.Elem()
	}
	switch val.Kind() {
	case reflect.Struct:
		p := e.encodePlan(val.Type())
		if !p.registered || pointer && !p.pointer {
			return dst, false, nil
		}
		doc, err = p.appendDocument(dst, val)
	case reflect.Slice, reflect.Map:
		p := e.documentPlan(val.Type())
		if p.append == nil || pointer && !p.pointer || val.IsNil() {
			return dst, false, nil
		}
		_, doc, err = p.append(dst, val)
	default:
		return dst, false, nil
	}
	if err == errMalformed || len(doc)-len(dst) > math.MaxInt32 {
		return dst, false, nil
	}
	if err != nil {
		err = e.encodeError(val, err)
	}
	return doc, true, err
}

// encodeError returns err, an error of encoding val, as the fallback does that encodes val, or that of structs. It may know
// more about the error.
func (c *encodeMode) encodeError(val reflect.Value, err error) error {
	fallbacks := [2]bson.ValueEncoder{1: c.encoder}
	if isDocument(val) {
		fallbacks[0] = c.documentPlan(val.Type()).fallback
	}
	for _, enc := range fallbacks {
		if e, ok := enc.(interface {
			EncodeError(bson.EncodeContext, reflect.Value, error) error
		}); ok {
			return e.EncodeError(c.ec, val, err)
		}
	}
	return err
}

// DecodeValue is the ValueDecoder of structs.
func (c *Codec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	d := c.atTheTop(&dc, vr)
	if d == nil || !val.CanSet() || val.Kind() != reflect.Struct {
		return c.decoder.DecodeValue(dc, vr, val)
	}
	p := d.decodePlan(val.Type())
	if !p.planned {
		return c.decoder.DecodeValue(dc, vr, val)
	}
	return d.decodeWhole(c.decoder, vr, val, func(doc []byte) error { return p.decode(doc, val) })
}

// atTheTop returns the decodeMode for dc, nil if vr is not a reader of the driver before a whole document. A reader at the
// top level has no type. Below it, the driver's codec is in the middle of a document of which only that codec knows the
// end.
func (c *Codec) atTheTop(dc *bson.DecodeContext, vr bson.ValueReader) *decodeMode {
	if reflect.TypeOf(vr) != driverReader || vr.Type() != 0 {
		return nil
	}
	return c.decodeModeIn(dc)
}

// decodeWhole reads the document at vr and decodes it into val: with fallback if it cannot be read at once, or if read
// returns errMalformed.
func (c *decodeMode) decodeWhole(fallback bson.ValueDecoder, vr bson.ValueReader, val reflect.Value, read func([]byte) error) error {
	from, whole := streamAt(vr)
	switch {
	case !whole:
		return fallback.DecodeValue(c.dc, vr, val)
	case from.doc != nil:
		from.skip()
		return c.decodeRead(fallback, from.doc, val, read)
	}
	buf := buffers.Get().(*buffer)
	doc, err := buf.read(vr)
	if err != nil {
		return c.errStream(fallback, vr, val, err)
	}
	err = c.decodeRead(fallback, doc, val, read)
	buf.keep(doc)
	return err
}

// decodeRead decodes doc, which has been read, into val.
func (c *decodeMode) decodeRead(fallback bson.ValueDecoder, doc []byte, val reflect.Value, read func([]byte) error) error {
	err := read(doc)
	if err == errMalformed {
		err = c.decodeMalformed(fallback, doc, val)
	}
	if err != nil {
		err = c.errorFor(val, err)
	}
	return err
}

// errorFor returns err, an error of decoding a whole document into val, as the fallback does, which may know more about it.
func (c *Codec) errorFor(val reflect.Value, err error) error {
	if val.Kind() == reflect.Slice { // the decoder of a bson.D is not the fallback of c
		return err
	}
	if d, ok := c.decoder.(interface{ DecodeError(error) error }); ok {
		return d.DecodeError(err)
	}
	return err
}

// ReadDocument decodes doc, a whole BSON document, into v, a pointer to a struct, or a pointer to such a pointer. The
// result is that of a Decoder of the driver with the registry and the options of dc; a nil dc has no options. If planned is
// false, the driver must decode doc. If doc is malformed, v can have values of it then.
func (c *Codec) ReadDocument(dc *bson.DecodeContext, doc []byte, v any) (planned bool, err error) {
	d := c.decodeModeIn(dc)
	val := reflect.ValueOf(v)
	if d == nil || val.Kind() != reflect.Pointer || val.IsNil() {
		return false, nil
	}
	val = val.Elem()
	t := val.Type()
	pointer := t.Kind() == reflect.Pointer
	if pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false, nil
	}
	p := d.decodePlan(t)
	if !p.registered || pointer && !p.pointer {
		return false, nil
	}
	if pointer {
		if val.IsNil() {
			val.Set(reflect.New(t))
		}
		val = val.Elem()
	}
	if err = p.decode(doc, val); err == errMalformed {
		return false, nil
	}
	return true, err
}

// A ContextEncoder is a [ValueCodec] that plans use for contexts with options, too.
type ContextEncoder interface {
	// EncoderIn returns a ValueCodec whose AppendValue has the results of EncodeValue in the context ec, nil if there is
	// none. It is called when a plan is compiled.
	EncoderIn(ec bson.EncodeContext) ValueCodec
}

// A ContextDecoder is a [ValueCodec] that plans use for contexts with options, too.
type ContextDecoder interface {
	// DecoderIn returns a ValueCodec whose ReadValue has the results of DecodeValue in the context dc, nil if there is
	// none. It is called when a plan is compiled.
	DecoderIn(dc bson.DecodeContext) ValueCodec
}

// AppendValue appends the BSON value of v, which is not nil, to dst, as the driver encodes it in the context ec within a
// document, and returns its type. If planned is false, nothing was encoded.
func (c *Codec) AppendValue(ec *bson.EncodeContext, dst []byte, v any) (t bson.Type, value []byte, planned bool, err error) {
	e := c.encodeModeIn(ec)
	if e == nil || v == nil {
		return 0, dst, false, nil
	}
	val := reflect.ValueOf(v)
	f, err := e.dynamicFunc(val.Type())
	if err != nil {
		return 0, dst, false, nil
	}
	t, value, err = f(dst, val)
	if err == errMalformed || len(value)-len(dst) > math.MaxInt32 {
		return 0, dst, false, nil
	}
	if err != nil {
		err = e.encodeError(val, err)
	}
	return t, value, true, err
}

// ReadValue decodes the BSON value of type t in data into v, a pointer that is not nil, as the driver decodes it in the
// context dc within a document. If planned is false, v is unchanged: v or data needs the driver.
func (c *Codec) ReadValue(dc *bson.DecodeContext, t bson.Type, data []byte, v any) (planned bool, err error) {
	d := c.decodeModeIn(dc)
	if d == nil {
		return false, nil
	}
	val := reflect.ValueOf(v).Elem()
	read := d.valuePlan(val.Type())
	if read == nil || checkValue(byte(t), data, 0) != len(data) {
		return false, nil
	}
	return true, read(byte(t), data, val)
}

// valuePlan returns what reads values of type t, nil if only the driver can do it.
func (c *decodeMode) valuePlan(t reflect.Type) readFunc {
	if read, ok := c.values.load(t); ok {
		return read
	}
	var read readFunc
	if dec, err := c.decoderOf(t); err == nil {
		c.compileDecoder(func(plans decodeCompiler) { read, _ = plans.compile(t, dec) })
	}
	return c.values.loadOrStore(t, read)
}

// EncoderDelegator is an encoder that passes the values of some types on to another one. A plan then looks at that one.
type EncoderDelegator interface {
	// EncoderFor returns the encoder of values of type t in the registry reg, which is the receiver if it encodes them
	// itself. It is called when a plan is compiled, and must not encode or decode with reg.
	EncoderFor(reg *bson.Registry, t reflect.Type) bson.ValueEncoder
}

// DecoderDelegator is a decoder that passes the values of some types on to another one. A plan then looks at that one.
type DecoderDelegator interface {
	// DecoderFor returns the decoder of values of type t in the registry reg, which is the receiver if it decodes them
	// itself. It is called when a plan is compiled, and must not encode or decode with reg.
	DecoderFor(reg *bson.Registry, t reflect.Type) bson.ValueDecoder
}

// A Refuser is a fallback that does not do for all types what the driver does. The types that it refuses have no plan.
type Refuser interface {
	Refuses(t reflect.Type) bool
}

// refused reports whether a fallback refuses t.
func refused(fallback any, t reflect.Type) bool {
	r, ok := fallback.(Refuser)
	return ok && r.Refuses(t)
}

// maxDelegations is how often an encoder or a decoder may pass a type on.
const maxDelegations = 8

// resolveEncoder returns the encoder to which enc passes values of type t on, or enc.
func (c *Codec) resolveEncoder(enc bson.ValueEncoder, t reflect.Type) bson.ValueEncoder {
	for range maxDelegations {
		d, ok := enc.(EncoderDelegator)
		if !ok {
			break
		}
		next := d.EncoderFor(c.reg, t)
		if same(next, enc) {
			break
		}
		enc = next
	}
	return enc
}

// resolveDecoder returns the decoder to which dec passes values of type t on, or dec.
func (c *Codec) resolveDecoder(dec bson.ValueDecoder, t reflect.Type) bson.ValueDecoder {
	for range maxDelegations {
		d, ok := dec.(DecoderDelegator)
		if !ok {
			break
		}
		next := d.DecoderFor(c.reg, t)
		if same(next, dec) {
			break
		}
		dec = next
	}
	return dec
}

// same reports whether a and b are the same codec. Functions cannot be compared.
func same(a, b any) bool {
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}

// EncodesStructsAsTheDriver says that the keys and the values that c writes are those of the driver.
func (*Codec) EncodesStructsAsTheDriver() {}

// DecodesStructsAsTheDriver says that c reads what the driver reads.
func (*Codec) DecodesStructsAsTheDriver() {}
