package structcodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// What the driver promises of whole documents that are not structs, in its documentation and in its tests for
// decoding (bson/unmarshal_test.go, bson/unmarshaling_cases_test.go).
func TestDecodedDocuments(t *testing.T) {
	raw := doc(t, bson.E{Key: "a", Value: int32(1)}, bson.E{Key: "b", Value: bson.D{{Key: "c", Value: bson.A{"x", nil}}}})
	want := bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: bson.D{{Key: "c", Value: bson.A{"x", nil}}}}}
	entries := func(more ...string) bson.M {
		m := bson.M{"a": want[0].Value, "b": want[1].Value}
		for _, k := range more {
			m[k] = true
		}
		return m
	}
	d := bson.D{{Key: "old", Value: 1}, {Key: "old", Value: 2}, {Key: "old", Value: 3}}
	shared := d
	m := bson.M{"a": "old", "old": true}
	for name, c := range map[string]struct{ target, want any }{
		"a nil D":                   {new(bson.D), &want},
		"a D is replaced":           {&d, &want},
		"a nil M":                   {new(bson.M), ptr(entries())},
		"an M is extended":          {&m, ptr(entries("old"))},
		"an M without a pointer":    {bson.M{"old": true}, entries("old")},
		"a map":                     {&map[string]any{}, ptr(map[string]any(entries()))},
		"a defined type":            {new(namedM), ptr(namedM(entries()))},
		"any":                       {new(any), ptr[any](want)},
		"any is replaced":           {ptr[any](&bson.M{}), ptr[any](want)},
		"a pointer to a nil D":      {new(*bson.D), ptr(&want)},
		"a slice of elements":       {new([]bson.E), ptr([]bson.E(want))},
		"a defined type of a slice": {new(namedD), ptr(namedD(want))},
	} {
		for _, reg := range both() {
			for _, decode := range []func(*bson.Registry, []byte, any, func(*bson.Decoder)) error{decodeStream, decodeMemory} {
				target := copyOf(reflect.ValueOf(c.target)).Interface()
				if err := decode(reg, raw, target, func(*bson.Decoder) {}); err != nil || !reflect.DeepEqual(target, c.want) {
					t.Errorf("%s: got %+v and error %v, want %+v", name, target, err, c.want)
				}
			}
		}
	}
	// The array of a D is used again.
	_, plans := registries(registerCallers)
	if err := decodeMemory(plans, raw, &d, nil); err != nil || len(d) != 2 || &d[0] != &shared[0] || shared[2].Value != 3 {
		t.Errorf("got %v and error %v, and %v in the array before", d, err, shared)
	}
}

func ptr[T any](v T) *T { return &v }

// copyOf returns a copy of v, of what it points to, and of maps.
func copyOf(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(copyOf(v.Elem()))
		return p
	case v.Kind() == reflect.Map && !v.IsNil():
		m := reflect.MakeMap(v.Type())
		for it := v.MapRange(); it.Next(); {
			m.SetMapIndex(it.Key(), it.Value())
		}
		return m
	}
	return v
}

// Before an error, a D is emptied, a map keeps what was decoded, and an any is unchanged. The error names the keys of maps
// and arrays, and not those of a D.
func TestDecodedDocumentsAfterAnError(t *testing.T) {
	register := func(reg *bson.Registry) {
		reg.RegisterTypeMapEntry(bson.TypeString, reflect.TypeFor[int]())
	}
	driver, plans := registries(register)
	raw := doc(t, bson.E{Key: "a", Value: int32(1)}, bson.E{Key: "b", Value: bson.A{int32(1), "x"}}, bson.E{Key: "c", Value: int32(2)})
	for _, c := range []struct {
		target, want any
		keys         string
	}{
		{&bson.D{{Key: "old"}}, &bson.D{}, "1"},
		{&bson.M{"old": 1}, &bson.M{"old": 1, "a": int32(1)}, "b.1"},
		{ptr[any]("old"), ptr[any]("old"), "1"},
		{map[string]bson.A{}, map[string]bson.A{}, ""},
	} {
		for i, reg := range []*bson.Registry{driver, plans} {
			target := copyOf(reflect.ValueOf(c.target)).Interface()
			err := decodeMemory(reg, raw, target, nil)
			var de *bson.DecodeError
			if err == nil || !reflect.DeepEqual(target, c.want) || c.keys != "" && (!errors.As(err, &de) || strings.Join(de.Keys(), ".") != c.keys) {
				t.Errorf("registry %d: got %+v and error %v, want %+v and the keys %s", i, target, err, c.want, c.keys)
			}
		}
	}
}

