package structcodec_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
)

// A generator makes random types, values and documents.
type generator struct {
	rng    *rand.Rand
	plain  bool // values are targets: nothing in them is refused
	errors int  // how many errors were equal
	// comparisons counts the comparisons with the driver.
	comparisons int
	broken      bool // a value holds bytes that are not BSON

	opts bsoncodec.Options // of a client
	// The numbers of cases, types and failures, of malformed documents, and of other comparisons whose fallback is counted:
	// of all, and of those in which it was called for a part of the document, or for all of it.
	cases, types, failures, malformed, counted, partly, fallbacks int
	counting                                                      bool
}

var names = []string{
	"A", "B", "C", "D", "E", "F", "G", "H", "Name", "ID", "Long", "Été", "Ω",
}

var keys = []string{"a", "b", "name", "id", "_id", "Name", "x", "été", "long_name_of_a_field_more_than_sixteen"}

var tags = []string{
	"", "", "", "", "omitempty", "omitempty", "minsize", "truncate", "inline", "omitempty,minsize",
	"truncate,omitempty", "inline,omitempty",
}

// structType returns a struct type made of random fields.
func (g *generator) structType(depth int) reflect.Type {
	n := g.rng.IntN(6) + 1
	var fields []reflect.StructField
	for _, i := range g.rng.Perm(len(names))[:n] {
		f := reflect.StructField{Name: names[i], Type: g.typ(depth)}
		tag := tags[g.rng.IntN(len(tags))]
		if strings.Contains(tag, "inline") && !inlinable(f.Type) && g.rng.IntN(20) != 0 {
			tag = ""
		}
		switch key := keys[g.rng.IntN(len(keys))]; g.rng.IntN(6) {
		case 0:
			f.Tag = reflect.StructTag(fmt.Sprintf("bson:%q", key+","+tag))
		case 1:
			f.Tag = reflect.StructTag(fmt.Sprintf("bson:%q json:\"other\"", ","+tag))
		case 2:
			f.Tag = reflect.StructTag(key)
		case 3:
			f.Tag = reflect.StructTag([]string{`bson:"-"`, `-`, `json:"j"`, `bson:"-,"`, `json:"-"`, `json:"k,omitempty"`, `json:",omitempty"`, `json:"name,minsize"`}[g.rng.IntN(8)])
		default:
			if tag != "" {
				f.Tag = reflect.StructTag(fmt.Sprintf("bson:%q", ","+tag))
			}
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

func inlinable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t.NumField() > 0 || t.Kind() == reflect.Map
}

func (g *generator) typ(depth int) reflect.Type {
	n := g.rng.IntN(12)
	if depth <= 0 && n > 2 {
		n = 0
	}
	switch n {
	case 3:
		return g.structType(depth - 1)
	case 4, 5:
		return reflect.PointerTo(g.typ(depth - 1))
	case 6:
		return reflect.SliceOf(g.typ(depth - 1))
	case 7:
		return reflect.ArrayOf(g.rng.IntN(4), g.typ(depth-1))
	case 8:
		return reflect.MapOf(mapKeys[g.rng.IntN(len(mapKeys))], g.typ(depth-1))
	case 9:
		return corpus[g.rng.IntN(len(corpus))]
	case 10:
		return reflect.SliceOf(corpus[g.rng.IntN(len(corpus))])
	default:
		return scalars[g.rng.IntN(len(scalars))]
	}
}

// value returns an addressable random value of type t.
func (g *generator) value(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	g.fill(v, depth)
	return v
}

var interesting = []int64{0, 1, -1, 5, math.MaxInt8, math.MaxInt8 + 1, math.MaxInt16 + 1, math.MaxInt32, math.MaxInt32 + 1,
	math.MinInt32, math.MinInt32 - 1, math.MaxInt64, math.MinInt64, 1 << 53, 255, 256, 65536}

func (g *generator) fill(v reflect.Value, depth int) {
	if depth < 0 || g.rng.IntN(8) == 0 {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMilli(g.rng.Int64N(4e12) - 1e12).In([]*time.Location{time.UTC, time.Local}[g.rng.IntN(2)])))
		return
	case reflect.TypeFor[bson.RawValue]():
		t, data, err := marshalValue(g.any(depth - 1))
		if err == nil {
			v.Set(reflect.ValueOf(bson.RawValue{Type: t, Value: data}))
		}
		if !g.plain && g.rng.IntN(10) == 0 {
			g.broken = true
			v.Set(reflect.ValueOf(bson.RawValue{Type: t, Value: g.bytes()}))
		}
		return
	case reflect.TypeFor[bson.Raw]():
		if raw := g.document(corpus[0], 1); g.rng.IntN(6) == 0 && !g.plain {
			g.broken = true
			v.SetBytes(g.mutate(raw))
		} else {
			v.SetBytes(raw)
		}
		return
	case reflect.TypeFor[bson.Vector]():
		v.Set(reflect.ValueOf(bson.NewVector([]int8{1, 2})))
		return
	case reflect.TypeFor[uuid.UUID]():
		v.Set(reflect.ValueOf(uuid.UUID{byte(g.rng.Uint32()), 1, 2}))
		return
	case reflect.TypeFor[funcUUID]():
		v.Set(reflect.ValueOf(funcUUID{[]string{"", "x"}[g.rng.IntN(2)], uuid.UUID{byte(g.rng.IntN(3)), 1}}))
		return
	case reflect.TypeFor[privateUUID]():
		v.Set(reflect.ValueOf(privateUUID{uuid.UUID{byte(g.rng.Uint32())}, g.text()}))
		return
	case reflect.TypeFor[maybeUUID]():
		v.Set(reflect.ValueOf(maybeUUID{g.rng.IntN(2) == 0, uuid.UUID{byte(g.rng.Uint32())}}))
		return
	case reflect.TypeFor[lostUUID]():
		v.Set(reflect.ValueOf(lostUUID{make([]uuid.UUID, 1)}))
		return
	case reflect.TypeFor[bson.Binary]():
		n := []int{0, 4, 8, 16, 16, 16}[g.rng.IntN(6)]
		v.Set(reflect.ValueOf(bson.Binary{Subtype: byte(g.rng.IntN(7)), Data: make([]byte, n)}))
		return
	case reflect.TypeFor[failing]():
		if g.plain {
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(interesting[g.rng.IntN(len(interesting))])
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(interesting[g.rng.IntN(len(interesting))]))
	case reflect.Float32, reflect.Float64:
		v.SetFloat([]float64{1, 1.5, 0.1, math.NaN(), math.Inf(1), -3, 1e300, 1 << 60}[g.rng.IntN(8)])
	case reflect.String:
		v.SetString(g.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), depth-1)
	case reflect.Slice:
		n := g.rng.IntN(4)
		v.Set(reflect.MakeSlice(v.Type(), n, n+g.rng.IntN(3)))
		for i := range n {
			g.fill(v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			g.fill(v.Index(i), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		// The order of two entries would be another one each time.
		key := g.value(v.Type().Key(), 3)
		if !hashable(key) {
			return
		}
		v.SetMapIndex(key, g.value(v.Type().Elem(), depth-1))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				g.fill(f, depth-1)
			}
		}
	case reflect.Interface:
		if v.NumMethod() == 0 {
			if x := g.any(depth - 1); x != nil {
				v.Set(reflect.ValueOf(x))
			}
		} else if x := reflect.ValueOf(named(7)); x.Type().Implements(v.Type()) {
			v.Set(x)
		}
	}
}

