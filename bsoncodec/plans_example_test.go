package bsoncodec_test

import (
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// money has marshaling methods, which have its values instead of a plan.
type money struct{ text string }

func (m money) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(m.text)
	return byte(t), data, err
}

func (m *money) UnmarshalBSONValue(t byte, data []byte) error {
	return bson.UnmarshalValue(bson.Type(t), data, &m.text)
}

func ExampleCheckPlans() {
	type Line struct {
		Article string
		Price   money
	}
	type Order struct {
		Number int
		Lines  []Line
	}
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bsoncodec.CheckPlans(reg, reflect.TypeFor[Order]()))
	// Output:
	// bsoncodec: encoding bsoncodec_test.Order: the field lines.price (bsoncodec_test.money) goes through its method MarshalBSONValue
	// bsoncodec: decoding bsoncodec_test.Order: the field lines.price (bsoncodec_test.money) goes through its method UnmarshalBSONValue
}