// A caller's codec for documents, or for what is in them, stays in force, with each entry of the type map.
func TestDocumentsOfACaller(t *testing.T) {
	raw := doc(t,
		bson.E{Key: "i", Value: int32(1)}, bson.E{Key: "l", Value: int64(1)}, bson.E{Key: "s", Value: "text"},
		bson.E{Key: "d", Value: bson.D{{Key: "x", Value: bson.D{}}, {Key: "street", Value: "s"}}}, bson.E{Key: "a", Value: bson.A{int32(1), "x"}},
		bson.E{Key: "n"}, bson.E{Key: "t", Value: bson.DateTime(1)}, bson.E{Key: "b", Value: true},
		bson.E{Key: "o", Value: bson.Binary{Subtype: 0x80, Data: make([]byte, 4)}}, bson.E{Key: "u", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}})
	part := doc(t, bson.E{Key: "s", Value: "text"}, bson.E{Key: "d", Value: bson.D{{Key: "x", Value: "y"}}})
	values := []any{
		bson.D{{Key: "a", Value: bson.M{"b": "c"}}}, &bson.D{{Key: "a", Value: bson.E{Key: "x"}}}, bson.M{"a": bson.D{}}, &bson.M{"a": bson.A{1}},
		map[string]any{"a": nil}, map[string]bson.D{"a": nil}, bson.D(nil), bson.M(nil), (*bson.D)(nil), ptr(bson.M(nil)), nil, new(any),
		ptr[any](bson.D{}), calledM{"a": called(1)}, hookMap{}, &hookMapValue{}, namedD{{Key: "a"}}, map[string]string{"a": "b"},
	}
	uuids := func(register func(*bson.Registry), newRegistry func() *bson.Registry) (pair [2]*bson.Registry) {
		for i := range pair {
			b := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(register)
			if i == 0 {
				b.WithoutPlans()
			}
			pair[i] = newRegistry()
			if err := b.ApplyTo(pair[i]); err != nil {
				t.Fatal(err)
			}
		}
		return pair
	}
	for i := -1; i < len(calledDocuments); i++ {
		for j := -1; j < len(typeMapEntries); j++ {
			register := func(reg *bson.Registry) {
				registerCallers(reg)
				if j >= 0 {
					reg.RegisterTypeMapEntry(typeMapEntries[j].t, typeMapEntries[j].goType)
				}
				if i >= 0 {
					reg.RegisterTypeEncoder(calledDocuments[i], bson.ValueEncoderFunc(encodeCalledDocument))
					reg.RegisterTypeDecoder(calledDocuments[i], bson.ValueDecoderFunc(decodeCalledDocument))
				}
			}
			driver, plans := registries(register)
			pairs := [][2]*bson.Registry{{driver, plans}, uuids(register, bson.NewRegistry)}
			if j < 0 {
				pairs = append(pairs, uuids(register, bson.NewMgoRegistry), uuids(register, bson.NewRespectNilValuesMgoRegistry))
			}
			for k, pair := range pairs {
				for _, typ := range topTypes {
					if msg := sameDecoding(pair, typ, raw, part); msg != "" {
						t.Errorf("caller %d, entry %d, pair %d: %v: %s", i, j, k, typ, msg)
					}
				}
				for _, v := range values {
					hooks = 0
					want, wantErr := marshal(pair[0], v)
					wantHooks := hooks
					hooks = 0
					got, gotErr := marshal(pair[1], v)
					if !bytes.Equal(want, got) || !sameError(wantErr, gotErr) || hooks != wantHooks {
						t.Errorf("caller %d, entry %d, pair %d: marshal %#v: got %x and error %v, want %x and %v", i, j, k, v, got, gotErr, want, wantErr)
					}
				}
			}
		}
	}
}

// sameDecoding reports how the second registry decodes the documents otherwise than the first.
func sameDecoding(pair [2]*bson.Registry, typ reflect.Type, docs ...[]byte) string {
	for _, raw := range docs {
		for _, decode := range []func(*bson.Registry, []byte, any, func(*bson.Decoder)) error{decodeStream, decodeMemory} {
			want, got := reflect.New(typ), reflect.New(typ)
			hooks = 0
			wantErr := decode(pair[0], raw, want.Interface(), func(*bson.Decoder) {})
			wantHooks := hooks
			hooks = 0
			gotErr := decode(pair[1], raw, got.Interface(), func(*bson.Decoder) {})
			if !sameError(wantErr, gotErr) || !same(want, got) || hooks != wantHooks {
				return fmt.Sprintf("got %s, error %v and %d calls, want %s, %v and %d", dump(got), gotErr, hooks, dump(want), wantErr, wantHooks)
			}
		}
	}
	return ""
}

