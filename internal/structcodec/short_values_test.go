//go:build !race

package structcodec_test

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Code of a caller takes no more memory for a short value than with the driver. With the race detector it does, because
// a [sync.Pool] then drops some of the readers.
func TestMemoryOfShortValues(t *testing.T) {
	driver, plans := registries(registerCallers)
	nulls := repeated(2000, bson.TypeNull, nil, true)
	structs := repeated(2000, bson.TypeEmbeddedDocument, doc(t, bson.E{Key: "v"}), true)
	for typ, raw := range map[reflect.Type][]byte{
		reflect.TypeFor[inlined[*hookPointer]]():               nulls.Value,
		reflect.TypeFor[struct{ L []struct{ V hookValue } }](): doc(t, bson.E{Key: "l", Value: structs}),
		reflect.TypeFor[struct{ L []struct{ V called } }]():    doc(t, bson.E{Key: "l", Value: structs}),
	} {
		if err := checkMemory(driver, plans, typ, raw); err != nil {
			t.Error(err)
		}
	}
}
