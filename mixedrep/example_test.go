package mixedrep_test

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// A comparison cannot be matched in two representations. It is refused before anything is sent. Package integration of the
// repository has an example of what a server answers.
func ExampleWrap() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=javaLegacy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())

	orders, err := mixedrep.Wrap(client.Database("shop").Collection("orders"), uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = orders.Find(context.Background(), bson.M{"customer": bson.M{"$gt": testUUID}})
	var uncovered *mixedrep.UncoveredError
	fmt.Println(errors.As(err, &uncovered))
	fmt.Println(uncovered.Path)
	// Output:
	// true
	// customer.$gt
}

// The elements of an $in that a caller writes.
func ExampleValues() {
	values, err := mixedrep.Values([][16]byte{testUUID}, uuidrep.CSharpLegacy, uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range values {
		fmt.Printf("subtype %d, %X\n", v.Subtype, v.Data)
	}
	// Output:
	// subtype 3, 33221100554477668899AABBCCDDEEFF
	// subtype 4, 00112233445566778899AABBCCDDEEFF
}

// Two byte orders of one subtype would match two UUIDs.
func ExampleMatch_twoByteOrders() {
	_, err := mixedrep.Match("customer", testUUID, uuidrep.CSharpLegacy, uuidrep.JavaLegacy)
	fmt.Println(errors.Is(err, mixedrep.ErrTwoByteOrders))
	// Output: true
}
