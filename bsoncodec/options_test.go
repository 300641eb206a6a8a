package bsoncodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Options must follow the driver: a field that it adds needs one here and in
// driver.Options, and a row in the settings beside that.
func TestOptionsAreTheDriversBSONOptions(t *testing.T) {
	ours, theirs := reflect.TypeFor[bsoncodec.Options](), reflect.TypeFor[options.BSONOptions]()
	for i := range theirs.NumField() {
		want := theirs.Field(i)
		got, ok := ours.FieldByName(want.Name)
		if !ok || got.Type != want.Type {
			t.Errorf("Options has no field %s of type %v", want.Name, want.Type)
		}
	}
	for i := range ours.NumField() {
		f := ours.Field(i)
		if _, ok := theirs.FieldByName(f.Name); f.IsExported() && !ok {
			t.Errorf("the driver's BSONOptions has no field %s", f.Name)
		}
	}
}

// optionNames are the fields of BSONOptions. The methods of the driver's Encoder and Decoder have
// the same names.
func optionNames() (names []string) {
	for f := range theFields(reflect.TypeFor[options.BSONOptions]()) {
		names = append(names, f.Name)
	}
	return names
}

func theFields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// withOptions returns the Options with the named fields set.
func withOptions(names ...string) (o bsoncodec.Options) {
	for _, name := range names {
		reflect.ValueOf(&o).Elem().FieldByName(name).SetBool(true)
	}
	return o
}

// call calls the methods of coder, an Encoder or a Decoder of the driver, that have the given
// names. It reports whether there was one.
func call(coder any, names []string) (any bool) {
	for _, name := range names {
		if m := reflect.ValueOf(coder).MethodByName(name); m.IsValid() {
			m.Call(nil)
			any = true
		}
	}
	return any
}

// optionSets are no option, each one, each pair, all but one, and all.
func optionSets() (sets [][]string) {
	names := optionNames()
	sets = append(sets, nil, names)
	for i := range names {
		sets = append(sets, names[i:i+1:i+1])
		sets = append(sets, append(append([]string(nil), names[:i]...), names[i+1:]...))
		for j := range i {
			sets = append(sets, []string{names[j], names[i]})
		}
	}
	return sets
}

type inlined struct {
	Twice int `bson:"twice"`
}

// optioned encodes differently under each option of the driver's encoder.
type optioned struct {
	ID       uuid.UUID `json:"_id"`
	Name     string    `json:"renamed"`
	Small    int64
	M        map[string]int
	S        []int
	B        []byte
	Zero     inlined `bson:",omitempty"`
	ZeroTime time.Time
	Keys     map[keyed]int
	Nested   *optioned `json:"below"`
}

type keyed struct{ N int }

// What Marshal and the others write under each option is what the driver's encoder writes under it,
// which a client uses. Each set of options meets the registry after all others.
func TestEncodingOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	type duplicate struct {
		Inlined inlined `bson:",inline"`
		Twice   int     `bson:"twice"`
	}
	values := []any{
		optioned{ID: testUUID, Small: 1, Keys: map[keyed]int{{1}: 1}, Nested: &optioned{Small: 2}},
		duplicate{}, &duplicate{}, bson.D{{Key: "d", Value: duplicate{Twice: 1}}}, bson.M{"o": optioned{}},
	}
	written := map[string]bool{}
	for _, set := range optionSets() {
		other := registry(t, uuidrep.Standard)
		for i, v := range values {
			var want bytes.Buffer
			enc := bson.NewEncoder(bson.NewDocumentWriter(&want))
			enc.SetRegistry(other)
			call(enc, set)
			wantErr := enc.Encode(v)
			got, err := bsoncodec.Marshal(reg, v, withOptions(set...))
			if !bytes.Equal(got, want.Bytes()) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%v: Marshal(%T): got %v, %v; want %v, %v", set, v, bson.Raw(got), err, bson.Raw(want.Bytes()), wantErr)
			}
			if i == 0 && len(set) == 1 {
				written[want.String()] = true
			}
			rv, err := bsoncodec.MarshalValue(reg, v, withOptions(set...))
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || (err == nil && !bytes.Equal(rv.Value, want.Bytes())) {
				t.Fatalf("%v: MarshalValue(%T): got %v, %v; want %v, %v", set, v, rv, err, bson.Raw(want.Bytes()), wantErr)
			}
			ext, err := bsoncodec.MarshalExtJSON(reg, v, true, false, withOptions(set...))
			var wantExt []byte
			if wantErr == nil {
				wantExt, _ = bson.MarshalExtJSON(bson.Raw(want.Bytes()), true, false)
			}
			if string(ext) != string(wantExt) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%v: MarshalExtJSON(%T): got %s, %v; want %s, %v", set, v, ext, err, wantExt, wantErr)
			}
		}
	}
	// Without an option, and under those of the encoder but ErrorOnInlineDuplicates: each writes
	// another document, apart from OmitZeroStruct and OmitEmpty, which omit different fields.
	if want := 9; len(written) != want {
		t.Errorf("the options of the encoder made %d documents of one value, want %d: the test misses an option", len(written), want)
	}
}

