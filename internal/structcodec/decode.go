package structcodec

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

// A readFunc sets v to the value of type t in data, which is valid.
type readFunc func(t byte, data []byte, v reflect.Value) error

// A decodePlan is how structs of one type are decoded.
type decodePlan struct {
	*decodeMode
	planned    bool   // false if the fallback must do it
	why        string // it is not planned
	registered bool   // planned, and the registry has the Codec for the type
	// The document is checked before anything is decoded, because code of a caller takes part. Otherwise it is checked on
	// the way: if it is malformed, the fallback sets again what the plan has set.
	checked bool
	nested  []*decodePlan
	keeper                // whether code of a caller can keep a pointer into the struct
	inPlace []*decodePlan // of the structs that are part of the struct's memory
	pointer bool          // the registry decodes into a pointer to the struct as the driver does
	fields  []decodeField
	byName  map[string]int
	starts  [256]bool        // the first bytes of the keys in byName
	inline  *decodeInlineMap // nil if the struct has none
}

type decodeField struct {
	direct directly // how a field that is not inline is set if its element starts with header
	one    int      // the index of a field that is not inline, or -1
	header string   // the type, the name, 0
	read   readFunc // nil if the fallback must decode the element, or if there is no decoder
	elements.Field
	// If direct is directCodec, the codec, and the decoder of which it is a part.
	codec   ValueCodec
	decoder bson.ValueDecoder
	in      *decodeMode // of the value
	// The field is of an interface type: a pointer in it is followed.
	iface bool
	// The field is a nil pointer that is allocated whatever its decoder does.
	allocate bool
}

// decodePlan returns the plan for t, and compiles it if need be.
func (c *decodeMode) decodePlan(t reflect.Type) *decodePlan {
	if p, ok := c.decPlans.load(t); ok {
		return p
	}
	var p *decodePlan
	c.compileDecoder(func(plans decodeCompiler) { p = plans.planOf(t) })
	return p
}

// compileDecoder calls compile and keeps the plans that it makes.
func (c *decodeMode) compileDecoder(compile func(decodeCompiler)) {
	c.compiling.Lock()
	defer c.compiling.Unlock()
	plans := decodeCompiler{decodeMode: c, new: map[decodedType]*decodePlan{}, open: map[decodedType]*openRead{}}
	compile(plans)
	for _, p := range plans.new {
		if !p.planned { // the fallback can call code of a caller
			p.checked, p.kept = true, true
		}
	}
	for again := true; again; {
		again = false
		for _, p := range plans.new {
			if !p.checked && slices.ContainsFunc(p.nested, func(q *decodePlan) bool { return q.checked }) {
				p.checked, again = true, true
			}
			if !p.kept && slices.ContainsFunc(p.inPlace, func(q *decodePlan) bool { return q.kept }) {
				p.kept, again = true, true
			}
		}
	}
	for t, p := range plans.new {
		t.in.decPlans.loadOrStore(t.t, p)
	}
}

// decode decodes doc, a whole document, into the struct v. The error is errMalformed if the fallback must do it.
func (p *decodePlan) decode(doc []byte, v reflect.Value) error {
	switch {
	case len(doc) < 5 || int32At(doc) != len(doc) || doc[len(doc)-1] != 0:
		return errMalformed
	case p.checked && len(p.fields) <= maxFew && p.inline == nil:
		return p.decodeFew(doc, v)
	case p.checked && !validDocument(doc, 0):
		return errMalformed
	}
	return p.decodeDocument(doc, v)
}

// maxFew is how many fields a struct has at most for which decodeFew is called. That into which the driver decodes an _id
// after every insert has one.
const maxFew = 4

// decodeFew is decodeDocument of a plan that is checked. It checks doc on the way to the elements that have a field, and
// looks into no others: the driver passes over these by their sizes, too.
func (p *decodePlan) decodeFew(doc []byte, v reflect.Value) error {
	var found [maxFew]struct{ at, field int }
	n := 0
	for at := 4; doc[at] != 0 || at != len(doc)-1; {
		element := doc[at:]
		end := keyEnd(element) // the last byte of doc is 0
		value := element[end+1:]
		size := shallowSize(element[0], value)
		if size < 0 {
			return errMalformed
		}
		if i, ok := p.lookup(element[1:end]); ok {
			switch {
			case checkValue(element[0], value[:size], 0) != size:
				return errMalformed
			case n < len(found):
				found[n].at, found[n].field = at, i
				n++
			case !validDocument(doc, 0): // a key is there twice
				return errMalformed
			default:
				return p.decodeDocument(doc, v)
			}
		}
		at += end + 1 + size
	}
	if p.ZeroStructs {
		v.SetZero()
	}
	for _, f := range found[:n] {
		if _, _, err := p.readField(doc, f.at, f.field, v); err != nil {
			return err
		}
	}
	return nil
}

// decodeDocument decodes doc, whose length is right and whose last byte is 0, into the struct v.
func (p *decodePlan) decodeDocument(doc []byte, v reflect.Value) error {
	if p.ZeroStructs {
		v.SetZero()
	}
	next := 0
	for at := 4; ; {
		if doc[at] == 0 {
			if at != len(doc)-1 {
				return errMalformed
			}
			return nil
		}
		// Most documents have their elements in the order of the fields, and values of the types that belong to them.
		if next < len(p.fields) {
			f := &p.fields[next]
			if start := at + len(f.header); f.direct != notDirectly && start < len(doc) && string(doc[at:start]) == f.header {
				size, err := p.readDirect(f, doc[start:], v)
				if err != nil {
					return wrapKey(f.Name, err)
				}
				if size > 0 {
					at = start + size
					next++
					continue
				}
			}
		}
		var err error
		if at, next, err = p.readField(doc, at, next, v); err != nil {
			return err
		}
	}
}

