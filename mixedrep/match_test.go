package mixedrep_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// The test UUID of the specification "Handling of Native UUID Types" and its octets.
var testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

func binary(t *testing.T, subtype byte, octets string) bson.Binary {
	t.Helper()
	data, err := hex.DecodeString(octets)
	if err != nil {
		t.Fatal(err)
	}
	return bson.Binary{Subtype: subtype, Data: data}
}

func TestValues(t *testing.T) {
	standard := binary(t, 4, "00112233445566778899aabbccddeeff")
	java := binary(t, 3, "7766554433221100ffeeddccbbaa9988")
	csharp := binary(t, 3, "33221100554477668899aabbccddeeff")
	python := binary(t, 3, "00112233445566778899aabbccddeeff")
	for _, c := range []struct {
		reps []uuidrep.Representation
		want []bson.Binary
	}{
		{[]uuidrep.Representation{uuidrep.Standard}, []bson.Binary{standard}},
		{[]uuidrep.Representation{uuidrep.JavaLegacy, uuidrep.Standard}, []bson.Binary{java, standard}},
		{[]uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy}, []bson.Binary{standard, csharp}},
		{[]uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.Standard, uuidrep.PythonLegacy},
			[]bson.Binary{python, standard}},
	} {
		got, err := mixedrep.Values([]uuid.UUID{testUUID}, c.reps...)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Values(%v) = %v, %v, want %v", c.reps, got, err, c.want)
		}
	}
	none, err := mixedrep.MatchAll[uuid.UUID]("a", nil, uuidrep.Standard)
	if want, wantErr := mixedrep.MatchAny[uuid.UUID]("a", nil, uuidrep.Standard); err != nil || wantErr != nil || !reflect.DeepEqual(none, want) {
		t.Errorf("MatchAll of no UUID = %v, %v, want %v", none, err, want)
	}
	for _, us := range [][]uuid.UUID{{testUUID}, {testUUID, uuid.Nil}} {
		var each bson.A
		for _, u := range us {
			one, _ := mixedrep.Match("a", u, uuidrep.Standard, uuidrep.JavaLegacy)
			each = append(each, one)
		}
		got, err := mixedrep.MatchAll("a", us, uuidrep.Standard, uuidrep.JavaLegacy)
		if want := (bson.D{{Key: "$and", Value: each}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("MatchAll(%v) = %v, %v, want %v", us, got, err, want)
		}
	}
	if got, err := mixedrep.Values([]uuid.UUID(nil), uuidrep.Unspecified); !errors.Is(err, uuidrep.ErrUnspecified) || got != nil {
		t.Errorf("Values of no UUID, unspecified = %v, %v", got, err)
	}
	if got, err := mixedrep.Values([]uuid.UUID(nil), uuidrep.Standard); err != nil || got == nil || len(got) != 0 {
		t.Errorf("Values of no UUID = %#v, %v, want an empty slice that is not nil", got, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		reps []uuidrep.Representation
		want error
	}{
		{nil, mixedrep.ErrNoRepresentation},
		{[]uuidrep.Representation{uuidrep.Unspecified}, uuidrep.ErrUnspecified},
		{[]uuidrep.Representation{uuidrep.Standard, uuidrep.Unspecified}, uuidrep.ErrUnspecified},
		{[]uuidrep.Representation{uuidrep.JavaLegacy, uuidrep.PythonLegacy}, mixedrep.ErrTwoByteOrders},
		{[]uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.Standard, uuidrep.JavaLegacy}, mixedrep.ErrTwoByteOrders},
	} {
		for name, match := range map[string]func(string, []uuid.UUID, ...uuidrep.Representation) (bson.D, error){
			"MatchAny": mixedrep.MatchAny[uuid.UUID], "MatchNone": mixedrep.MatchNone[uuid.UUID], "MatchAll": mixedrep.MatchAll[uuid.UUID],
			"Match": func(field string, us []uuid.UUID, reps ...uuidrep.Representation) (bson.D, error) {
				return mixedrep.Match(field, us[0], reps...)
			},
		} {
			if filter, err := match("a", []uuid.UUID{testUUID}, c.reps...); !errors.Is(err, c.want) || filter != nil {
				t.Errorf("%s with %v = %v, %v, want %v", name, c.reps, filter, err, c.want)
			}
		}
	}
	if _, err := mixedrep.Match("a", testUUID, uuidrep.Representation(9)); err == nil {
		t.Error("an unknown representation was accepted")
	}
	for _, field := range []string{"", "$or"} {
		if _, err := mixedrep.Match(field, testUUID, uuidrep.Standard); err == nil {
			t.Errorf("the field %q was accepted", field)
		}
	}
}

// A filter is plain BSON: it encodes the same with the driver's own registry, octet for octet.
func ExampleMatch() {
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	filter, err := mixedrep.Match("session", u, uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := bson.MarshalExtJSON(filter, false, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// {"session":{"$in":[{"$binary":{"base64":"d2ZVRDMiEQD/7t3Mu6qZiA==","subType":"03"}},{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}]}}
}

func ExampleMatchNone() {
	_, err := mixedrep.MatchNone("session", []uuid.UUID{uuid.Nil}, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	fmt.Println(errors.Is(err, mixedrep.ErrTwoByteOrders))
	// Output: true
}
