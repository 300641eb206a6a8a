// Package forms writes Go in its less usual forms: dot imports, recursive and generic types. // want package:`driver: `
package forms

import (
	"reflect"

	"github.com/google/uuid"
	. "go.mongodb.org/mongo-driver/v2/bson"
	b "go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Types that contain themselves.
type (
	Tree        []Tree
	Nested      map[string]Nested
	Ring        *Ring
	Node[T any] struct {
		Next  *Node[T] `bson:"next"`
		Value T        `bson:"value"`
		Tree  Tree     `bson:"tree"`
		N     Nested   `bson:"n"`
	}
	List[T any] []List[T]
)

type holder struct {
	Ring Ring            `bson:"ring"`
	Tree Tree            `bson:"tree"`
	List List[uuid.UUID] `bson:"list"`
}

func recursive(u uuid.UUID) any {
	return b.M{"tree": Tree{}, "nested": Nested{}, "list": List[[16]byte]{}, "node": Node[int]{}, "ring": holder{}.Ring}
}

func dot(u uuid.UUID, n Node[uuid.UUID]) {
	_, _ = Marshal(n)    // want `bson.Marshal does not use the registry`
	_, _ = b.Marshal(&n) // want `bson.Marshal does not use the registry`
	_, _ = Marshal(Node[int]{})
	_ = D{{"a", Binary{Data: u[:]}}} // want `subtype 0`
	_ = M{"a": u[:]}                 // want `subtype 0`
	_ = []Binary{{Data: u[:]}}       // want `subtype 0`
	_ = []*Binary{{Data: u[:]}}      // want `subtype 0`
}

type Doc struct {
	ID   uuid.UUID `bson:"_id"`
	Data []byte    `bson:"data"`
}

type embedding struct {
	Doc `bson:",inline"`
}

type loose struct {
	Any     any
	ignored any
	Skipped any `bson:"-"`
}

func literals(u uuid.UUID) {
	_, _ = Marshal(loose{Any: u})   // want `bson.Marshal does not use the registry`
	_, _ = Marshal(&loose{u, 1, 2}) // want `bson.Marshal does not use the registry`
	_, _ = Marshal(loose{ignored: u, Skipped: u})
	_, _ = Marshal(D{{"a", uuidrep.StandardUUID{UUID: u}}})
	_, _ = Marshal(struct{ A uuidrep.JavaLegacyUUID }{uuidrep.JavaLegacyUUID{UUID: u}})
}

// Types that are registered in other ways.
type (
	sum    [16]byte
	nullID [16]byte
	maybe  struct {
		ID    nullID
		Valid bool
	}
)

func registered(s sum, n nullID) any {
	bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		RegisterBytesType(reflect.TypeFor[sum]()).
		RegisterNullUUIDType(reflect.TypeFor[maybe]())
	return D{{"sum", s}, {"null", n}, {"plain", [16]byte{}}} // want `refuses \[16\]byte`
}

func generic[T any](v T) ([]byte, error) { return Marshal(v) } // want generic:`without a registry: parameters .., type parameters .0.`

func embedded(e embedding, u uuid.UUID) {
	e.Data = u[:]                            // want `in the field Data`
	_, _ = Marshal(e)                        // want `bson.Marshal does not use the registry`
	_ = b.D{{Key: "a", Value: []byte(u[:])}} // want `subtype 0`
	_ = embedding{Doc{Data: u[:]}}           // want `in the field Data`
	_ = &Doc{Data: u[:]}                     // want `in the field Data`
	_ = []Doc{{Data: u[:]}}                  // want `in the field Data`
	_ = []*Doc{{Data: u[:]}}                 // want `in the field Data`
	_ = map[string]Doc{"a": {u, u[:]}}       // want `in the field Data`
}
