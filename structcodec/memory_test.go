package structcodec_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

type (
	largeItem   struct{ A [512]int64 }
	largeNested struct {
		A    [64]int64
		Next []largeNested
		Map  map[string]largeNested
	}
	largeTarget struct {
		A      []largeItem
		M      map[string]largeItem
		Ints   []int64
		Words  []string
		Struct []struct{ A, B, C, D, E, F, G, H string }
		Fixed  [200]largeItem
		D      bson.D
		Any    any
		IDs    []uuid.UUID
		Hooks  []hookValue
		Trunc  []int32 `bson:",truncate"`
		Raw    bson.Raw
		N      *largeNested
	}
)

// memoryTypes are the types that TestMemory and FuzzMemory decode documents into.
var memoryTypes = []reflect.Type{
	reflect.TypeFor[largeTarget](), reflect.TypeFor[largeNested](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](),
	reflect.TypeFor[any](), reflect.TypeFor[map[string]largeItem](), reflect.TypeFor[map[string]string](),
	reflect.TypeFor[map[string][]int32](), reflect.TypeFor[struct{ Other string }](), reflect.TypeFor[map[uuid.UUID]largeItem](),
	reflect.TypeFor[map[string]bson.RawValue](), reflect.TypeFor[*largeNested](), reflect.TypeFor[plainTree](),
}

// allocated returns how many bytes f allocates. Others can allocate at the same time, so the least of some runs is taken
// unless one is below enough.
func allocated(enough uint64, f func()) uint64 {
	least := ^uint64(0)
	for range 6 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, after.TotalAlloc-before.TotalAlloc); least <= enough {
			break
		}
	}
	return least
}

// checkMemory reports an error if plans allocate more than twice what the driver allocates and 64 KiB when they decode
// doc into a value of type t. What is allocated at once for all elements of an array or a document comes on top: at most
// 16 times their bytes.
func checkMemory(driver, plans *bson.Registry, typ reflect.Type, doc []byte) error {
	for name, decode := range map[string]func(*bson.Registry, any){
		"memory": func(reg *bson.Registry, v any) { _ = decodeMemory(reg, doc, v, nil) },
		"stream": func(reg *bson.Registry, v any) { _ = decodeStream(reg, doc, v, func(*bson.Decoder) {}) },
	} {
		if name != "memory" && !valid(doc) {
			continue // the driver allocates what the lengths in a stream say
		}
		decode(plans, reflect.New(typ).Interface()) // compiles the plan
		decode(driver, reflect.New(typ).Interface())
		want := allocated(0, func() { decode(driver, reflect.New(typ).Interface()) })
		limit := 2*want + 64<<10 + 16*uint64(len(doc))
		if got := allocated(limit, func() { decode(plans, reflect.New(typ).Interface()) }); got > limit {
			return fmt.Errorf("%v from %d bytes, %s: %d bytes allocated, the driver allocates %d", typ, len(doc), name, got, want)
		}
	}
	return nil
}

// repeated returns an array or a document of n elements, with keys that are empty if short is set.
func repeated(n int, t bson.Type, value []byte, short bool) bson.RawValue {
	array := []byte{0, 0, 0, 0}
	for i := range n {
		array = append(array, byte(t))
		if !short {
			array = fmt.Append(array, i)
		}
		array = append(append(array, 0), value...)
	}
	return bson.RawValue{Type: bson.TypeArray, Value: end(array)}
}

func asDocument(v bson.RawValue) bson.RawValue {
	v.Type = bson.TypeEmbeddedDocument
	return v
}

// memoryDocuments are documents whose values are far larger in memory, or that cannot be decoded.
func memoryDocuments(t testing.TB, n int) [][]byte {
	empty := []byte{5, 0, 0, 0, 0}
	numbers := repeated(n, bson.TypeInt32, []byte{1, 0, 0, 0}, false)
	nulls := repeated(n, bson.TypeNull, nil, true)
	documents := repeated(n, bson.TypeEmbeddedDocument, empty, true)
	half := repeated(n/2, bson.TypeEmbeddedDocument, empty, false)
	half.Value = append(half.Value[:len(half.Value)-1], byte(bson.TypeBoolean), 'x', 0, 1)
	half.Value = end(half.Value)
	bad := bytes.Clone(documents.Value)
	bad[len(bad)-3] = 0x7f
	deep := bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}
	for range 60 {
		array := repeated(n/60, bson.TypeEmbeddedDocument, empty, false).Value
		inner := append([]byte{0, 0, 0, 0, byte(deep.Type)}, "next\x00"...)
		inner = end(append(inner, deep.Value...))
		array = append(append([]byte{0, 0, 0, 0, byte(bson.TypeEmbeddedDocument), 'x', 0}, inner...), array[4:]...)
		binary.LittleEndian.PutUint32(array, uint32(len(array)))
		deep = bson.RawValue{Type: bson.TypeArray, Value: array}
	}
	var docs [][]byte
	for _, v := range []bson.RawValue{numbers, nulls, documents, half, {Type: bson.TypeArray, Value: bad}, deep} {
		for _, key := range []string{"a", "m", "ints", "words", "struct", "fixed", "d", "any", "ids", "hooks", "trunc", "raw", "next", "map", "other"} {
			docs = append(docs, doc(t, bson.E{Key: key, Value: v}), doc(t, bson.E{Key: key, Value: asDocument(v)}))
		}
		docs = append(docs, v.Value)
	}
	return append(docs, doc(t, bson.E{Key: "unknown", Value: string(make([]byte, 20*n))}, bson.E{Key: "a", Value: 1}))
}

