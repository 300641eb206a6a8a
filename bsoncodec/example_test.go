package bsoncodec_test

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

func ExampleNewRegistry() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Every collection of this client reads and writes UUIDs as subtype 4.
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
	fmt.Println(client != nil, err)
	// Output: true <nil>
}

func ExampleMarshal() {
	reg, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := bsoncodec.Marshal(reg, bson.M{"session": uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")})
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := bson.Raw(doc).Lookup("session").Binary()
	fmt.Printf("subtype %d, %X\n", subtype, octets)

	var m bson.M
	err = bsoncodec.Unmarshal(reg, doc, &m)
	fmt.Println(m["session"], err)
	// Output:
	// subtype 3, 7766554433221100FFEEDDCCBBAA9988
	// 00112233-4455-6677-8899-aabbccddeeff <nil>
}

// A collection that holds what a C# service wrote before and after it moved to the standard representation.
func ExampleRegistryBuilder_AlsoDecode() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecode(uuidrep.CSharpLegacy).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	old, _ := uuidrep.NewBinaryWithRepresentation(u, uuidrep.CSharpLegacy)
	doc, err := bsoncodec.Marshal(reg, bson.D{{Key: "old", Value: old}, {Key: "new", Value: u}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var order struct{ Old, New uuid.UUID }
	err = bsoncodec.Unmarshal(reg, doc, &order)
	fmt.Println(order.Old == order.New, err)
	// Output: true <nil>
}

type accountID [16]byte

func ExampleRegistryBuilder_RegisterUUIDType() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterUUIDType(reflect.TypeFor[accountID]()).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	rv, err := bsoncodec.MarshalValue(reg, accountID{15: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := rv.Binary()
	fmt.Printf("subtype %d, %X\n", subtype, octets)
	// Output: subtype 4, 00000000000000000000000000000001
}

// The driver returns the id of an upserted document as a Binary, whatever the client's registry.
func ExampleDecodeNative() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	var upsertedID any = uuidrep.NewBinary(uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"))
	id, err := bsoncodec.DecodeNative(reg, upsertedID)
	fmt.Printf("%T %v %v\n", id, id, err)
	// Output: uuid.UUID 00112233-4455-6677-8899-aabbccddeeff <nil>
}

func ExampleUnmarshalExtJSON() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	var doc struct{ Session uuid.UUID }
	err = bsoncodec.UnmarshalExtJSON(reg, []byte(`{"session": {"$uuid": "00112233-4455-6677-8899-aabbccddeeff"}}`), false, &doc)
	fmt.Println(doc.Session, err)
	// Output: 00112233-4455-6677-8899-aabbccddeeff <nil>
}

// A client with BSONOptions reads and writes with them. Pass the same ones to Marshal and Unmarshal.
func ExampleOptions() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	type user struct {
		Name string `json:"fullName"`
	}
	data, err := bsoncodec.Marshal(reg, user{"Ada"}, bsoncodec.Options{UseJSONStructTags: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bson.Raw(data))
	// Output: {"fullName": "Ada"}
}
