package bsoncodec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A registry with KeepBinary gives any what the driver's registry gives it, and a UUID type its
// UUID.
func TestKeepBinary(t *testing.T) {
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		reg, err := bsoncodec.NewRegistryBuilder(rep).KeepBinary().Build()
		if err != nil {
			t.Fatal(err)
		}
		doc, err := bsoncodec.Marshal(reg, bson.D{
			{Key: "u", Value: id}, {Key: "a", Value: bson.A{id, bson.D{{Key: "b", Value: id}}}}, {Key: "n", Value: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		type target struct {
			U any
			A []any
		}
		for range 2 { // the second time into what is there
			for _, c := range []struct{ got, want any }{
				{new(bson.D), new(bson.D)}, {new(bson.M), new(bson.M)}, {new(map[string]any), new(map[string]any)},
				{new(target), new(target)}, {new(any), new(any)},
			} {
				for range 2 {
					if err := bsoncodec.Unmarshal(reg, doc, c.got); err != nil {
						t.Fatal(err)
					}
					if err := bson.Unmarshal(doc, c.want); err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(c.got, c.want) {
						t.Errorf("%v: %v, the driver %v", rep, c.got, c.want)
					}
				}
			}
		}
		var typed struct{ U uuid.UUID }
		if err := bsoncodec.Unmarshal(reg, doc, &typed); err != nil || typed.U != id {
			t.Errorf("%v: %v, %v", rep, typed, err)
		}
		want, err := uuidrep.NewBinaryWithRepresentation(id, rep)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bsoncodec.DecodeNative(reg, want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, %v", rep, got, err)
		}
	}
	_, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).KeepBinary().SetImplicitType(reflect.TypeFor[uuidKept]()).Build()
	if err == nil || !strings.HasPrefix(err.Error(), "bsoncodec: SetImplicitType and KeepBinary") {
		t.Error(err)
	}
}

type uuidKept [16]byte
