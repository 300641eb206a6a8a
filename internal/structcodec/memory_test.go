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
	reflect.TypeFor[map[string]bson.RawValue](), reflect.TypeFor[*largeNested](), reflect.TypeFor[plainTree](), reflect.TypeFor[wrapperTarget](),
}

// wrapperTarget is decoded as a whole document only, and not by a plan.
type wrapperTarget struct{ uuid.UUID }

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
// 16 times their bytes. The driver allocates what the lengths in a stream say, so that a stream of a malformed document
// is compared with what the driver allocates when it reads that from memory.
func checkMemory(driver, plans *bson.Registry, typ reflect.Type, doc []byte) error {
	for name, decode := range map[string]func(*bson.Registry, any){
		"memory": func(reg *bson.Registry, v any) { _ = decodeMemory(reg, doc, v, nil) },
		"stream": func(reg *bson.Registry, v any) { _ = decodeStream(reg, doc, v, func(*bson.Decoder) {}) },
	} {
		of := decode
		if !valid(doc) {
			if name == "stream" && !slices.Contains(memoryTypes, typ) {
				continue // the driver decodes types that have no plan
			}
			of = func(reg *bson.Registry, v any) { _ = decodeMemory(reg, doc, v, nil) }
		}
		decode(plans, reflect.New(typ).Interface()) // compiles the plan
		of(driver, reflect.New(typ).Interface())
		want := allocated(0, func() { of(driver, reflect.New(typ).Interface()) })
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
	docs = append(docs, beyond()...)
	return append(docs, doc(t, bson.E{Key: "unknown", Value: string(make([]byte, 20*n))}, bson.E{Key: "a", Value: 1}))
}

// beyond returns documents with a length of half a gigabyte in them. Some are too long to be copied out of a stream.
func beyond() (docs [][]byte) {
	const much = "\x00\x00\x00\x20"
	for _, value := range []string{
		"\x02k\x00" + much + "x\x00", "\x0dk\x00" + much + "x\x00", "\x0ek\x00" + much + "x\x00", "\x05k\x00" + much + "\x00x",
		"\x05k\x00" + much + "\x02" + much + "x", "\x05k\x00\x05\x00\x00\x00\x02" + much + "x", "\x0ck\x00" + much + "x\x00" + "123456789012",
		"\x0fk\x00" + much + "\x02\x00\x00\x00x\x00\x05\x00\x00\x00\x00", "\x0fk\x00\x20\x00\x00\x00" + much + "x\x00\x05\x00\x00\x00\x00",
		"\x03k\x00" + much + "\x02a\x00" + much + "x\x00", "\x04k\x00" + much + "\x02a\x00" + much + "x\x00",
		"\x02k\x00" + much + "x\x00\x03l\x00\xff\xff\xff\xff\x00", // and one that is negative
	} {
		for _, key := range []string{"a", "other", "uuid"} {
			raw := append([]byte{0, 0, 0, 0}, value[:1]+key+value[2:]...)
			if padding := []int{0, 100, maxCopied + 1}[len(docs)%3]; padding > 0 {
				raw = append(raw, "\x05padding\x00"...)
				raw = binary.LittleEndian.AppendUint32(raw, uint32(padding))
				raw = append(raw, make([]byte, 1+padding)...)
			}
			raw = end(raw)
			if len(docs)%4 == 0 {
				raw = end(append([]byte("\x00\x00\x00\x00\x03"+key+"\x00"), raw...))
			}
			docs = append(docs, raw)
		}
	}
	return docs
}

const maxCopied = 24 << 10 // of structcodec

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
			if name == "wrong" && kind != "a reader" { // the next document is decoded, by the driver not
				if gotValues[1] != (target{N: 6}) || gotErrs[1] != nil {
					t.Errorf("%s, %s: got %v and error %v after the error", name, kind, gotValues[1], gotErrs[1])
				}
				wantValues[1], wantErrs[1] = gotValues[1], nil
			}
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

// The elements of an array that is zero are read into it, and those of another one are read aside first.
func TestMemoryOfArrays(t *testing.T) {
	type target struct{ A [64]int64 }
	_, plans := registries(registerCallers)
	raw := doc(t, bson.E{Key: "a", Value: [64]int64{1}})
	decode := func(first int64) func() {
		return func() {
			v := target{[64]int64{first}}
			if err := decodeMemory(plans, raw, &v, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	decode(0)() // compiles the plan
	enough := allocated(0, decode(2)) - uint64(reflect.TypeFor[target]().Size())
	if got := allocated(enough, decode(0)); got > enough {
		t.Errorf("%d bytes are allocated for an array that is zero, want at most %d", got, enough)
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
