package bsoncodec_test

import (
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A program that asserts bson.Binary can be changed in steps.
func ExampleRegistryBuilder_KeepBinary() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).KeepBinary().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	doc, err := bsoncodec.Marshal(reg, bson.M{"session": id})
	if err != nil {
		fmt.Println(err)
		return
	}

	var m bson.M
	if err := bsoncodec.Unmarshal(reg, doc, &m); err != nil {
		fmt.Println(err)
		return
	}
	b := m["session"].(bson.Binary) // would panic if it were a UUID
	fmt.Printf("subtype %d, %x\n", b.Subtype, b.Data)

	var typed struct{ Session uuid.UUID }
	if err := bsoncodec.Unmarshal(reg, doc, &typed); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(typed.Session)
	// Output:
	// subtype 4, 00112233445566778899aabbccddeeff
	// 00112233-4455-6677-8899-aabbccddeeff
}
