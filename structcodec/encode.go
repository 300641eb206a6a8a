package structcodec

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// An appendFunc appends the BSON value of v to dst and returns its type.
type appendFunc func(dst []byte, v reflect.Value) (bson.Type, []byte, error)

// An encodePlan is how structs of one type are encoded.
type encodePlan struct {
	*Codec
	planned    bool // false if the fallback must do it
	registered bool // planned, and the registry has the Codec for the type
	pointer    bool // the registry encodes a pointer to the struct as the driver does
	fields     []encodeField
	inline     *encodeInlineMap // nil if the struct has none
}

type encodeField struct {
	direct directly // how a field that is not inline and never left out is appended
	one    int      // the index of such a field
	header []byte   // the type or its place, the name, 0
	append appendFunc
	// If direct is directCodec, the codec, and the encoder of which it is a part.
	codec   ValueCodec
	encoder bson.ValueEncoder
	empty   func(reflect.Value) bool // if omitempty is set
	// The field is of an interface type without a codec: the value in it decides.
	dynamic bool
	field
}

// encodePlan returns the plan for t, and compiles it if need be.
func (c *Codec) encodePlan(t reflect.Type) *encodePlan {
	if p, ok := c.encPlans.load(t); ok {
		return p
	}
	var p *encodePlan
	c.compileEncoder(func(plans encodeCompiler) { p = plans.plan(t) })
	return p
}

// firstName returns the key of the first field, "" if there is none.
func (p *encodePlan) firstName() string {
	if len(p.fields) == 0 {
		return ""
	}
	return p.fields[0].name
}

// compileEncoder calls compile and keeps the plans that it makes.
func (c *Codec) compileEncoder(compile func(encodeCompiler)) {
	c.compiling.Lock()
	defer c.compiling.Unlock()
	plans := encodeCompiler{c, map[reflect.Type]*encodePlan{}, map[openType]*openAppend{}}
	compile(plans)
	for t, p := range plans.new {
		c.encPlans.loadOrStore(t, p)
	}
}

// appendDocument appends the document of the struct v.
func (p *encodePlan) appendDocument(dst []byte, v reflect.Value) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var err error
	fields := p.fields
	for i := range fields {
		f := &fields[i]
		// Most fields need no call of a function that is not known.
		switch f.direct {
		case directString:
			dst = appendString(append(dst, f.header...), v.Field(f.one).String())
			continue
		case directInt32:
			dst = binary.LittleEndian.AppendUint32(append(dst, f.header...), uint32(v.Field(f.one).Int()))
			continue
		case directInt64:
			dst = binary.LittleEndian.AppendUint64(append(dst, f.header...), uint64(v.Field(f.one).Int()))
			continue
		case directFloat:
			dst = binary.LittleEndian.AppendUint64(append(dst, f.header...), math.Float64bits(v.Field(f.one).Float()))
			continue
		case directBool:
			dst = appendBool(append(dst, f.header...), v.Field(f.one).Bool())
			continue
		case directCodec:
			at, fv := len(dst), v.Field(f.one)
			t, extended, err := f.codec.AppendValue(append(dst, f.header...), fv)
			if err == ErrNotPlain {
				t, extended, err = appendEncoded(append(dst, f.header...), p.ec, f.encoder, "", fv)
			}
			if err != nil {
				return dst, err
			}
			dst = extended
			dst[at] = byte(t)
			continue
		case directFunc:
			at := len(dst)
			t, extended, err := f.append(append(dst, f.header...), v.Field(f.one))
			if err != nil {
				return dst, err
			}
			dst = extended
			dst[at] = byte(t)
			continue
		}
		if dst, err = p.appendField(dst, f, v); err != nil {
			return dst, err
		}
	}
	if p.inline != nil {
		if dst, err = p.inline.append(dst, v); err != nil {
			return dst, err
		}
	}
	dst = append(dst, 0)
	putLength(dst, start)
	return dst, nil
}

// appendField appends the element of field f of the struct v.
func (p *encodePlan) appendField(dst []byte, f *encodeField, v reflect.Value) ([]byte, error) {
	fv, ok := f.value(v)
	if !ok {
		return dst, nil
	}
	if f.dynamic {
		fv = fv.Elem()
		if !fv.IsValid() {
			if !f.omitEmpty {
				at := len(dst)
				dst = append(dst, f.header...)
				dst[at] = byte(bson.TypeNull)
			}
			return dst, nil
		}
	}
	if f.omitEmpty {
		if f.dynamic { // a value without an encoder is an error even if it is empty
			if _, err := p.dynamicFunc(fv.Type()); err != nil {
				return dst, err
			}
		}
		if f.isEmpty(fv) {
			return dst, nil
		}
	}
	at := len(dst)
	t, extended, err := f.append(append(dst, f.header...), fv)
	if err != nil {
		return dst, err
	}
	extended[at] = byte(t)
	return extended, nil
}

func (f *encodeField) isEmpty(v reflect.Value) bool {
	if f.dynamic {
		return emptyFunc(v.Type())(v)
	}
	return f.empty(v)
}

// putLength sets the length of the document or array that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}

// An encodeCompiler compiles the plan of one type and of the structs within it.
type encodeCompiler struct {
	*Codec
	new  map[reflect.Type]*encodePlan
	open map[openType]*openAppend
}

// An openType is a pointer, slice, array or map type that is being compiled. Like a struct, it can hold itself.
type openType struct {
	t       reflect.Type
	minSize bool
}

// openAppend is what an openType compiles to, nil until it does, and if only its encoder can append the values.
type openAppend struct{ append appendFunc }