// A document cannot make a plan allocate far more than the driver allocates for it.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("decodes large documents")
	}
	driver, plans := registries(registerCallers)
	for _, typ := range memoryTypes {
		for i, doc := range memoryDocuments(t, 400) {
			if err := checkMemory(driver, plans, typ, doc); err != nil {
				t.Errorf("document %d: %v", i, err)
			}
		}
	}
}

// Of a large document that cannot be decoded, or of which most is skipped, no copy is made.
func TestMemoryOfLargeStreams(t *testing.T) {
	driver, plans := registries(func(*bson.Registry) {})
	skipped := bson.E{Key: "unknown", Value: string(make([]byte, 1<<20))}
	for name, raw := range map[string]bson.Raw{
		"wrong":   doc(t, bson.E{Key: "n", Value: "text"}, skipped),
		"skipped": doc(t, skipped, bson.E{Key: "n", Value: 5}),
		"hooked":  doc(t, skipped, bson.E{Key: "h", Value: 5}),
	} {
		two := append(bytes.Clone(raw), doc(t, bson.E{Key: "n", Value: 6})...)
		for kind, read := range map[string]func() interface{ Read([]byte) (int, error) }{
			"bytes.Reader": func() interface{ Read([]byte) (int, error) } { return bytes.NewReader(two) },
			"bytes.Buffer": func() interface{ Read([]byte) (int, error) } { return bytes.NewBuffer(two) },
			"a reader": func() interface{ Read([]byte) (int, error) } {
				return struct{ *bytes.Reader }{bytes.NewReader(two)}
			},
		} {
			type target struct {
				N int
				H hookValue
			}
			decode := func(reg *bson.Registry) (values [2]target, errs [2]error) {
				dec := streamDecoder(reg, read())
				for i := range errs {
					errs[i] = dec.Decode(&values[i])
				}
				return values, errs
			}
			wantValues, wantErrs := decode(driver)
			gotValues, gotErrs := decode(plans)
			if wantValues != gotValues || !sameError(wantErrs[0], gotErrs[0]) || (wantErrs[1] == nil) != (gotErrs[1] == nil) {
				t.Errorf("%s, %s: got %v and %v, want %v and %v", name, kind, gotValues, gotErrs, wantValues, wantErrs)
			}
			limit := 2*allocated(0, func() { decode(driver) }) + 64<<10
			if got := allocated(limit, func() { decode(plans) }); got > limit {
				t.Errorf("%s, %s: %d bytes are allocated, the limit is %d", name, kind, got, limit)
			}
		}
	}
}

// The documents of an array are allocated one after the other if they are large.
func TestMemoryOfWrongArray(t *testing.T) {
	numbers := repeated(100_000, bson.TypeInt32, []byte{1, 0, 0, 0}, false)
	raw := doc(t, bson.E{Key: "a", Value: numbers})
	_, plans := registries(func(*bson.Registry) {})
	decode := func() {
		if err := decodeMemory(plans, raw, new(struct{ A []largeItem }), nil); err == nil {
			t.Fatal("a number was decoded into a struct")
		}
	}
	decode()
	if got := allocated(64<<10, decode); got > 64<<10 {
		t.Errorf("%d bytes are allocated for an array whose first element is wrong", got)
	}
}

// FuzzMemory decodes the repetition of a document, within it and behind it, into one of the memoryTypes.
func FuzzMemory(f *testing.F) {
	g := &generator{rng: rand.New(rand.NewPCG(9, 9))}
	types := slices.Concat(memoryTypes, corpus)
	for i, typ := range types {
		f.Add(uint8(i), uint16(50), g.document(typ, 3))
	}
	for i, doc := range memoryDocuments(f, 60) {
		f.Add(uint8(i), uint16(i%40), doc)
	}
	driver, plans := registries(registerCallers)
	f.Fuzz(func(t *testing.T, i uint8, n uint16, doc []byte) {
		typ := types[int(i)%len(types)]
		if len(doc) < 5 || statedLength(doc) != len(doc) || len(doc) > 1<<17 {
			return
		}
		elements := doc[4 : len(doc)-1]
		if len(elements)*int(n) < 1<<17 {
			doc = end(append([]byte{0, 0, 0, 0}, bytes.Repeat(elements, int(n)+1)...))
		}
		if err := checkMemory(driver, plans, typ, doc); err != nil {
			t.Error(err)
		}
	})
}

// An empty map takes no memory for a value.
func TestMemoryOfEmptyMaps(t *testing.T) {
	empty := make(bson.A, 1000)
	for i := range empty {
		empty[i] = bson.D{}
	}
	data := doc(t, bson.E{Key: "m", Value: empty})
	_, plans := registries(registerCallers)
	var target struct{ M []map[string][512]int64 }
	decode := func() {
		target.M = nil
		if err := decodeMemory(plans, data, &target, nil); err != nil {
			t.Fatal(err)
		}
	}
	decode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	decode()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("1000 empty maps took %d bytes", got)
	}
}
