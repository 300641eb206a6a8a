package structcodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
)

// A small holds its text in itself while it is short, as buffers do that save an allocation.
type small struct {
	buf  [16]byte
	text []byte
}

func (s small) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(string(s.text))
	return byte(t), data, err
}

func (s *small) UnmarshalBSONValue(t byte, data []byte) error {
	text, _ := bson.RawValue{Type: bson.Type(t), Value: data}.StringValueOK()
	s.text = append(s.buf[:0], text...)
	return nil
}

// selfKey keeps a pointer to itself.
type selfKey struct {
	self *selfKey
	text string
}

func (k selfKey) MarshalText() ([]byte, error) { return []byte(k.self.text), nil }

func (k *selfKey) UnmarshalText(text []byte) error {
	k.self, k.text = k, string(text)
	return nil
}

type smallParent struct {
	Name  string
	Child smallChild
}

// A smallChild keeps a closure over itself.
type smallChild struct {
	name string
	read func() string
}

func (c *smallChild) UnmarshalBSONValue(t byte, data []byte) error {
	c.name, _ = bson.RawValue{Type: bson.Type(t), Value: data}.StringValueOK()
	c.read = func() string { return c.name }
	return nil
}

// An inPlace has a small in the memory of a struct within it.
type inPlace struct {
	In struct{ F small }
	A  [1]struct{ F small }
}

// An element that keeps a pointer into itself keeps it into the memory where it was decoded, as with the driver.
func TestElementsThatHoldThemselves(t *testing.T) {
	type element struct{ F small }
	array := bson.A{bson.D{{Key: "f", Value: "x"}}, bson.D{{Key: "f", Value: "y"}}}
	data := doc(t, bson.E{Key: "a", Value: array}, bson.E{Key: "s", Value: array})
	driver, plans := registries(func(*bson.Registry) {})
	inside := func(reg *bson.Registry) (in []bool) {
		var v struct {
			A [2]element
			S []element
		}
		if err := decodeMemory(reg, data, &v, nil); err != nil {
			t.Fatal(err)
		}
		for _, elements := range [][]element{v.A[:], v.S} {
			for i := range elements {
				in = append(in, &elements[i].F.text[0] == &elements[i].F.buf[0])
			}
		}
		return in
	}
	if got, want := inside(plans), inside(driver); !slices.Equal(got, want) {
		t.Errorf("elements that hold their own memory: got %v, want %v", got, want)
	}
}