// Documents that are deep go to the driver, and those that are long do not.
func TestDeepAndLongDocuments(t *testing.T) {
	driver, plans := registries(registerCallers)
	for _, depth := range []int{1, 99, 199, 200, 201, 1500} {
		raw := []byte{5, 0, 0, 0, 0}
		for i := range depth {
			element := append([]byte{byte(3 + i%2)}, "0\x00"...)
			raw = end(append(append([]byte{0, 0, 0, 0}, element...), raw...))
		}
		for _, typ := range []reflect.Type{reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[any](), reflect.TypeFor[directory]()} {
			if msg := sameDecoding([2]*bson.Registry{driver, plans}, typ, raw); msg != "" {
				t.Errorf("%d levels: %v: %.300s", depth, typ, msg)
			}
		}
	}
	long := bson.D{}
	for i := range 5000 {
		long = append(long, bson.E{Key: fmt.Sprint("key", i), Value: bson.A{strings.Repeat("x", 100), i}})
	}
	raw := doc(t, long...)
	for _, typ := range []reflect.Type{reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[any]()} {
		if msg := sameDecoding([2]*bson.Registry{driver, plans}, typ, raw); msg != "" {
			t.Errorf("a document of %d bytes: %v: %.300s", len(raw), typ, msg)
		}
	}
}

// The result of decoding a whole document shares no memory with it.
func TestDecodedDocumentsAreCopies(t *testing.T) {
	value := bson.Binary{Data: []byte{1, 2, 3}}
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[bson.D](), reflect.TypeFor[map[string]bson.Raw](), reflect.TypeFor[any]()} {
		raw := doc(t, bson.E{Key: "a", Value: bson.D{{Key: "b", Value: value}, {Key: "s", Value: "text"}, {Key: "r", Value: bson.Regex{Pattern: "p"}}}})
		got := reflect.New(typ)
		if err := bsoncodec.Unmarshal(reg, raw, got.Interface()); err != nil {
			t.Fatal(err)
		}
		before := dump(got)
		clear(raw)
		if after := dump(got); after != before {
			t.Errorf("got %s, want %s", after, before)
		}
	}
}

// Plans of documents are compiled by whoever comes first, and used by all.
func TestConcurrentFirstUseOfDocuments(t *testing.T) {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.UUID{1}
	want := bson.D{{Key: "id", Value: id}, {Key: "d", Value: bson.D{{Key: "ids", Value: bson.A{id}}}}}
	raw, err := bsoncodec.Marshal(reg, want)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				var d bson.D
				var m bson.M
				var x any
				var s map[string]struct{ IDs []uuid.UUID }
				for _, target := range []any{&d, &m, &x} {
					if err := bsoncodec.Unmarshal(fresh, raw, target); err != nil {
						t.Error(err)
					}
				}
				if err := decodeStream(fresh, raw, &s, func(*bson.Decoder) {}); err == nil {
					t.Error("a UUID is a struct")
				}
				if !reflect.DeepEqual(d, want) || !reflect.DeepEqual(x, any(want)) || m["id"] != any(id) {
					t.Errorf("got %v, %v and %v", d, m, x)
				}
				if got, err := bsoncodec.Marshal(fresh, d); err != nil || !bytes.Equal(got, raw) {
					t.Errorf("got %x and error %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

// Documents of few elements go through a plan or through the driver, as their elements make one or the other faster.
func TestDocumentsOfFewElements(t *testing.T) {
	driver, plans := registries(registerCallers)
	none := func(*bson.Encoder) {}
	value := []any{
		nil, 1, "x", bson.D{}, bson.D{{Key: "$gt", Value: 5}}, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}}, bson.A{},
		bson.A{1, bson.D{{Key: "a", Value: 1}}}, bson.M{"$gt": 5}, bson.M{}, []int{1, 2}, bson.A{make(chan int)}, bson.D(nil), bson.A(nil), bson.M(nil),
		bson.D{{Key: "a\x00b", Value: bson.A{}}},
	}
	for _, a := range value {
		docs := []any{bson.M{"a": a}, map[string]any{"a": a}, bson.D{{Key: "a", Value: a}}, bson.D{{Key: "a\x00b", Value: a}}}
		for _, b := range value {
			docs = append(docs, bson.D{{Key: "a", Value: a}, {Key: "b", Value: b}}, bson.D{{Key: "a", Value: a}, {Key: "n", Value: 1}, {Key: "b", Value: b}})
		}
		for _, doc := range docs {
			want, wantErr := encode(driver, doc, none)
			got, gotErr := encode(plans, doc, none)
			if !sameError(wantErr, gotErr) || wantErr == nil && !sameDocument(want, got) && !bytes.Equal(want, got) {
				t.Errorf("%v: got %x and %v, want %x and %v", doc, got, gotErr, want, wantErr)
			}
		}
	}
}
