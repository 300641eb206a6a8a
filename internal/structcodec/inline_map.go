package structcodec

import (
	"fmt"
	"reflect"

	"github.com/bsonids/bsonids/internal/elements"
)

// An encodeInlineMap is how the entries of an inline map are encoded, after all fields of its struct.
type encodeInlineMap struct {
	*encodeMode
	index int // of the field
	elem  appendFunc
	names map[string]bool // of the other fields
}

// inlineMap returns how the inline map in field i of the struct type t is encoded, or why only the driver can do it.
func (c encodeCompiler) inlineMap(t reflect.Type, i int, fields []elements.Field) (inline *encodeInlineMap, why string) {
	elem, ok := c.compileElem(t.Field(i).Type.Elem())
	if !ok {
		return nil, fmt.Sprintf("the values of %s, an inline map, have no codec that takes part in plans", t.Field(i).Name)
	}
	m := &encodeInlineMap{c.encodeMode, i, elem, make(map[string]bool, len(fields))}
	for _, f := range fields {
		m.names[f.Name] = true
	}
	return m, ""
}

// append appends the entries of the map in the struct v. A key that is also that of a field is an error of the driver.
func (m *encodeInlineMap) append(dst []byte, v reflect.Value) ([]byte, error) {
	for it := v.Field(m.index).MapRange(); it.Next(); {
		key := it.Key().String()
		if m.names[key] {
			return dst, errMalformed
		}
		var err error
		if dst, err = m.appendKeyed(dst, key, m.elem, it.Value()); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// A decodeInlineMap is how elements without a field are decoded into the entries of an inline map.
type decodeInlineMap struct {
	index   int // of the field
	mapType reflect.Type
	read    readFunc // nil if the fallback must decode the element
	known   bool     // no code of a caller takes part that the plan does not know
}

// inlineMap returns how elements are decoded into the inline map in field i of the struct type t, or why not: the driver has
// no decoder for them, or a field is an interface: once that holds a pointer, the driver decodes the entries that follow
// with the decoder of what the pointer points to.
func (c decodeCompiler) inlineMap(t reflect.Type, i int, fields []decodeField) (inline *decodeInlineMap, why string) {
	for _, f := range fields {
		if f.iface {
			return nil, fmt.Sprintf("%s (%v) is beside %s, an inline map", f.Name, f.Type, t.Field(i).Name)
		}
	}
	m := &decodeInlineMap{index: i, mapType: t.Field(i).Type}
	dec, err := c.decoderOf(m.mapType.Elem())
	if err != nil {
		return nil, fmt.Sprintf("the values of %s, an inline map, have no codec", t.Field(i).Name)
	}
	if m.read, m.known = c.compile(m.mapType.Elem(), dec); !m.known && c.ZeroStructs {
		m.read = c.slow(dec) // the fallback would set the whole struct to zero
	}
	return m, ""
}

// decodeInline decodes an element, whose key ends at keyEnd, into the inline map of the struct v. Unlike those of other
// maps, the errors have no key.
func (p *decodePlan) decodeInline(element []byte, keyEnd int, v reflect.Value) error {
	m := p.inline
	target := v.Field(m.index)
	if target.IsNil() {
		target.Set(reflect.MakeMap(m.mapType))
	}
	if m.read == nil {
		return p.decodeElement(element, v)
	}
	elem := reflect.New(m.mapType.Elem()).Elem()
	if err := m.read(element[0], element[keyEnd+1:], elem); err != nil {
		return err
	}
	target.SetMapIndex(reflect.ValueOf(string(element[1:keyEnd])), elem)
	return nil
}
