package kinds

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// The names and subtypes are those of the driver specification
// (https://github.com/mongodb/specifications/blob/master/source/bson-binary-uuid/uuid.md).
func TestTable(t *testing.T) {
	for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy} {
		k, err := Parse(r.String())
		subtype, _ := r.Subtype()
		if err != nil || k.Subtype != subtype || k.Order != r || k.BySubtype() != (r == uuidrep.Standard) || NameOf(subtype, r) != k.Name {
			t.Errorf("%v: %+v, %v", r, k, err)
		}
	}
	seen := make(map[string]bool)
	for _, k := range All() {
		for _, s := range []string{k.Name, strings.ToUpper(k.Name)} {
			if got, err := Parse(s); err != nil || got != k {
				t.Errorf("%s: %+v, %v", s, got, err)
			}
		}
		if seen[k.Name] || k.Name == "" || !slices.Contains(k.Stored().Kinds(), k) || !slices.Contains(AllStored(), string(k.Stored())) {
			t.Errorf("%+v", k)
		}
		seen[k.Name] = true
		// A number in the place of a subtype is not one of BSON, nor one of users.
		if !k.IsBinary() && (k.Subtype <= bson.TypeBinaryVector || k.Subtype >= bson.TypeBinaryUserDefined) {
			t.Errorf("%s has the number %d", k.Name, k.Subtype)
		}
		if strings.Contains(list(), k.Name) == (k.Form == Malformed) {
			t.Errorf("%s is listed, or is not", k.Name)
		}
	}
	for _, s := range []string{"", "unspecified", "javaLegacy ", "4"} {
		if k, err := Parse(s); err == nil {
			t.Errorf("%q: %+v", s, k)
		}
	}
	if got := NameOf(bson.TypeBinaryGeneric, uuidrep.JavaLegacy); got != "subtype 0 in Java order" {
		t.Error(got)
	}
}

// A value has the kinds of its subtype and 16 bytes, of its type, or of its text. One of subtype 3 or 4 that has none is malformed.
func TestHas(t *testing.T) {
	value := func(v any) walk.Leaf {
		typ, b, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		return walk.Leaf{Type: typ, Value: b}
	}
	for _, tt := range []struct {
		v    any
		want string
	}{
		{bson.Binary{Subtype: 3, Data: make([]byte, 16)}, "csharpLegacy javaLegacy pythonLegacy"},
		{bson.Binary{Subtype: 4, Data: make([]byte, 16)}, "standard"},
		{bson.Binary{Subtype: 0, Data: make([]byte, 16)}, "generic"},
		{bson.Binary{Subtype: 3, Data: make([]byte, 15)}, "malformed"},
		{bson.Binary{Subtype: 4, Data: make([]byte, 36)}, "malformed"},
		{bson.Binary{Subtype: 0, Data: make([]byte, 36)}, ""},
		{bson.Binary{Subtype: 3, Data: []byte(ofRFC)}, "binaryText"},
		{bson.Binary{Subtype: 2, Data: []byte(digitsOfRFC)}, "binaryText"},
		{bson.Binary{Subtype: 5, Data: []byte(ofRFC)}, ""},
		{bson.Binary{Subtype: 127, Data: make([]byte, 16)}, ""},
		{"", ""},
		{"x", "text"},
		{bson.D{}, ""},
		{bson.D{{Key: "valid", Value: true}}, ""},
		{bson.D{{Key: "uuid", Value: "x"}}, "goStruct"},
		{int32(3), ""},
		{bson.Null{}, ""},
	} {
		if got := strings.Join(Names(Where(func(k Kind) bool { return k.Has(value(tt.v)) })), " "); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.v, got, tt.want)
		}
	}
}