// decoded is decoded differently under each option of the driver's decoder.
type decoded struct {
	Name string `json:"renamed"`
	Int  int
	Any  any
	Bin  any
	OID  any
	Hex  string
	Time time.Time
	Map  map[string]int
	In   struct{ A, B int }
}

func newDecoded() *decoded {
	d := &decoded{Map: map[string]int{"old": 1}}
	d.In.A, d.In.B = 1, 1
	return d
}

// What Unmarshal and the others read under each option is what the driver's decoder reads under it.
func TestDecodingOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	doc := marshal(t, reg, bson.D{
		{Key: "name", Value: "name"}, {Key: "renamed", Value: "renamed"}, {Key: "int", Value: 1.0},
		{Key: "any", Value: bson.D{{Key: "u", Value: testUUID}, {Key: "d", Value: bson.D{}}}}, {Key: "bin", Value: bson.Binary{Data: []byte{1}}},
		{Key: "oid", Value: bson.ObjectID{1}}, {Key: "time", Value: time.UnixMilli(1e12)}, {Key: "map", Value: bson.D{{Key: "new", Value: 1}}},
		{Key: "in", Value: bson.D{{Key: "b", Value: 2}}},
	})
	truncated := marshal(t, reg, bson.D{{Key: "int", Value: 1.5}})
	hex := marshal(t, reg, bson.D{{Key: "hex", Value: bson.ObjectID{1}}})
	ext := func(doc []byte) []byte {
		text, err := bson.MarshalExtJSON(bson.Raw(doc), true, false)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, set := range optionSets() {
		other := registry(t, uuidrep.Standard) // which has met no other options
		for _, raw := range []bson.Raw{doc, truncated, hex} {
			for _, target := range []func() any{
				func() any { return newDecoded() }, func() any { return new(any) }, func() any { return new(bson.D) },
				func() any { return &bson.M{"map": map[string]int{"old": 1}} }, func() any { return bson.M{"old": 1} },
			} {
				want := target()
				dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
				dec.SetRegistry(other)
				call(dec, set)
				wantErr := dec.Decode(want)
				check := func(name string, err error, got any) {
					if (err == nil) != (wantErr == nil) || (err == nil && !reflect.DeepEqual(got, want)) {
						t.Fatalf("%v: %s(%T): got %v, %v; want %v, %v", set, name, got, got, err, want, wantErr)
					}
				}
				got := target()
				check("Unmarshal", bsoncodec.Unmarshal(reg, raw, got, withOptions(set...)), got)
				got = target()
				check("UnmarshalExtJSON", bsoncodec.UnmarshalExtJSON(reg, ext(raw), true, got, withOptions(set...)), got)
				got = target()
				rv := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
				check("UnmarshalValue", bsoncodec.UnmarshalValue(reg, rv, got, withOptions(set...)), got)
			}
		}
	}
}

// DecodeNative encodes and decodes with the Options that it is given.
func TestDecodeNativeOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	v := bson.D{{Key: "u", Value: uuidrep.NewBinary(testUUID)}, {Key: "b", Value: bson.Binary{Data: []byte{1}}}, {Key: "n", Value: []int(nil)}}
	got, err := bsoncodec.DecodeNative(reg, v, bsoncodec.Options{BinaryAsSlice: true, DefaultDocumentM: true, NilSliceAsEmpty: true})
	if want := (bson.M{"u": testUUID, "b": []byte{1}, "n": bson.A{}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v; want %#v", got, err, want)
	}
}

// Every function takes one Options.
func TestTwoOptions(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	empty := bson.Raw{5, 0, 0, 0, 0}
	rv := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: empty}
	for name, f := range map[string]func(...bsoncodec.Options) error{
		"Marshal": func(o ...bsoncodec.Options) error { _, err := bsoncodec.Marshal(reg, bson.D{}, o...); return err },
		"MarshalExtJSON": func(o ...bsoncodec.Options) error {
			_, err := bsoncodec.MarshalExtJSON(reg, bson.D{}, true, true, o...)
			return err
		},
		"MarshalValue": func(o ...bsoncodec.Options) error { _, err := bsoncodec.MarshalValue(reg, 1, o...); return err },
		"Unmarshal":    func(o ...bsoncodec.Options) error { return bsoncodec.Unmarshal(reg, empty, new(bson.D), o...) },
		"UnmarshalExtJSON": func(o ...bsoncodec.Options) error {
			return bsoncodec.UnmarshalExtJSON(reg, []byte("{}"), true, new(bson.D), o...)
		},
		"UnmarshalValue": func(o ...bsoncodec.Options) error { return bsoncodec.UnmarshalValue(reg, rv, new(bson.D), o...) },
		"DecodeNative":   func(o ...bsoncodec.Options) error { _, err := bsoncodec.DecodeNative(reg, 1, o...); return err },
	} {
		if err := f(bsoncodec.Options{IntMinSize: true}); err != nil {
			t.Errorf("%s with one Options: %v", name, err)
		}
		if err := f(bsoncodec.Options{}, bsoncodec.Options{}); err == nil {
			t.Errorf("%s took two Options", name)
		}
	}
}

func (k keyed) MarshalText() ([]byte, error) { return []byte("text"), nil }