// any returns a value for a target of type any.
func (g *generator) any(depth int) any {
	if depth < 0 || g.rng.IntN(10) == 0 {
		return nil
	}
	switch g.rng.IntN(10) {
	case 8, 9:
		if v := g.value(g.typ(2), depth-1); v.Kind() != reflect.Interface || !v.IsNil() {
			return v.Interface()
		}
		return nil
	case 0:
		d := bson.D{}
		for range g.rng.IntN(3) {
			d = append(d, bson.E{Key: keys[g.rng.IntN(len(keys))], Value: g.any(depth - 1)})
		}
		return d
	case 1:
		a := bson.A{}
		for range g.rng.IntN(3) {
			a = append(a, g.any(depth-1))
		}
		return a
	case 2:
		return bson.M{keys[g.rng.IntN(len(keys))]: g.any(depth - 1)}
	case 3:
		t := corpus[g.rng.IntN(len(corpus))]
		if g.rng.IntN(2) == 0 {
			return g.value(t, depth-1).Addr().Interface()
		}
		return g.value(t, depth-1).Interface()
	case 4:
		return g.value(scalars[g.rng.IntN(len(scalars))], 2).Addr().Interface()
	default:
		return g.value(scalars[g.rng.IntN(len(scalars))], 2).Interface()
	}
}

func (g *generator) text() string {
	texts := []string{"", "x", "text", "name", "2020-01-02T03:04:05Z", "0123456789abcdef01234567", "été", "zero\x00octet", "12", "1e3"}
	n := len(texts)
	for {
		if s := texts[g.rng.IntN(n)]; s != "zero\x00octet" || g.rng.IntN(8) == 0 {
			return s
		}
	}
}