// Values that keep a pointer into themselves do not see the values that are decoded after them.
func TestValuesThatHoldThemselves(t *testing.T) {
	words := []string{"alpha", "beta!", "gamma", "a word that is longer than the buffer", "delta"}
	object := func(value func(string) any) bson.D {
		var d bson.D
		for _, w := range words {
			d = append(d, bson.E{Key: w, Value: value(w)})
		}
		return d
	}
	array := func(value func(string) any) (a bson.A) {
		for _, w := range words {
			a = append(a, value(w))
		}
		return a
	}
	text := func(w string) any { return w }
	document := func(w string) any { return bson.D{{Key: "f", Value: w}} }
	deep := func(w string) any {
		return bson.D{{Key: "in", Value: document(w)}, {Key: "a", Value: bson.A{document(w)}}}
	}
	parent := func(w string) any { return bson.D{{Key: "name", Value: w}, {Key: "child", Value: w}} }
	var all struct {
		Texts     map[string]small
		Structs   map[string]struct{ F small }
		Deep      map[string]inPlace
		Pointers  map[string]*small
		Parents   map[string]smallParent
		Slices    map[string][]small
		Slice     []small
		SliceOf   []struct{ F small }
		Array     [5]small
		Again     []struct{ F small }
		Keys      map[selfKey]int
		Inline    map[string]small `bson:",inline"`
		ParentsOf []smallParent
	}
	twice := func(w string) any { return bson.A{w, w} }
	data := doc(t, append(object(text),
		bson.E{Key: "texts", Value: object(text)}, bson.E{Key: "structs", Value: object(document)},
		bson.E{Key: "deep", Value: object(deep)}, bson.E{Key: "pointers", Value: object(text)},
		bson.E{Key: "parents", Value: object(parent)}, bson.E{Key: "slices", Value: object(twice)},
		bson.E{Key: "slice", Value: array(text)}, bson.E{Key: "sliceof", Value: array(document)},
		bson.E{Key: "array", Value: array(text)}, bson.E{Key: "again", Value: array(document)},
		bson.E{Key: "keys", Value: object(func(string) any { return 1 })}, bson.E{Key: "parentsof", Value: array(parent)})...)
	for i, reg := range both() {
		decoders := map[string]func() error{}
		for _, opts := range append(eachOption(), bsoncodec.Options{}) {
			_, set := (&generator{opts: opts}).setters()
			decoders[fmt.Sprintf("stream, %+v", opts)] = func() error { return decodeStream(reg, data, &all, set) }
			decoders[fmt.Sprintf("memory, %+v", opts)] = func() error { return bsoncodec.Unmarshal(reg, data, &all, opts) }
		}
		for name, decode := range decoders {
			reflect.ValueOf(&all).Elem().SetZero()
			all.Again = make([]struct{ F small }, 2, 3)
			if err := decode(); err != nil {
				t.Fatal(err)
			}
			check := func(place, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("registry %d, %s, %s: got %q, want %q", i, name, place, got, want)
				}
			}
			for n, w := range words {
				check("map of values", string(all.Texts[w].text), w)
				check("map of structs", string(all.Structs[w].F.text), w)
				check("struct in a struct", string(all.Deep[w].In.F.text), w)
				check("array in a struct", string(all.Deep[w].A[0].F.text), w)
				check("map of pointers", string(all.Pointers[w].text), w)
				check("closure", all.Parents[w].Child.read(), w)
				check("map of slices", string(all.Slices[w][1].text), w)
				check("slice", string(all.Slice[n].text), w)
				check("slice of structs", string(all.SliceOf[n].F.text), w)
				check("array", string(all.Array[n].text), w)
				check("slice that was there", string(all.Again[n].F.text), w)
				check("inline map", string(all.Inline[w].text), w)
				check("closure in a slice", all.ParentsOf[n].Child.read(), w)
				found := 0
				for k := range all.Keys {
					if k.self.text == w {
						found++
					}
				}
				if found != 1 {
					t.Errorf("registry %d, %s: %d keys hold %q", i, name, found, w)
				}
			}
			// As the driver copies an element into the slice, what the element holds is not part of the slice.
			all.Slice[0].buf[0] = 'X'
			all.SliceOf[0].F.buf[0] = 'X'
			all.ParentsOf[0].Child.name = "X"
			check("slice that was changed", string(all.Slice[0].text), words[0])
			check("slice of structs that was changed", string(all.SliceOf[0].F.text), words[0])
			check("slice of closures that was changed", all.ParentsOf[0].Child.read(), words[0])
		}
	}
}

// What is kept of a target does not change when the target is decoded into again, as far as it does not with the driver.
func TestTargetsThatAreReadTwice(t *testing.T) {
	type line struct {
		Name string
		Tags []string
	}
	type target struct {
		Lines   []line
		ByName  map[string]line
		Any     any
		P       *line
		Bytes   []byte
		Binary  bson.Binary
		Raw     bson.Raw
		Structs map[string][]line
	}
	document := func(name string, n int) []byte {
		l := bson.D{{Key: "name", Value: name}, {Key: "tags", Value: bson.A{name, name}}}
		var lines bson.A
		for range n {
			lines = append(lines, l)
		}
		return doc(t, bson.E{Key: "lines", Value: lines}, bson.E{Key: "byname", Value: bson.D{{Key: "a", Value: l}, {Key: name, Value: l}}},
			bson.E{Key: "any", Value: bson.D{{Key: "a", Value: lines}}}, bson.E{Key: "p", Value: l}, bson.E{Key: "bytes", Value: []byte(name)},
			bson.E{Key: "binary", Value: bson.Binary{Data: []byte(name)}}, bson.E{Key: "raw", Value: bson.D{{Key: name, Value: name}}},
			bson.E{Key: "structs", Value: bson.D{{Key: "a", Value: lines}}})
	}
	type read struct {
		sizes [2]int
		opts  bsoncodec.Options
	}
	var reads []read
	for _, sizes := range [][2]int{{3, 3}, {3, 2}, {2, 3}, {0, 2}, {2, 0}} {
		for _, opts := range append(eachOption(), bsoncodec.Options{}) {
			reads = append(reads, read{sizes, opts})
		}
	}
	for _, r := range reads {
		var kept []string
		for _, reg := range both() {
			var v target
			if err := bsoncodec.Unmarshal(reg, document("first", r.sizes[0]), &v, r.opts); err != nil {
				t.Fatal(err)
			}
			first := v
			byName := v.ByName["a"]
			if err := bsoncodec.Unmarshal(reg, document("other", r.sizes[1]), &v, r.opts); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, dump(reflect.ValueOf(first.Lines))+dump(reflect.ValueOf(first.Any))+dump(reflect.ValueOf(first.P))+
				string(first.Bytes)+string(first.Binary.Data)+string(first.Raw)+dump(reflect.ValueOf(byName))+dump(reflect.ValueOf(v)))
		}
		if kept[0] != kept[1] {
			t.Errorf("%+v:\n got %s\nwant %s", r, kept[1], kept[0])
		}
	}
}

