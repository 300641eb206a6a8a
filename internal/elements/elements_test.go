package elements_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/elements"
)

var (
	cases = flag.Int("cases", 5000, "the number of random types")
	seed  = flag.Uint64("seed", 1, "of the random types")
)

var tags = []reflect.StructTag{
	"", "", "", `bson:"a"`, `bson:"b,omitempty"`, `bson:",omitempty"`, `bson:",minsize"`, `bson:",truncate"`, `bson:"-"`, `bson:"-,"`, `bson:""`,
	`json:"a"`, `json:"c,omitempty"`, `json:"-"`, `json:",inline"`, `bson:"d" json:"e"`, `bson:",inline"`, `bson:",inline"`, `bson:",inline"`, `bson:"inline"`,
	`bson:"x,y,omitempty,z"`, `bson:"omitempty"`, "-", "f", "g,omitempty", "inline", `yaml:"h"`, `bson:"É"`,
}

// structType returns a random struct type, whose fields are numbers, other structs, pointers to structs and maps.
func structType(rnd *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range rnd.IntN(5) {
		f := reflect.StructField{Name: fmt.Sprintf("%c%d", 'A'+rnd.IntN(3), i), Type: reflect.TypeFor[int64](), Tag: tags[rnd.IntN(len(tags))]}
		switch n := rnd.IntN(12); {
		case n < 5 && depth > 0:
			f.Type = structType(rnd, depth-1)
			if n < 2 {
				f.Type = reflect.PointerTo(f.Type)
			}
			if n < 4 {
				f.Tag = `bson:",inline"`
			}
		case n == 5:
			f.Type = reflect.TypeFor[map[string]int64]()
		case n == 6:
			f.Type = reflect.TypeFor[map[int]int64]()
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

// encoded returns the elements that the driver writes for v.
func encoded(v any, reg *bson.Registry, r elements.Reading) ([]bson.RawElement, error) {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	if r.JSON {
		enc.UseJSONStructTags()
	}
	if r.NoDuplicates {
		enc.ErrorOnInlineDuplicates()
	}
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bson.Raw(buf.Bytes()).Elements()
}

// refused reports whether a document of a struct of type t cannot be written, or one in it.
func refused(r elements.Reading, t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	fields, _, err := r.Of(t)
	return err != nil || slices.ContainsFunc(fields, func(f elements.Field) bool { return refused(r, f.Type) })
}

// TestAsTheDriver tests on random types that the driver writes exactly the elements that Of returns, in their order and with
// the values of their fields, and refuses the types that Of refuses.
func TestAsTheDriver(t *testing.T) {
	rnd := rand.New(rand.NewPCG(*seed, 0))
	var errors, inline, omitted int
	for range *cases {
		typ := structType(rnd, 3)
		r := elements.Reading{JSON: rnd.IntN(2) == 0, NoDuplicates: rnd.IntN(4) == 0}
		fields, inlineMap, err := r.Of(typ)
		if slices.ContainsFunc(fields, func(f elements.Field) bool { return refused(r, f.Type) }) {
			continue // the driver's error is that of the document in it
		}
		p := reflect.New(typ)
		zero, errZero := encoded(p.Interface(), bson.NewRegistry(), r)
		if (err == nil) != (errZero == nil) {
			t.Fatalf("%+v, %v: the error is %v; the driver's %v", r, typ, err, errZero)
		}
		if err != nil {
			errors++
			continue
		}
		var want []string
		for _, f := range fields {
			switch _, there := f.Value(p.Elem()); {
			case !there, f.OmitEmpty && f.Type.Kind() != reflect.Struct:
				omitted++
			default:
				want = append(want, f.Name)
			}
		}
		if got := keysOf(zero); !slices.Equal(got, want) {
			t.Fatalf("%+v, %v: the keys of the zero value are %q, want %q", r, typ, got, want)
		}
		checkFull(t, r, p, fields, inlineMap)
		checkOptions(t, r, typ, fields)
		if inlineMap >= 0 || slices.ContainsFunc(fields, func(f elements.Field) bool { return len(f.Index) > 1 }) {
			inline++
		}
	}
	if errors == 0 || inline == 0 || omitted == 0 {
		t.Errorf("%d types were refused, %d have inline structs or maps, %d fields were left out", errors, inline, omitted)
	}
}

// checkFull sets the fields of the struct at p to different numbers and compares them with what the driver writes.
func checkFull(t *testing.T, r elements.Reading, p reflect.Value, fields []elements.Field, inlineMap int) {
	t.Helper()
	var keys []string
	values := map[string]int64{}
	for i, f := range fields {
		keys = append(keys, f.Name)
		target := f.Target(p.Elem())
		switch target.Kind() {
		case reflect.Int64:
			target.SetInt(int64(i + 1))
			values[f.Name] = int64(i + 1)
		case reflect.Pointer:
			target.Set(reflect.New(target.Type().Elem()))
		case reflect.Map:
			target.Set(reflect.MakeMap(target.Type()))
			target.SetMapIndex(reflect.Zero(target.Type().Key()), reflect.ValueOf(int64(1))) // not empty
		}
	}
	if inlineMap >= 0 {
		p.Elem().Field(inlineMap).Set(reflect.ValueOf(map[string]int64{"of the map": 1}))
		keys = append(keys, "of the map")
	}
	doc, err := encoded(p.Interface(), bson.NewRegistry(), r)
	if err != nil {
		t.Fatalf("%+v, %v: %v", r, p.Elem().Type(), err)
	}
	for _, f := range fields {
		if _, there := f.Value(p.Elem()); !there {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key == f.Name })
		}
	}
	if got := keysOf(doc); !slices.Equal(got, keys) {
		t.Fatalf("%+v, %v: the keys are %q, want %q", r, p.Elem().Type(), got, keys)
	}
	for _, e := range doc {
		if want, ok := values[e.Key()]; ok && e.Value().AsInt64() != want {
			t.Fatalf("%+v, %v: %s is %v, want %d", r, p.Elem().Type(), e.Key(), e.Value(), want)
		}
	}
}

// checkOptions compares what the tags say of the numbers among fields with what the driver does: with minsize it writes an
// int32, and with truncate it reads a number that is none.
func checkOptions(t *testing.T, r elements.Reading, typ reflect.Type, fields []elements.Field) {
	t.Helper()
	for _, f := range fields {
		if f.Type.Kind() != reflect.Int64 || f.PointerThenStruct(typ) {
			continue
		}
		p := reflect.New(typ)
		f.Target(p.Elem()).SetInt(1)
		doc, err := encoded(p.Interface(), bson.NewRegistry(), r)
		if err != nil {
			t.Fatalf("%+v, %v: %v", r, typ, err)
		}
		i := slices.IndexFunc(doc, func(e bson.RawElement) bool { return e.Key() == f.Name })
		if got := doc[i].Value().Type; (got == bson.TypeInt32) != f.MinSize {
			t.Fatalf("%+v, %v: %s is of type %v", r, typ, f.Name, got)
		}
		half, err := bson.Marshal(bson.D{{Key: f.Name, Value: 1.5}})
		if err != nil {
			t.Fatal(err)
		}
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(half)))
		dec.SetRegistry(bson.NewRegistry()) // which keeps the first reading of a type
		if r.JSON {
			dec.UseJSONStructTags()
		}
		if err := dec.Decode(reflect.New(typ).Interface()); (err == nil) != f.Truncate {
			t.Fatalf("%+v, %v: decoding 1.5 into %s: %v", r, typ, f.Name, err)
		}
	}
}

