package structcodec

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// An appendFunc appends the BSON value of v to dst and returns its type.
type appendFunc func(dst []byte, v reflect.Value) (bson.Type, []byte, error)

// An encodePlan is how structs of one type are encoded.
type encodePlan struct {
	*encodeMode
	planned    bool   // false if the fallback must do it
	why        string // it is not planned
	registered bool   // planned, and the registry has the Codec for the type
	pointer    bool   // the registry encodes a pointer to the struct as the driver does
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
	in      *encodeMode // of the value
	elements.Field
}

// encodePlan returns the plan for t, and compiles it if need be.
func (c *encodeMode) encodePlan(t reflect.Type) *encodePlan {
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
	return p.fields[0].Name
}

// compileEncoder calls compile and keeps the plans that it makes.
func (c *encodeMode) compileEncoder(compile func(encodeCompiler)) {
	c.compiling.Lock()
	defer c.compiling.Unlock()
	plans := encodeCompiler{c, map[encodedType]*encodePlan{}, map[encodedType]*openAppend{}}
	compile(plans)
	for t, p := range plans.new {
		t.in.encPlans.loadOrStore(t.t, p)
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
			if err != nil {
				if err != p.notPlain {
					return dst, err
				}
				if t, extended, err = appendEncoded(append(dst, f.header...), f.in.ec, f.encoder, "", fv); err != nil {
					return dst, err
				}
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
	fv, ok := f.Value(v)
	if !ok {
		return dst, nil
	}
	if f.dynamic {
		fv = fv.Elem()
		if !fv.IsValid() {
			if !f.OmitEmpty {
				at := len(dst)
				dst = append(dst, f.header...)
				dst[at] = byte(bson.TypeNull)
			}
			return dst, nil
		}
	}
	if f.OmitEmpty {
		empty := f.empty
		if f.dynamic {
			if _, err := f.in.dynamicFunc(fv.Type()); err != nil { // even if the value is empty
				return dst, err
			}
			empty = emptyFunc(fv.Type(), p.OmitZeroStruct)
		}
		if empty(fv) {
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

// putLength sets the length of the document or array that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}

// An encodeCompiler compiles the plan of one type and of the structs within it.
type encodeCompiler struct {
	*encodeMode
	new  map[encodedType]*encodePlan
	open map[encodedType]*openAppend // the pointers, slices, arrays and maps that are being compiled
}

// An encodedType is a type in a context. Like a struct, a pointer, slice, array or map type can hold itself.
type encodedType struct {
	in *encodeMode
	t  reflect.Type
}

// openAppend is what a type that is being compiled compiles to, nil until it does, and if only its encoder can append the values.
type openAppend struct{ append appendFunc }

func (c encodeCompiler) plan(t reflect.Type) *encodePlan {
	if p, ok := c.encPlans.load(t); ok {
		return p
	}
	key := encodedType{c.encodeMode, t}
	if p, ok := c.new[key]; ok {
		return p // a type within itself; the plan is complete when it is used
	}
	p := &encodePlan{encodeMode: c.encodeMode}
	c.new[key] = p
	fields, inlineMap, err := elements.Reading{JSON: c.UseJSONStructTags, NoDuplicates: c.ErrorOnInlineDuplicates}.Of(t)
	switch {
	case err != nil:
		p.why = err.Error()
		return p
	case refused(c.encoder, t):
		p.why = "its codec refuses the type"
		return p
	}
	for _, f := range fields {
		of := c
		if of.encodeMode = c.field(f.MinSize); of.encodeMode == nil {
			p.why = unknownContext
			return p
		}
		f.OmitEmpty = f.OmitEmpty || c.OmitEmpty
		ef := encodeField{Field: f, in: of.encodeMode}
		ef.header = append(append([]byte{0}, f.Name...), 0)
		if f.OmitEmpty {
			ef.empty = emptyFunc(f.Type, c.OmitZeroStruct)
		}
		enc, err := c.encoderOf(f.Type)
		switch {
		case err == nil:
			var ok bool
			if ef.append, ok = of.compile(f.Type, enc); !ok {
				ef.append = of.opaque(enc, f.Name)
			} else if len(f.Index) == 1 && !f.OmitEmpty {
				ef.one = f.Index[0]
				of.setDirect(&ef, enc)
			}
		case f.Type.Kind() == reflect.Interface:
			ef.dynamic = true
			ef.append = of.appendDynamic()
		default:
			p.why = noCodec(f.Name, f.Type)
			return p
		}
		p.fields = append(p.fields, ef)
	}
	if inlineMap >= 0 {
		if p.inline, p.why = c.inlineMap(t, inlineMap, fields); p.inline == nil {
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
	resolved := c.resolveEncoder(enc, f.Type)
	if vc := c.valueCodec(resolved); vc != nil {
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
	case k == knownInt && f.Type.Kind() == reflect.Int64 && !c.IntMinSize:
		f.direct, t = directInt64, bson.TypeInt64
	case k == knownInt && (f.Type.Kind() == reflect.Int32 || f.Type.Kind() == reflect.Int16 || f.Type.Kind() == reflect.Int8):
		f.direct, t = directInt32, bson.TypeInt32
	}
	f.header[0] = byte(t)
}

// valueCodec returns what encodes values in the context of c if enc takes part in plans, or nil.
func (c *encodeMode) valueCodec(enc bson.ValueEncoder) ValueCodec {
	vc, ok := enc.(ValueCodec)
	if !ok || c.plain {
		return vc
	}
	if in, ok := enc.(ContextEncoder); ok {
		return in.EncoderIn(c.ec)
	}
	return nil
}

// opaque returns what passes a value to its encoder. It is not inlined, so that sameCode knows what it returns.
//
//go:noinline
func (c *encodeMode) opaque(enc bson.ValueEncoder, name string) appendFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		return appendEncoded(dst, c.ec, enc, name, v)
	}
}

// appendDynamic returns what encodes the value in an interface.
func (c *encodeMode) appendDynamic() appendFunc {
	return func(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
		f, err := c.dynamicFunc(v.Type())
		if err != nil {
			return 0, dst, err
		}
		return f(dst, v)
	}
}

// dynamicFunc returns how a value of type t in an interface is encoded.
func (c *encodeMode) dynamicFunc(t reflect.Type) (appendFunc, error) {
	if f, ok := c.dynamic.load(t); ok {
		return f, nil
	}
	enc, err := c.encoderOf(t)
	if err != nil {
		return nil, err
	}
	var f appendFunc
	var ok bool
	c.compileEncoder(func(plans encodeCompiler) { f, ok = plans.compile(t, enc) })
	if !ok {
		f = c.opaque(enc, "")
	}
	return c.dynamic.loadOrStore(t, f), nil
}

// emptyFunc returns what tells whether the driver takes a value of type t for empty. With omitZeroStruct, a struct is
// empty if all its fields are that the driver looks at: those that are exported or embedded.
func emptyFunc(t reflect.Type, omitZeroStruct bool) func(reflect.Value) bool {
	if t.Kind() == reflect.Interface {
		return reflect.Value.IsNil
	}
	return emptyPart(t, omitZeroStruct)
}

// emptyPart is emptyFunc for a part of a struct. The driver does not look into an interface there.
func emptyPart(t reflect.Type, omitZeroStruct bool) func(reflect.Value) bool {
	kind := t.Kind()
	switch {
	case t == tTime:
		return func(v reflect.Value) bool { return timeOf(v).IsZero() }
	case t == tObjectID || t == tDecimal128:
		return func(v reflect.Value) bool {
			if !v.CanInterface() { // part of an embedded field that is not exported, for which the driver panics
				return v.Interface().(bson.Zeroer).IsZero()
			}
			return v.IsZero() // as their methods do, which would be called on a copy
		}
	case t.Implements(tZeroer):
		return func(v reflect.Value) bool {
			if kind == reflect.Pointer && v.IsNil() {
				return true
			}
			return v.Interface().(bson.Zeroer).IsZero()
		}
	case kind == reflect.Array, kind == reflect.Map, kind == reflect.Slice, kind == reflect.String:
		return func(v reflect.Value) bool { return v.Len() == 0 }
	case kind == reflect.Struct && omitZeroStruct:
		return emptyStruct(t)
	case kind == reflect.Struct:
		return func(reflect.Value) bool { return false }
	default:
		return reflect.Value.IsZero
	}
}

// emptyStruct returns what tells whether the fields of a struct of type t are empty.
func emptyStruct(t reflect.Type) func(reflect.Value) bool {
	type part struct {
		index int
		empty func(reflect.Value) bool
	}
	var parts []part
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			parts = append(parts, part{i, emptyPart(f.Type, true)})
		}
	}
	return func(v reflect.Value) bool {
		for _, p := range parts {
			if !p.empty(v.Field(p.index)) {
				return false
			}
		}
		return true
	}
}

// hasZero reports whether a key cannot be written.
func hasZero(key string) bool { return strings.IndexByte(key, 0) >= 0 }