// No two values that are decoded share memory, and none shares it with the document.
func TestDecodedValuesShareNoMemory(t *testing.T) {
	value := bson.Binary{Subtype: 0x80, Data: bytes.Repeat([]byte{7}, 40)}
	d := bson.D{{Key: "b", Value: value}, {Key: "s", Value: "text"}, {Key: "d", Value: bson.D{{Key: "b", Value: value}}}}
	data := doc(t, bson.E{Key: "a", Value: bson.A{d, d, value}}, bson.E{Key: "m", Value: bson.D{{Key: "x", Value: d}, {Key: "y", Value: d}}},
		bson.E{Key: "r", Value: d}, bson.E{Key: "t", Value: bson.A{bson.D{{Key: "r", Value: d}}, bson.D{{Key: "r", Value: d}}}})
	type raw struct {
		R bson.Raw
		V bson.RawValue `bson:"b"`
	}
	for i, reg := range both() {
		for _, target := range []any{
			new(bson.D), new(bson.M), new(any), new(map[string]any), new(map[string]bson.RawValue),
			new(struct {
				A bson.A
				M map[string]bson.D
				R bson.Raw
				T []raw
			}),
			new(struct {
				A []any
				M map[string]bson.M
				R bson.RawValue
				T map[string]any
			}),
			new(struct {
				A []bson.RawValue
				M map[string]raw
				R raw
				T [2]raw
			}),
		} {
			if err := decodeMemory(reg, data, target, nil); err != nil && !strings.Contains(err.Error(), "cannot decode array into a map") {
				t.Fatal(err)
			}
			blocks := map[*byte]string{}
			memory(reflect.ValueOf(target), "", func(path string, b []byte) {
				if len(b) == 0 {
					return
				}
				p := &b[0]
				if other, ok := blocks[p]; ok {
					t.Errorf("registry %d: %T: %s and %s share memory", i, target, other, path)
				}
				blocks[p] = path
				for j := range data {
					if &data[j] == p {
						t.Errorf("registry %d: %T: %s is part of the document", i, target, path)
					}
				}
			})
			if len(blocks) == 0 {
				t.Errorf("%T has no bytes", target)
			}
		}
	}
}

// sharing returns which byte slices in v share memory with each other, or with doc.
func sharing(v reflect.Value, doc []byte) string {
	var shared []string
	blocks := map[*byte]string{}
	for i := range doc {
		blocks[&doc[i]] = "the document"
	}
	memory(v, "", func(path string, b []byte) {
		if len(b) == 0 {
			return
		}
		if other, ok := blocks[&b[0]]; ok {
			shared = append(shared, other+" and "+path)
		}
		blocks[&b[0]] = path
	})
	slices.Sort(shared)
	return strings.Join(shared, ", ")
}

// memory calls f with all byte slices in v.
func memory(v reflect.Value, path string, f func(path string, b []byte)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			memory(v.Elem(), path, f)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			f(path, v.Bytes())
			return
		}
		for i := range v.Len() {
			memory(v.Index(i), path+"[]", f)
		}
	case reflect.Array:
		for i := range v.Len() {
			memory(v.Index(i), path+"[]", f)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			memory(it.Value(), fmt.Sprintf("%s.%v", path, it.Key()), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			memory(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	}
}