func (g *generator) bytes() []byte {
	b := make([]byte, g.rng.IntN(20))
	for i := range b {
		b[i] = byte(g.rng.Uint32())
	}
	return b
}

// document returns a document with the keys of the struct type t and values that often do not suit its fields.
func (g *generator) document(t reflect.Type, depth int) []byte {
	doc := []byte{0, 0, 0, 0}
	for range g.rng.IntN(7) {
		key := keys[g.rng.IntN(len(keys))]
		var value any
		if t.Kind() == reflect.Map && g.rng.IntN(4) != 0 {
			value = g.suitable(t.Elem(), depth)
		} else if t.Kind() == reflect.Struct && t.NumField() > 0 && g.rng.IntN(8) != 0 {
			f := t.Field(g.rng.IntN(t.NumField()))
			key = fieldKey(f)
			if g.rng.IntN(4) != 0 {
				value = g.suitable(f.Type, depth)
			} else {
				value = g.any(depth)
			}
		} else {
			value = g.any(depth)
		}
		doc = g.appendElement(doc, key, value)
	}
	return end(doc)
}

// suitable returns something like what a field of type t is encoded as.
func (g *generator) suitable(t reflect.Type, depth int) any {
	if depth <= 0 {
		return g.any(0)
	}
	if t.Kind() == reflect.Array && t.Len() == 16 {
		return bson.Binary{Subtype: byte(3 + g.rng.IntN(2)), Data: make([]byte, 16)}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.suitable(t.Elem(), depth)
	case reflect.Struct:
		if inlinable(t) {
			return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: g.document(t, depth-1)}
		}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 && g.rng.IntN(6) != 0 {
			a := bson.A{}
			for range g.rng.IntN(4) {
				a = append(a, g.suitable(t.Elem(), depth-1))
			}
			return a
		}
	case reflect.Map:
		d := bson.D{}
		for range g.rng.IntN(3) {
			d = append(d, bson.E{Key: []string{"a", "b", "1", "00112233-4455-6677-8899-aabbccddeeff"}[g.rng.IntN(4)], Value: g.suitable(t.Elem(), depth-1)})
		}
		return d
	}
	return g.value(t, depth).Interface()
}

func fieldKey(f reflect.StructField) string {
	tag := f.Tag.Get("bson")
	for i, c := range tag {
		if c == ',' {
			tag = tag[:i]
			break
		}
	}
	if tag == "" || tag == "-" {
		return f.Name // found in lower case
	}
	return tag
}

func (g *generator) appendElement(doc []byte, key string, value any) []byte {
	t, data, err := marshalValue(value)
	if err != nil {
		return doc
	}
	doc = append(append(append(doc, byte(t)), key...), 0)
	return append(doc, data...)
}

func marshalValue(v any) (t bson.Type, data []byte, err error) {
	defer caught(&err)
	return bson.MarshalValue(v)
}

func end(doc []byte) []byte {
	doc = append(doc, 0)
	binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	return doc
}

// mutate returns doc with some bytes changed, cut off or added.
func (g *generator) mutate(doc []byte) []byte {
	doc = append([]byte(nil), doc...)
	for range g.rng.IntN(3) + 1 {
		if len(doc) < 5 {
			return doc
		}
		i := g.rng.IntN(len(doc))
		if doc[i] == 0 && g.rng.IntN(400) != 0 {
			continue // most are the upper bytes of lengths: the driver allocates what a length says
		}
		switch g.rng.IntN(6) {
		case 0:
			doc[i] = byte(g.rng.Uint32())
		case 1:
			doc[i] ^= 1 << g.rng.IntN(8)
		case 2:
			types := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 0x7f, 0xff, 0}
			doc[i] = types[g.rng.IntN(len(types))]
		case 3: // cut, with the right length
			if i = max(i, 4); i < len(doc)-1 {
				doc = append(doc[:i:i], 0)
				binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
			}
		case 4: // cut, with the old length
			doc = doc[:i]
		case 5:
			doc[i]++
		}
	}
	// The driver does not come back from skipping a value with a negative length.
	if len(doc) >= 4 && g.rng.IntN(4) != 0 {
		binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	}
	return doc
}

// shuffle returns doc with its elements in another order, and one of them twice.
func (g *generator) shuffle(doc []byte) []byte {
	elements, err := bson.Raw(doc).Elements()
	if err != nil || len(elements) == 0 {
		return doc
	}
	out := []byte{0, 0, 0, 0}
	for _, i := range g.rng.Perm(len(elements)) {
		out = append(out, elements[i]...)
	}
	return end(append(out, elements[g.rng.IntN(len(elements))]...))
}
