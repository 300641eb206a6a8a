//go:build !race

package bsoncodec_test

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Encoding and decoding a thousand UUIDs allocates no more for each than the values that are made: nothing for one in a slice,
// and the UUID, the interface and the key elsewhere. The driver without plans adds what it needs itself.
func TestAllocations(t *testing.T) {
	const n = 1000
	type fields struct{ A, B uuid.UUID }
	ids, orders, strange := make([]uuid.UUID, n), make([]orderID, n), make([]strangerID, n)
	empty := make([][]uuid.UUID, n)
	anys, nulls, structs := make(bson.A, n), make([]uuid.NullUUID, n), make([]fields, n)
	d, m := make(bson.D, n), make(map[string]uuid.UUID, n)
	for i := range n {
		empty[i] = []uuid.UUID{}
		ids[i] = uuid.UUID{byte(i), byte(i >> 8), 1}
		orders[i], strange[i], anys[i], nulls[i], structs[i] = orderID(ids[i]), strangerID(ids[i]), ids[i], uuid.NullUUID{UUID: ids[i], Valid: true}, fields{ids[i], ids[i]}
		d[i] = bson.E{Key: ids[i].String(), Value: ids[i]}
		m[ids[i].String()] = ids[i]
	}
	var document any = d
	// Of Marshal, MarshalValue, an Encoder, Unmarshal, UnmarshalValue and a Decoder, for each UUID.
	type limits [6]float64
	few := map[string]limits{"plans": {1, 2, 9, 5, 5, 20}, "without plans": {2, 9, 25, 40, 40, 40}} // for the document
	tests := []struct {
		name           string
		v              any
		plans, without limits
	}{
		{"[]uuid.UUID", &struct{ V []uuid.UUID }{ids}, limits{}, limits{}},
		{"[]uuid.UUID in a struct that is not addressable", struct{ V []uuid.UUID }{ids}, limits{}, limits{}},
		{"[]orderID", &struct{ V []orderID }{orders}, limits{}, limits{}},
		{"[]strangerID", &struct{ V []strangerID }{strange}, limits{}, limits{0, 0, 0, 2, 2, 4}},
		{"empty slices", &struct{ V [][]uuid.UUID }{empty}, limits{0, 0, 0, 1, 1, 1}, limits{1, 1, 1, 5, 5, 7}},
		{"[]uuid.NullUUID", &struct{ V []uuid.NullUUID }{nulls}, limits{}, limits{0, 0, 0, 2, 2, 4}},
		{"[]fields", &struct{ V []fields }{structs}, limits{}, limits{0, 0, 0, 3, 3, 8}},
		{"bson.A", &struct{ V bson.A }{anys}, limits{0, 0, 0, 2, 2, 2}, limits{0, 0, 0, 4, 4, 6}},
		{"bson.D", &d, limits{0, 0, 0, 3, 3, 4}, limits{0, 0, 0, 5, 5, 7}},
		{"any", &document, limits{0.002, 0, 0, 3, 3, 4}, limits{0, 0, 0, 5, 5, 7}},
		{"map", &m, limits{2, 2, 2, 1.01, 1.01, 2}, limits{2, 2, 2, 5, 5, 7}},
	}
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		reg := build(t, bsoncodec.NewRegistryBuilder(rep).RegisterUUIDType(reflect.TypeFor[orderID]()).UnregisteredAsUUID())
		for mode, reg := range withTwin(reg) {
			for _, tt := range tests {
				raw, err := bsoncodec.Marshal(reg, tt.v)
				if err != nil {
					t.Fatal(err)
				}
				typ := reflect.TypeOf(tt.v)
				if typ.Kind() == reflect.Pointer {
					typ = typ.Elem()
				}
				var buf bytes.Buffer
				value := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
				want := tt.plans
				if mode != "plans" {
					want = tt.without
				}
				for i, f := range []func() error{
					func() error { _, err := bsoncodec.Marshal(reg, tt.v); return err },
					func() error {
						_, err := bsoncodec.MarshalValue(reg, tt.v, bsoncodec.Options{OmitZeroStruct: true})
						return err
					},
					func() error {
						buf.Reset()
						enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
						enc.SetRegistry(reg)
						return enc.Encode(tt.v)
					},
					func() error { return bsoncodec.Unmarshal(reg, raw, reflect.New(typ).Interface()) },
					func() error {
						return bsoncodec.UnmarshalValue(reg, value, reflect.New(typ).Interface(), bsoncodec.Options{ObjectIDAsHexString: true})
					},
					func() error { return decodeWith(reg, raw, reflect.New(typ).Interface()) },
				} {
					got := math.Inf(1) // at best: a pool can be emptied at any time
					for range 4 {
						got = min(got, testing.AllocsPerRun(1, func() { err = f() }))
					}
					if limit := want[i]*n + few[mode][i]; err != nil || got > limit {
						t.Errorf("%v, %s, %s, %d: %v allocations for %d UUIDs, want at most %v; %v", rep, mode, tt.name, i, got, n, limit, err)
					}
				}
			}
		}
	}
}