func keysOf(doc []bson.RawElement) (keys []string) {
	for _, e := range doc {
		keys = append(keys, e.Key())
	}
	return keys
}

type (
	embedded struct {
		N int64
		I int64 `bson:"i,omitempty"`
	}
	hidden  struct{ embedded }
	inlined struct {
		embedded `bson:",inline"`
		A        int64
	}
	skipped struct {
		embedded `bson:"-"`
		A        int64
	}
)

// TestEmbedded tests that the fields of a Reading with Embedded are those that the codec of the mgo registries writes: it
// takes embedded fields that are not exported, and refuses two fields of one name.
func TestEmbedded(t *testing.T) {
	for _, v := range []any{hidden{}, inlined{}, skipped{}, struct {
		hidden
		inlined `bson:"in"`
	}{}, struct {
		inlined `bson:",inline"`
		A       int64
	}{}} {
		for _, embedded := range []bool{false, true} {
			r := elements.Reading{Embedded: embedded, NoDuplicates: embedded}
			reg := bson.NewRegistry()
			if embedded {
				reg = bson.NewMgoRegistry()
			}
			fields, _, err := r.Of(reflect.TypeOf(v))
			doc, errDriver := encoded(v, reg, elements.Reading{})
			if (err == nil) != (errDriver == nil) {
				t.Errorf("%T: the error is %v; the driver's %v", v, err, errDriver)
				continue
			}
			var want []string
			for _, f := range fields {
				if !f.OmitEmpty {
					want = append(want, f.Name)
				}
				if f.Exported != exported(reflect.TypeOf(v), f.Index) {
					t.Errorf("%T: %s is exported: %v", v, f.Name, f.Exported)
				}
			}
			if got := keysOf(doc); !slices.Equal(got, want) {
				t.Errorf("%T, embedded %v: the keys are %q, want %q", v, embedded, got, want)
			}
		}
	}
}