func (c encodeCompiler) plan(t reflect.Type) *encodePlan {
	if p, ok := c.encPlans.load(t); ok {
		return p
	}
	if p, ok := c.new[t]; ok {
		return p // a type within itself; the plan is complete when it is used
	}
	p := &encodePlan{Codec: c.Codec}
	c.new[t] = p
	fields, inlineMap, ok := fieldsOf(t, 0)
	if !ok || refused(c.encoder, t) {
		return p
	}
	for _, f := range fields {
		ef := encodeField{field: f}
		ef.header = append(append([]byte{0}, f.name...), 0)
		if f.omitEmpty {
			ef.empty = emptyFunc(f.typ)
		}
		enc, err := c.encoderOf(f.typ)
		switch {
		case err == nil:
			ef.append, ok = c.compile(f.typ, enc, f.minSize)
			if !ok {
				ef.append = c.opaque(enc, f.name, f.minSize)
			} else if len(f.index) == 1 && !f.omitEmpty {
				ef.one = f.index[0]
				c.setDirect(&ef, enc)
			}
		case f.typ.Kind() == reflect.Interface:
			ef.dynamic = true
			ef.append = c.appendDynamic(f.name, f.minSize)
		default:
			return p
		}
		p.fields = append(p.fields, ef)
	}
	if inlineMap >= 0 {
		if p.inline = c.inlineMap(t, inlineMap, fields); p.inline == nil {
			return p
		}
	}
	pointer, err := c.encoderOf(reflect.PointerTo(t))
	p.pointer = err == nil && knownEncoder(pointer) == knownPointer
	own, err := c.encoderOf(t)
	p.registered = err == nil && same(own, c.Codec)
	p.planned = true
	return p
}

// directly is how a value is appended by the plan itself.
type directly uint8

const (
	notDirectly directly = iota
	directString
	directInt32
	directInt64
	directFloat
	directBool
	directCodec
	directFunc
)

// setDirect sets how the values of f are appended by the plan itself, if it can.
func (c encodeCompiler) setDirect(f *encodeField, enc bson.ValueEncoder) {
	resolved := c.resolveEncoder(enc, f.typ)
	if vc, ok := resolved.(ValueCodec); ok {
		f.direct, f.codec, f.encoder = directCodec, vc, enc
		return
	}
	f.direct = directFunc
	t := bson.Type(0)
	switch k := knownEncoder(resolved); {
	case k == knownString:
		f.direct, t = directString, bson.TypeString
	case k == knownBool:
		f.direct, t = directBool, bson.TypeBoolean
	case k == knownFloat:
		f.direct, t = directFloat, bson.TypeDouble
	case k == knownInt && f.typ.Kind() == reflect.Int64 && !f.minSize:
		f.direct, t = directInt64, bson.TypeInt64
	case k == knownInt && (f.typ.Kind() == reflect.Int32 || f.typ.Kind() == reflect.Int16 || f.typ.Kind() == reflect.Int8):
		f.direct, t = directInt32, bson.TypeInt32
	}
	f.header[0] = byte(t)
}

// opaque returns what passes a value to its encoder.
func (c *Codec) opaque(enc bson.ValueEncoder, name string, minSize bool) appendFunc {
	ec := c.ec
	if minSize {
		ec = c.minSize
	}
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return appendEncoded(dst, ec, enc, name, v)
	}
}

// appendDynamic returns what encodes the value in an interface.
func (c *Codec) appendDynamic(name string, minSize bool) appendFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		if minSize {
			enc, err := c.encoderOf(v.Type())
			if err != nil {
				return 0, dst, err
			}
			return appendEncoded(dst, c.minSize, enc, name, v)
		}
		f, err := c.dynamicFunc(v.Type())
		if err != nil {
			return 0, dst, err
		}
		return f(dst, v)
	}
}

// dynamicFunc returns how a value in an interface is encoded. As the driver looks the encoder up each
// time, so does the plan.
func (c *Codec) dynamicFunc(t reflect.Type) (appendFunc, error) {
	if f, ok := c.dynamic.load(t); ok {
		return f, nil
	}
	enc, err := c.encoderOf(t)
	if err != nil {
		return nil, err
	}
	var f appendFunc
	var ok bool
	c.compileEncoder(func(plans encodeCompiler) { f, ok = plans.compile(t, enc, false) })
	if !ok {
		f = c.opaque(enc, "", false)
	}
	return c.dynamic.loadOrStore(t, f), nil
}

// emptyFunc returns what tells whether the driver takes a value of type t for empty.
func emptyFunc(t reflect.Type) func(reflect.Value) bool {
	kind := t.Kind()
	switch {
	case kind == reflect.Interface:
		return reflect.Value.IsNil
	case t == tTime:
		return func(v reflect.Value) bool { return timeOf(v).IsZero() }
	case t == tObjectID || t == tDecimal128:
		return reflect.Value.IsZero // as their methods do, which would be called on a copy
	case t.Implements(tZeroer):
		return func(v reflect.Value) bool {
			if kind == reflect.Pointer && v.IsNil() {
				return true
			}
			return v.Interface().(bson.Zeroer).IsZero()
		}
	case kind == reflect.Array, kind == reflect.Map, kind == reflect.Slice, kind == reflect.String:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case kind == reflect.Struct:
		return func(reflect.Value) bool { return false }
	default:
		return reflect.Value.IsZero
	}
}

// hasZero reports whether a key cannot be written.
func hasZero(key string) bool { return strings.IndexByte(key, 0) >= 0 }
