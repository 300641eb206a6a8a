package structcodec

import (
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// A rereader is a ValueCodec that can read a value twice with the same result. It is not code of a caller.
type rereader interface{ ReadsAgain() }

// A decodeCompiler compiles the plan of one type and of the structs within it.
type decodeCompiler struct {
	*decodeMode
	new  map[decodedType]*decodePlan
	open map[decodedType]*openRead // the pointers, slices, arrays and maps that are being compiled
	plan *decodePlan               // that is being compiled, or nil
}

// A decodedType is a type in a context.
type decodedType struct {
	in *decodeMode
	t  reflect.Type
}

// callsCaller says that code of a caller takes part in the plan that is being compiled.
func (c decodeCompiler) callsCaller() {
	if c.plan != nil {
		c.plan.checked = true
	}
}

// nest says that q, or something within it, is part of the plan that is being compiled. A nil q is not known.
func (c decodeCompiler) nest(q *decodePlan) {
	switch {
	case c.plan == nil:
	case q == nil:
		c.plan.checked = true
	default:
		c.plan.nested = append(c.plan.nested, q)
	}
}

// A keeper says whether code of a caller that reads a value can keep a pointer to it, or to a part of it. The memory of
// such a value is not used for another one.
type keeper struct{ kept bool }

// isKept returns k.kept. For a struct, it is known when all plans are compiled.
func (k *keeper) isKept() bool { return k.kept }

// keptElem returns the keeper of values of type t, which is an element of a container.
func (c decodeCompiler) keptElem(t reflect.Type) *keeper {
	dec, _ := c.decoderOf(t) // without a decoder, the fallback reads the values
	resolved := c.resolveDecoder(dec, t)
	vc := c.valueCodec(resolved)
	switch _, again := vc.(rereader); {
	case again:
		return new(keeper)
	case same(resolved, c.Codec) && t.Kind() == reflect.Struct:
		return &c.planOf(t).keeper
	}
	return &keeper{kept: knownDecoder(resolved) == unknown}
}

// keepField says that a value of type t is part of the memory of the struct whose plan is being compiled.
func (c decodeCompiler) keepField(t reflect.Type) {
	k := c.keptElem(t)
	if k.kept {
		c.plan.kept = true
	}
	if q, ok := c.new[decodedType{c.decodeMode, t}]; ok && k == &q.keeper {
		c.plan.inPlace = append(c.plan.inPlace, q)
	}
}

// openRead is what a type that is being compiled compiles to, nil until it does, and if only its decoder can read the
// values.
type openRead struct {
	read readFunc
	plan *decodePlan // that it is part of, or nil
}

func (c decodeCompiler) planOf(t reflect.Type) *decodePlan {
	if p, ok := c.decPlans.load(t); ok {
		return p
	}
	key := decodedType{c.decodeMode, t}
	if p, ok := c.new[key]; ok {
		return p // a type within itself; the plan is complete when it is used
	}
	p := &decodePlan{decodeMode: c.decodeMode}
	c.new[key] = p
	c.plan = p
	fields, inlineMap, err := elements.Reading{JSON: c.UseJSONStructTags}.Of(t)
	switch {
	case err != nil:
		p.why = err.Error()
		return p
	case refused(c.decoder, t):
		p.why = "its codec refuses the type"
		return p
	}
	p.byName = make(map[string]int, len(fields))
	for _, f := range fields {
		if f.Pointers && f.PointerThenStruct(t) {
			p.why = fmt.Sprintf("the key %q is in an inline struct within an inline pointer, for which the driver panics", f.Name)
			return p
		}
		of := c
		if of.decodeMode = c.field(f.Truncate); of.decodeMode == nil {
			p.why = unknownContext
			return p
		}
		df := decodeField{Field: f, one: -1, iface: f.Type.Kind() == reflect.Interface, in: of.decodeMode}
		if len(f.Index) == 1 {
			df.one = f.Index[0]
		}
		if dec, err := c.decoderOf(f.Type); err == nil {
			var known bool
			df.read, known = of.compile(f.Type, dec)
			if !known && c.ZeroStructs { // the fallback would set the whole struct to zero
				df.read = of.slow(dec)
			}
			if !known {
				p.checked, p.kept = true, true
			}
			df.allocate = f.Type.Kind() == reflect.Pointer && knownDecoder(c.resolveDecoder(dec, f.Type)) == unknown
			if known && df.one >= 0 && !df.iface && !df.allocate {
				of.setDirect(&df, dec)
			}
		}
		if df.read == nil {
			p.checked, p.kept = true, true
		} else {
			of.keepField(f.Type)
		}
		p.byName[f.Name] = len(p.fields)
		if f.Name != "" {
			p.starts[f.Name[0]] = true
		}
		p.fields = append(p.fields, df)
	}
	if inlineMap >= 0 {
		if p.inline, p.why = c.inlineMap(t, inlineMap, p.fields); p.inline == nil {
			return p
		}
		if !p.inline.known {
			p.checked = true
		}
	}
	pointer, err := c.decoderOf(reflect.PointerTo(t))
	p.pointer = err == nil && knownDecoder(pointer) == knownPointer
	own, err := c.decoderOf(t)
	p.registered = err == nil && same(own, c.Codec)
	p.planned = true
	return p
}

// setDirect sets how the plan itself reads the values of f, if it can.
func (c decodeCompiler) setDirect(f *decodeField, dec bson.ValueDecoder) {
	var t bson.Type
	resolved := c.resolveDecoder(dec, f.Type)
	k, kind := knownDecoder(resolved), f.Type.Kind()
	vc := c.valueCodec(resolved)
	switch {
	case vc != nil:
		f.direct, t = directCodec, bson.TypeBinary
		f.codec, f.decoder = vc, dec
	case k == knownString && kind == reflect.String:
		f.direct, t = directString, bson.TypeString
	case k == knownBool && kind == reflect.Bool:
		f.direct, t = directBool, bson.TypeBoolean
	case k == knownFloat && kind == reflect.Float64:
		f.direct, t = directFloat, bson.TypeDouble
	case k == knownInt && kind == reflect.Int32:
		f.direct, t = directInt32, bson.TypeInt32
	case k == knownInt && kind == reflect.Int64:
		f.direct, t = directInt64, bson.TypeInt64
	case same(resolved, c.Codec):
		f.direct, t = directFunc, bson.TypeEmbeddedDocument
	case k == knownSlice && kind == reflect.Slice:
		f.direct, t = directFunc, bson.TypeArray
	case k == knownTime && f.Type == tTime, k == knownDateTime && f.Type == tDateTime:
		f.direct, t = directFunc, bson.TypeDateTime
	case k == knownObjectID && f.Type == tObjectID:
		f.direct, t = directFunc, bson.TypeObjectID
	default:
		return
	}
	f.header = string([]byte{byte(t)}) + f.Name + "\x00"
}

// valueCodec returns what decodes values in the context of c if dec takes part in plans, or nil.
func (c *decodeMode) valueCodec(dec bson.ValueDecoder) ValueCodec {
	vc, ok := dec.(ValueCodec)
	if !ok || c.plain {
		return vc
	}
	if in, ok := dec.(ContextDecoder); ok {
		return in.DecoderIn(c.dc)
	}
	return nil
}

// slow returns what passes a value to its decoder. It is not inlined, so that sameCode knows what it returns.
//
//go:noinline
func (c *decodeMode) slow(dec bson.ValueDecoder) readFunc {
	return func(bt byte, data []byte, v reflect.Value) error { return c.decodeRaw(dec, bt, data, v) }
}

// compile returns what reads values of type t as its decoder dec does. It reports false if only dec can.
func (c decodeCompiler) compile(t reflect.Type, dec bson.ValueDecoder) (readFunc, bool) {
	resolved := c.resolveDecoder(dec, t)
	if _, ok := resolved.(ValueCodec); ok {
		vc := c.valueCodec(resolved)
		if vc == nil {
			return nil, false
		}
		if _, again := vc.(rereader); !again {
			c.callsCaller()
		}
		return func(bt byte, data []byte, v reflect.Value) error {
			err := vc.ReadValue(bson.Type(bt), data, v)
			if err == c.notPlain {
				return c.decodeRaw(dec, bt, data, v)
			}
			return err
		}, true
	}
	if same(resolved, c.Codec) {
		return c.readStruct(t)
	}
	k := knownDecoder(resolved)
	slow := c.slow(dec)
	switch k {
	case unknown:
		return nil, false
	case knownPointer, knownSlice, knownArray, knownMap:
		key := decodedType{c.decodeMode, t}
		if o, ok := c.open[key]; ok {
			c.nest(o.plan)
			return func(bt byte, data []byte, v reflect.Value) error {
				if o.read == nil {
					return slow(bt, data, v)
				}
				return o.read(bt, data, v)
			}, true
		}
		o := &openRead{plan: c.plan}
		c.open[key] = o
		f, ok := c.compileContainer(t, k, slow)
		delete(c.open, key)
		o.read = f
		return f, ok
	case knownAny:
		c.callsCaller()
		if t != tAny {
			return slow, true
		}
		return c.readAny(slow), true
	case knownD:
		c.callsCaller()
		if t != tD {
			return slow, true
		}
		return c.readD(slow), true
	}
	return c.readScalar(t, k, slow), true
}

func (c decodeCompiler) compileContainer(t reflect.Type, k known, slow readFunc) (readFunc, bool) {
	switch k {
	case knownPointer:
		return c.readPointer(t, slow)
	case knownSlice:
		return c.readSlice(t, slow)
	case knownArray:
		return c.readArray(t, slow)
	default:
		return c.readMap(t, slow)
	}
}

// compileElem compiles the type of the elements of a container.
func (c decodeCompiler) compileElem(t reflect.Type) (readFunc, bool) {
	dec, _ := c.decoderOf(t) // without a decoder there is no plan
	return c.compile(t, dec)
}

func (c decodeCompiler) readStruct(t reflect.Type) (readFunc, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	p := c.planOf(t)
	c.nest(p)
	return func(bt byte, data []byte, v reflect.Value) error {
		switch {
		case !p.planned:
		case bson.Type(bt) == bson.TypeEmbeddedDocument:
			return p.decodeDocument(data, v)
		case bson.Type(bt) == bson.TypeNull:
			v.SetZero()
			return nil
		}
		return p.decodeRaw(p.decoder, bt, data, v)
	}, true
}

func (c decodeCompiler) readPointer(t reflect.Type, slow readFunc) (readFunc, bool) {
	if t.Kind() != reflect.Pointer {
		c.callsCaller() // the elements can be of any type
		return slow, true
	}
	elemType := t.Elem()
	elem, ok := c.compileElem(elemType)
	if !ok {
		return nil, false
	}
	return func(bt byte, data []byte, v reflect.Value) error {
		if bt := bson.Type(bt); bt == bson.TypeNull || bt == bson.TypeUndefined {
			v.SetZero()
			return nil
		}
		if v.IsNil() {
			v.Set(reflect.New(elemType))
		}
		return elem(bt, data, v.Elem())
	}, true
}
