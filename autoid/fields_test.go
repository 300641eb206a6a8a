package autoid

import (
	"reflect"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

type (
	inlineID struct {
		ID string `bson:"_id"`
	}
	deepID struct {
		In inlineID `bson:",inline"`
	}
	lowercase struct {
		ID string `bson:"_id"`
	}
)

// TestIDField tests where the driver writes the _id of structs: of several fields with the key it writes the one that is inline
// in the fewest structs, and it leaves out fields that are not exported or have the tag "-".
func TestIDField(t *testing.T) {
	for _, tt := range []struct {
		doc   any
		where placement
		index []int
		sure  bool
	}{
		{inlineID{}, firstOrNever, []int{0}, true},
		{struct {
			//lint:ignore U1000 the field is there to be skipped
			hidden int
			ID     string `bson:"_id"`
		}{}, firstOrNever, []int{1}, true},
		{struct {
			Skipped int    `bson:"-"`
			ID      string `bson:"_id"`
		}{}, firstOrNever, []int{1}, true},
		{reflect.New(reflect.StructOf([]reflect.StructField{ // whole tags without a key
			{Name: "Skipped", Type: reflect.TypeFor[int](), Tag: "-"}, {Name: "ID", Type: reflect.TypeFor[string](), Tag: "_id"},
		})).Elem().Interface(), firstOrNever, []int{1}, true},
		{struct {
			Other int    `other:"_id"`
			ID    string `bson:"_id"`
		}{}, anywhere, []int{1}, true},
		{struct {
			Name string
			ID   string `bson:"_id"`
		}{}, anywhere, []int{1}, true},
		{struct {
			In inlineID `other:"in,inline,x"`
		}{}, nowhere, nil, true},
		{struct{ Name string }{}, nowhere, nil, true},
		{struct{}{}, nowhere, nil, true},
		{deepID{}, firstOrNever, []int{0, 0}, true},
		{struct {
			In *inlineID `bson:",inline"`
		}{}, firstOrNever, []int{0, 0}, true},
		{struct {
			Rest map[string]any `bson:",inline"`
		}{}, anywhere, nil, false},
		{struct {
			ID   string         `bson:"_id"`
			Rest map[string]any `bson:",inline"`
		}{}, anywhere, []int{0}, false},
		{struct {
			A string `bson:"_id"`
			B string `bson:"_id"`
		}{}, anywhere, nil, false},
		{struct {
			In inlineID `bson:",inline"`
			ID string   `bson:"_id"`
		}{}, anywhere, []int{1}, false},
		{struct {
			ID string   `bson:"_id"`
			In inlineID `bson:",inline"`
		}{}, anywhere, []int{0}, false},
		{struct {
			A  inlineID `bson:",inline"`
			B  inlineID `bson:",inline"`
			ID string   `bson:"_id"`
		}{}, anywhere, []int{2}, false},
		{struct {
			A  inlineID `bson:",inline"`
			B  inlineID `bson:",inline"`
			In deepID   `bson:",inline"`
		}{}, anywhere, nil, false},
		{struct {
			lowercase `bson:",inline"` // which only some registries write
			In        deepID           `bson:",inline"`
		}{}, anywhere, nil, false},
		{struct {
			lowercase `bson:",inline"`
		}{}, firstOrNever, nil, true},
	} {
		f := idFieldOf(reflect.TypeOf(tt.doc), reading{})
		if f.where != tt.where || !slices.Equal(f.Index, tt.index) || f.sure != tt.sure {
			t.Errorf("%T: got %v, %v, %v; want %v, %v, %v", tt.doc, f.where, f.Index, f.sure, tt.where, tt.index, tt.sure)
		}
	}
	typ := reflect.TypeFor[struct {
		A, B, C, D, E, F, G, H int
		In                     deepID `bson:",inline"`
	}]()
	first := idFieldOf(typ, reading{})
	if n := testing.AllocsPerRun(100, func() {
		if idFieldOf(typ, reading{}) != first {
			t.Error("a type has two")
		}
	}); n > 2 {
		t.Errorf("finding what a type tells allocates %v times", n)
	}
}

// TestIDFieldOfEither tests that only the encoded form tells where the _id is if the two ways to read tags differ.
func TestIDFieldOfEither(t *testing.T) {
	for _, tt := range []struct {
		doc  any
		same bool
	}{
		{inlineID{}, true}, {struct{ Name string }{}, true},
		{struct {
			ID   string         `bson:"_id"`
			Rest map[string]any `json:",inline"` // can hold another _id
		}{}, false},
		{struct {
			ID   string `bson:"_id"`
			Name string `json:"_id"`
		}{}, false},
		{struct {
			ID string `json:"_id"`
		}{}, false},
		{struct {
			Name string `json:"-"`
			ID   string `bson:"_id"`
		}{}, false},
	} {
		for _, json := range []bool{false, true} {
			typ, r := reflect.TypeOf(tt.doc), reading{json: json}
			either := idFieldOfEither(typ, r)
			if (either == idFieldOf(typ, r)) != tt.same || !tt.same && (either.where != anywhere || either.sure) {
				t.Errorf("%v: got %+v, want that of both: %v", typ, either, tt.same)
			}
		}
	}
}

// TestEmptyFunc tests which fields the driver takes for empty, by what it leaves out with omitempty.
func TestEmptyFunc(t *testing.T) {
	for _, v := range []any{
		false, true, 0, 1, int8(0), uint64(2), float32(0), 0.0, 0.5, "", "x", bson.ObjectID{}, bson.ObjectID{1}, [0]int{}, [1]int{}, [1]int{1}, odd(0), odd(1),
		plainKey(""), plainKey("k"),
	} {
		doc := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeOf(v), Tag: `bson:",omitempty"`}})).Elem()
		doc.Field(0).Set(reflect.ValueOf(v))
		b, err := bson.Marshal(doc.Interface())
		if err != nil {
			t.Fatal(err)
		}
		empty := emptyFunc(reflect.TypeOf(v))
		if empty == nil || empty(doc.Field(0)) != (len(b) == 5) {
			t.Errorf("%T %v: the driver writes %v", v, v, bson.Raw(b))
		}
	}
	for _, v := range []reflect.Type{reflect.TypeFor[*int](), reflect.TypeFor[any](), reflect.TypeFor[[]int](), reflect.TypeFor[map[string]int](), reflect.TypeFor[struct{}]()} {
		if emptyFunc(v) != nil {
			t.Errorf("%v: its emptiness does not depend on options", v)
		}
	}
}
