//go:build go1.27

package bsoncodec_test

import (
	"reflect"
	"testing"
	stduuid "uuid"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

var testStdUUID = stduuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

// The standard library's UUID needs no registration.
func TestStandardLibraryUUID(t *testing.T) {
	type doc struct {
		U     stduuid.UUID
		P     *stduuid.UUID
		Nil   *stduuid.UUID
		PP    **stduuid.UUID
		S     []stduuid.UUID
		SP    []*stduuid.UUID
		A     [2]stduuid.UUID
		SS    [][]stduuid.UUID
		M     map[string]stduuid.UUID
		K     map[stduuid.UUID]stduuid.UUID
		Other uuid.UUID
	}
	for _, tt := range table {
		reg := build(t, bsoncodec.NewRegistryBuilder(tt.rep))
		u := testStdUUID
		p := &u
		in := doc{u, p, nil, &p, []stduuid.UUID{u, {}}, []*stduuid.UUID{p, nil}, [2]stduuid.UUID{u}, [][]stduuid.UUID{{u}},
			map[string]stduuid.UUID{"k": u}, map[stduuid.UUID]stduuid.UUID{u: u}, testUUID}
		for _, v := range []any{in, &in} {
			raw := marshal(t, reg, v)
			for _, path := range [][]string{
				{"u"}, {"p"}, {"pp"}, {"s", "0"}, {"sp", "0"}, {"a", "0"}, {"ss", "0", "0"}, {"m", "k"}, {"k", testUUID.String()}, {"other"},
			} {
				wantStored(t, raw, tt.subtype, tt.octets, path...)
			}
			var out doc
			unmarshal(t, reg, raw, &out)
			if !reflect.DeepEqual(in, out) {
				t.Errorf("%v: got %v, want %v", tt.rep, out, in)
			}
		}
		var m bson.M
		unmarshal(t, reg, marshal(t, reg, bson.M{"v": u}), &m)
		if m["v"] != testUUID {
			t.Errorf("%v: any received %T", tt.rep, m["v"])
		}
		std := build(t, bsoncodec.NewRegistryBuilder(tt.rep).SetImplicitType(reflect.TypeFor[stduuid.UUID]()))
		unmarshal(t, std, marshal(t, std, bson.M{"v": bson.A{testUUID}}), &m)
		if !reflect.DeepEqual(m["v"], bson.A{u}) {
			t.Errorf("%v: any received %#v", tt.rep, m["v"])
		}
		var d bson.D
		unmarshal(t, std, marshal(t, std, bson.M{"v": testUUID}), &d)
		if !reflect.DeepEqual(d, bson.D{{Key: "v", Value: u}}) {
			t.Errorf("%v: bson.D received %#v", tt.rep, d)
		}
	}
}

// The explicit functions take and give the standard library's UUID.
func TestStandardLibraryUUIDExplicitly(t *testing.T) {
	for _, tt := range table {
		b, err := uuidrep.NewBinaryWithRepresentation(testStdUUID, tt.rep)
		if err != nil || !reflect.DeepEqual(b, bson.Binary{Subtype: tt.subtype, Data: tt.octets}) {
			t.Errorf("%v: got %v, %v", tt.rep, b, err)
		}
		if u, err := uuidrep.AsWithRepresentation[stduuid.UUID](b, tt.rep); err != nil || u != testStdUUID {
			t.Errorf("%v: got %v, %v", tt.rep, u, err)
		}
	}
	if u, err := uuidrep.As[stduuid.UUID](uuidrep.NewBinary(testStdUUID)); err != nil || u != testStdUUID {
		t.Errorf("got %v, %v", u, err)
	}
}
