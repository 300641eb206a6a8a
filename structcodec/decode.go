package structcodec

import (
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A readFunc sets v to the value of type t in data, which is valid.
type readFunc func(t byte, data []byte, v reflect.Value) error

// A decodePlan is how structs of one type are decoded.
type decodePlan struct {
	*Codec
	planned bool // false if the fallback must do it
	// The document is checked before anything is decoded, because code of a caller takes part. Otherwise it is checked on
	// the way: if it is malformed, the fallback sets again what the plan has set.
	checked bool
	nested  []*decodePlan
	pointer bool // the registry decodes into a pointer to the struct as the driver does
	fields  []decodeField
	byName  map[string]int
	inline  *decodeInlineMap // nil if the struct has none
}

type decodeField struct {
	field
	one  int      // the index of a field that is not inline, or -1
	read readFunc // nil if the fallback must decode the element
	// The field is of an interface type: a pointer in it is followed.
	iface bool
	// The field is a nil pointer that is allocated whatever its decoder does.
	allocate bool
}

// decodePlan returns the plan for t, and compiles it if need be.
func (c *Codec) decodePlan(t reflect.Type) *decodePlan {
	if p, ok := c.decPlans.Load(t); ok {
		return p.(*decodePlan)
	}
	var p *decodePlan
	c.compileDecoder(func(plans decodeCompiler) { p = plans.planOf(t) })
	return p
}

// compileDecoder calls compile and keeps the plans that it makes.
func (c *Codec) compileDecoder(compile func(decodeCompiler)) {
	c.compiling.Lock()
	defer c.compiling.Unlock()
	plans := decodeCompiler{Codec: c, new: map[reflect.Type]*decodePlan{}, open: map[reflect.Type]*openRead{}}
	compile(plans)
	for again := true; again; {
		again = false
		for _, p := range plans.new {
			if !p.checked && slices.ContainsFunc(p.nested, func(q *decodePlan) bool { return q.checked }) {
				p.checked, again = true, true
			}
		}
	}
	for t, p := range plans.new {
		c.decPlans.LoadOrStore(t, p)
	}
}

// decode decodes doc, a whole document, into the struct v. The error is errMalformed if the fallback must do it.
func (p *decodePlan) decode(doc []byte, v reflect.Value) error {
	if len(doc) < 5 || int32At(doc) != len(doc) || doc[len(doc)-1] != 0 || p.checked && !validDocument(doc, 0) {
		return errMalformed
	}
	return p.decodeDocument(doc, v)
}

// decodeDocument decodes doc, whose length is right and whose last byte is 0, into the struct v.
func (p *decodePlan) decodeDocument(doc []byte, v reflect.Value) error {
	rest := doc[4:]
	next := 0
	for {
		if rest[0] == 0 {
			if len(rest) > 1 {
				return errMalformed
			}
			return nil
		}
		// Most documents have their elements in the order of the fields.
		var end int // of the key
		if next < len(p.fields) && hasKey(rest, p.fields[next].name) {
			end = 1 + len(p.fields[next].name)
		} else {
			if end = keyEnd(rest); end < 0 {
				return errMalformed
			}
			i, ok := p.lookup(rest[1:end])
			if !ok {
				size := shallowSize(rest[0], rest[end+1:])
				if size < 0 {
					return errMalformed
				}
				size += end + 1
				if p.inline != nil {
					if err := p.decodeInline(rest[:size], end, v); err != nil {
						return err
					}
				}
				rest = rest[size:]
				continue
			}
			next = i
		}
		f := &p.fields[next]
		next++
		element := rest
		value := rest[end+1:]
		size := shallowSize(rest[0], value)
		if size < 0 {
			return errMalformed
		}
		rest = value[size:]

		var fv reflect.Value
		if f.one >= 0 {
			fv = v.Field(f.one)
		} else {
			fv = f.target(v)
		}
		if f.read == nil || f.iface && !fv.IsNil() && fv.Elem().Kind() == reflect.Pointer {
			if err := p.decodeElement(element[:end+1+size], v); err != nil {
				return err
			}
			continue
		}
		if f.allocate && fv.IsNil() {
			fv.Set(reflect.New(f.typ.Elem()))
		}
		if err := f.read(element[0], value[:size], fv); err != nil {
			return wrapKey(f.name, err)
		}
	}
}

// lookup returns the index of the field with the given key, or with the key in lower case.
func (p *decodePlan) lookup(key []byte) (int, bool) {
	if i, ok := p.byName[string(key)]; ok {
		return i, true
	}
	for _, b := range key {
		if 'A' <= b && b <= 'Z' || b >= 0x80 {
			i, ok := p.byName[strings.ToLower(string(key))]
			return i, ok
		}
	}
	return 0, false
}

// A rereader is a ValueCodec that can read a value twice with the same result. It is not code of a caller.
type rereader interface{ ReadsAgain() }

// A decodeCompiler compiles the plan of one type and of the structs within it.
type decodeCompiler struct {
	*Codec
	new  map[reflect.Type]*decodePlan
	open map[reflect.Type]*openRead // the pointers, slices, arrays and maps that are being compiled
	plan *decodePlan                // that is being compiled, or nil
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

// openRead is what a type that is being compiled compiles to, nil until it does, and if only its decoder can read the
// values.
type openRead struct {
	read readFunc
	plan *decodePlan // that it is part of, or nil
}

func (c decodeCompiler) planOf(t reflect.Type) *decodePlan {
	if p, ok := c.decPlans.Load(t); ok {
		return p.(*decodePlan)
	}
	if p, ok := c.new[t]; ok {
		return p // a type within itself; the plan is complete when it is used
	}
	p := &decodePlan{Codec: c.Codec, checked: true}
	c.new[t] = p
	c.plan = p
	fields, inlineMap, ok := fieldsOf(t, 0)
	if !ok || refused(c.decoder, t) {
		return p
	}
	p.checked = false
	p.byName = make(map[string]int, len(fields))
	for _, f := range fields {
		if f.pointers && f.pointerThenStruct(t) {
			p.checked = true
			return p
		}
		df := decodeField{field: f, one: -1, iface: f.typ.Kind() == reflect.Interface}
		if len(f.index) == 1 {
			df.one = f.index[0]
		}
		if dec, err := c.reg.LookupDecoder(f.typ); err == nil && !f.truncate {
			df.read, _ = c.compile(f.typ, dec)
			df.allocate = f.typ.Kind() == reflect.Pointer && knownDecoder(c.resolveDecoder(dec, f.typ)) == unknown
		}
		if df.read == nil {
			p.checked = true
		}
		p.byName[f.name] = len(p.fields)
		p.fields = append(p.fields, df)
	}
	if inlineMap >= 0 {
		if p.inline = c.inlineMap(t, inlineMap, p.fields); p.inline == nil || p.inline.read == nil {
			p.checked = true
		}
		if p.inline == nil {
			return p
		}
	}
	pointer, err := c.reg.LookupDecoder(reflect.PointerTo(t))
	p.pointer = err == nil && knownDecoder(pointer) == knownPointer
	p.planned = true
	return p
}

// compile returns what reads values of type t as its decoder dec does. It reports false if only dec can.
func (c decodeCompiler) compile(t reflect.Type, dec bson.ValueDecoder) (readFunc, bool) {
	resolved := c.resolveDecoder(dec, t)
	if vc, ok := resolved.(ValueCodec); ok {
		if _, again := resolved.(rereader); !again {
			c.callsCaller()
		}
		return func(bt byte, data []byte, v reflect.Value) error {
			err := vc.ReadValue(bson.Type(bt), data, v)
			if err == ErrNotPlain {
				return c.decodeRaw(dec, bt, data, v)
			}
			return err
		}, true
	}
	if same(resolved, c.Codec) {
		return c.readStruct(t)
	}
	k := knownDecoder(resolved)
	slow := func(bt byte, data []byte, v reflect.Value) error { return c.decodeRaw(dec, bt, data, v) }
	switch k {
	case unknown:
		return nil, false
	case knownPointer, knownSlice, knownArray, knownMap:
		if o, ok := c.open[t]; ok {
			c.nest(o.plan)
			return func(bt byte, data []byte, v reflect.Value) error {
				if o.read == nil {
					return slow(bt, data, v)
				}
				return o.read(bt, data, v)
			}, true
		}
		o := &openRead{plan: c.plan}
		c.open[t] = o
		f, ok := c.compileContainer(t, k, slow)
		delete(c.open, t)
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
	return readScalar(t, k, slow), true
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
	dec, err := c.reg.LookupDecoder(t)
	if err != nil {
		return nil, false
	}
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