// readField sets the field of the struct v that has the key of the element at the index at of doc. Most often it is the
// field next. It returns the indexes of the element and of the field behind these.
func (p *decodePlan) readField(doc []byte, at, next int, v reflect.Value) (int, int, error) {
	element := doc[at:]
	var end int // of the key
	if next < len(p.fields) && hasKey(element, p.fields[next].Name) {
		end = 1 + len(p.fields[next].Name)
	} else {
		end = keyEnd(element) // the last byte of doc is 0
		i, ok := p.lookup(element[1:end])
		if !ok {
			size := shallowSize(element[0], element[end+1:])
			if size < 0 {
				return 0, 0, errMalformed
			}
			size += end + 1
			if p.inline != nil {
				if err := p.decodeInline(element[:size], end, v); err != nil {
					return 0, 0, err
				}
			}
			return at + size, next, nil
		}
		next = i
	}
	f := &p.fields[next]
	value := element[end+1:]
	size := shallowSize(element[0], value)
	if size < 0 {
		return 0, 0, errMalformed
	}
	value = value[:size]
	at, next = at+end+1+size, next+1

	var fv reflect.Value
	if f.one >= 0 {
		fv = v.Field(f.one)
	} else {
		fv = f.Target(v)
	}
	switch {
	case f.iface && !fv.IsNil() && fv.Elem().Kind() == reflect.Pointer:
		return at, next, p.decodeThrough(f, element[0], value, fv.Elem())
	case f.read == nil && !p.ZeroStructs:
		return at, next, p.decodeElement(element[:end+1+size], v)
	case f.read == nil:
		if f.Type.Kind() == reflect.Pointer && fv.IsNil() {
			fv.Set(reflect.New(f.Type.Elem()))
		}
		return at, next, p.errNoDecoder(element[:end+1+size], v.Type())
	}
	if f.allocate && fv.IsNil() {
		fv.Set(reflect.New(f.Type.Elem()))
	}
	if err := f.read(element[0], value, fv); err != nil {
		return 0, 0, wrapKey(f.Name, err)
	}
	return at, next, nil
}

// decodeThrough decodes the value of type t in data into what pointer, the value of the field f, points to.
func (p *decodePlan) decodeThrough(f *decodeField, t byte, data []byte, pointer reflect.Value) error {
	target := pointer.Elem()
	dec, err := p.decoderOf(target.Type()) // which panics if the pointer is nil, as the driver does
	if err != nil {
		return err
	}
	if err := p.decodeRaw(dec, t, data, target); err != nil {
		return wrapKey(f.Name, err)
	}
	return nil
}

// readDirect sets field f of the struct v to the value at the start of b, which has the type that the field expects, and
// returns the size of the value. The size is 0 if the value is malformed, or not plain.
func (p *decodePlan) readDirect(f *decodeField, b []byte, v reflect.Value) (int, error) {
	switch f.direct {
	case directString:
		if len(b) <= 4 {
			return 0, nil
		}
		n := int32At(b)
		if n < 1 || n >= len(b)-4 || b[3+n] != 0 {
			return 0, nil
		}
		v.Field(f.one).SetString(string(b[4 : 3+n]))
		return 4 + n, nil
	case directInt32:
		if len(b) <= 4 {
			return 0, nil
		}
		v.Field(f.one).SetInt(int64(int32At(b)))
		return 4, nil
	case directInt64:
		if len(b) <= 8 {
			return 0, nil
		}
		v.Field(f.one).SetInt(int64At(b))
		return 8, nil
	case directFloat:
		if len(b) <= 8 {
			return 0, nil
		}
		v.Field(f.one).SetFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
		return 8, nil
	case directBool:
		if len(b) <= 1 || b[0] > 1 {
			return 0, nil
		}
		v.Field(f.one).SetBool(b[0] == 1)
		return 1, nil
	case directCodec:
		if len(b) <= 5 {
			return 0, nil
		}
		n := int32At(b)
		if n < 0 || n >= len(b)-5 || b[4] == bson.TypeBinaryBinaryOld {
			return 0, nil
		}
		data, fv := b[:5+n], v.Field(f.one)
		err := f.codec.ReadValue(bson.TypeBinary, data, fv)
		if err != nil && err == p.notPlain {
			err = f.in.decodeRaw(f.decoder, byte(bson.TypeBinary), data, fv)
		}
		return len(data), err
	default: // directFunc
		size := shallowSize(f.header[0], b)
		if size < 0 {
			return 0, nil
		}
		return size, f.read(f.header[0], b[:size], v.Field(f.one))
	}
}

// lookup returns the index of the field with the given key, or with the key in lower case.
func (p *decodePlan) lookup(key []byte) (int, bool) {
	if len(key) > 0 && key[0] < 0x80 && !p.starts[key[0]] && !p.starts[key[0]|0x20] { // 0x20 makes a letter small
		return 0, false
	}
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