// exported reports whether all fields on the way to index are exported.
func exported(t reflect.Type, index []int) bool {
	for i := range index {
		if !t.FieldByIndex(index[:i+1]).IsExported() {
			return false
		}
	}
	return true
}

// A type that is inline in itself, for which the driver never ends, is an error, and All ends.
type (
	itself struct {
		N    int64
		Next *itself `bson:",inline"`
		Last *itself `bson:",inline"`
	}
	mutual struct {
		A *mutualA `bson:",inline"`
	}
	mutualA struct {
		B *mutual `bson:",inline"`
	}
)

func TestInlineInItself(t *testing.T) {
	for typ, want := range map[reflect.Type]int{reflect.TypeFor[itself](): 3, reflect.TypeFor[mutual](): 1} {
		if fields, _, err := (elements.Reading{}).Of(typ); err == nil {
			t.Errorf("%v: got %v", typ, fields)
		}
		if all := (elements.Reading{}).All(typ); len(all) != want {
			t.Errorf("%v: got %+v", typ, all)
		}
	}
}

// TestAll tests that All has the fields of Of, in their order, and those that others of one name dominate.
func TestAll(t *testing.T) {
	rnd := rand.New(rand.NewPCG(*seed, 1))
	for range 2000 {
		typ := structType(rnd, 3)
		r := elements.Reading{JSON: rnd.IntN(2) == 0}
		fields, _, err := r.Of(typ)
		if err != nil {
			continue
		}
		all := slices.DeleteFunc(r.All(typ), func(f elements.Field) bool { return f.Inline })
		for _, f := range fields {
			i := slices.IndexFunc(all, func(a elements.Field) bool { return slices.Equal(a.Index, f.Index) })
			if i < 0 || !reflect.DeepEqual(all[i], f) {
				t.Fatalf("%v: All has no %+v", typ, f)
			}
			for _, left := range all[:i] {
				if !slices.ContainsFunc(fields, func(f elements.Field) bool { return f.Name == left.Name && len(f.Index) < len(left.Index) }) {
					t.Fatalf("%v: nothing dominates %+v", typ, left)
				}
			}
			all = all[i+1:]
		}
	}
}
