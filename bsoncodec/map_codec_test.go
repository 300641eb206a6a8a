package bsoncodec_test

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A key that is a UUID is the text of the UUID, in the representation of no registry.
func TestMapKeys(t *testing.T) {
	type keyed struct {
		Text  map[uuid.UUID]int32
		Plain map[orderID]int32
		Deep  map[orderID]map[orderID]uuid.UUID
	}
	reg := registry(t, uuidrep.CSharpLegacy)
	other := orderID{0xFF}
	in := keyed{
		Text:  map[uuid.UUID]int32{testUUID: 1, {}: 2},
		Plain: map[orderID]int32{orderID(testUUID): 1, other: 2, {}: 3},
		Deep:  map[orderID]map[orderID]uuid.UUID{other: {other: testUUID}},
	}
	raw := marshal(t, reg, in)
	if v := raw.Lookup("plain", testUUID.String()); v.Type != bson.TypeInt32 {
		t.Errorf("got %v", raw)
	}
	var out keyed
	unmarshal(t, reg, raw, &out)
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got %v, want %v", out, in)
	}
	// A map that is there is extended, as the driver does it, and is still the caller's.
	old := map[orderID]int32{{1}: 9, other: 7}
	out = keyed{Plain: old}
	unmarshal(t, reg, raw, &out)
	if want := (map[orderID]int32{orderID(testUUID): 1, other: 2, {}: 3, {1}: 9}); !reflect.DeepEqual(old, want) {
		t.Errorf("got %v, want %v", old, want)
	}
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	dec.ZeroMaps()
	if err := dec.Decode(&out); err != nil || !reflect.DeepEqual(old, in.Plain) {
		t.Errorf("with ZeroMaps: got %v, %v", old, err)
	}
	for _, key := range []string{"", "x", testUUID.String() + " "} {
		if err := decode(t, reg, marshal(t, reg, bson.M{"plain": bson.M{key: int32(1)}}), &keyed{}); err == nil {
			t.Errorf("the key %q was decoded", key)
		}
	}
	null := keyed{Plain: old}
	unmarshal(t, reg, marshal(t, reg, bson.M{"plain": nil}), &null)
	if null.Plain != nil {
		t.Errorf("null gave %v", null.Plain)
	}
	if v := marshal(t, reg, keyed{}).Lookup("plain"); v.Type != bson.TypeNull {
		t.Errorf("a nil map is %v", v)
	}
}

// A key without text methods is decoded as the driver decodes one that has them: in the order of the document, into
// maps that are there, also those that are no pointer's target, and as far as an error lets it.
func TestMapKeysAreDecodedAsTheDriverDecodesThem(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	lower, other := testUUID.String(), uuid.NewString()
	upper := strings.ToUpper(lower)
	docs := map[string]bson.D{
		"one key twice":             {{Key: lower, Value: 1}, {Key: upper, Value: 2}, {Key: other, Value: 3}},
		"the other way":             {{Key: "{" + upper + "}", Value: 1}, {Key: lower, Value: 2}},
		"a bad key after good ones": {{Key: upper, Value: 1}, {Key: "x", Value: 2}, {Key: other, Value: 3}},
		"a bad value":               {{Key: upper, Value: 1}, {Key: other, Value: "x"}, {Key: lower, Value: 3}},
		"a bad key, a bad value":    {{Key: "x", Value: 1}, {Key: other, Value: "x"}},
		"empty":                     {},
	}
	for name, doc := range docs {
		raw := marshal(t, reg, doc)
		for _, zero := range []bool{false, true} {
			decode := func(v any) error {
				dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
				dec.SetRegistry(reg)
				if zero {
					dec.ZeroMaps()
				}
				return dec.Decode(v)
			}
			for target, fill := range map[string]map[uuid.UUID]int{"nil": nil, "empty": {}, "full": {testUUID: 7, {1}: 8}} {
				var got map[orderID]int
				var want map[textID]int
				if fill != nil {
					got, want = map[orderID]int{}, map[textID]int{}
				}
				for u, n := range fill {
					got[orderID(u)], want[textID(u)] = n, n
				}
				check := func(way string, err, wantErr error) {
					t.Helper()
					text := map[textID]int{}
					for u, n := range got {
						text[textID(u)] = n
					}
					if !maps.Equal(text, want) || (got == nil) != (want == nil) {
						t.Errorf("%s, %s, %s, ZeroMaps %v: got %v, the driver %v", name, target, way, zero, text, want)
					}
					var path, wantPath *bson.DecodeError
					if (err == nil) != (wantErr == nil) || errors.As(err, &path) != errors.As(wantErr, &wantPath) ||
						(path != nil && !reflect.DeepEqual(path.Keys(), wantPath.Keys())) {
						t.Errorf("%s, %s, %s, ZeroMaps %v: got %v, the driver %v", name, target, way, zero, err, wantErr)
					}
				}
				if fill != nil {
					check("map", decode(got), decode(want))
				}
				check("pointer", decode(&got), decode(&want))
			}
		}
	}
}

// Keys of a type that is not registered are refused at the top of a document, too.
func TestRefusedKeysAtTheTop(t *testing.T) {
	raw := marshal(t, bson.NewRegistry(), bson.M{testUUID.String(): 1})
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }) {
		wantUnregisteredError(t, decodeWith(reg, raw, new(map[strangerID]int)), reflect.TypeFor[strangerID]())
		wantUnregisteredError(t, decode(t, reg, raw, new(map[strangerID]int)), reflect.TypeFor[strangerID]())
		if t.Failed() {
			t.Fatal(mode)
		}
	}
}
