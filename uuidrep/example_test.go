package uuidrep_test

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

func ExampleNewBinaryWithRepresentation() {
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, r := range []uuidrep.Representation{
		uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy, uuidrep.Unspecified,
	} {
		b, err := uuidrep.NewBinaryWithRepresentation(u, r)
		if err != nil {
			fmt.Println(r, "is an error")
			continue
		}
		fmt.Printf("%v: subtype %d, %X\n", r, b.Subtype, b.Data)
	}
	// Output:
	// standard: subtype 4, 00112233445566778899AABBCCDDEEFF
	// csharpLegacy: subtype 3, 33221100554477668899AABBCCDDEEFF
	// javaLegacy: subtype 3, 7766554433221100FFEEDDCCBBAA9988
	// pythonLegacy: subtype 3, 00112233445566778899AABBCCDDEEFF
	// unspecified is an error
}

func ExampleAsWithRepresentation() {
	// What a Java service with the legacy representation stored, read by any Go program.
	b := bson.Binary{Subtype: 3, Data: []byte{
		0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00, 0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88,
	}}
	fmt.Println(uuidrep.AsWithRepresentation[uuid.UUID](b, uuidrep.JavaLegacy))
	_, err := uuidrep.As[uuid.UUID](b)
	fmt.Println(err != nil)
	// Output:
	// 00112233-4455-6677-8899-aabbccddeeff <nil>
	// true
}

// The explicit functions take and give any type of kind [16]byte.
func ExampleAs() {
	type OrderID [16]byte
	id := OrderID(uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"))
	b := uuidrep.NewBinary(id)
	back, err := uuidrep.As[OrderID](b)
	fmt.Println(back == id, err)
	// Output: true <nil>
}

// A value that is not in the representation tells so by its type.
func ExampleSubtypeError() {
	_, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: 3, Data: make([]byte, 16)})
	var subtype *uuidrep.SubtypeError
	if errors.As(err, &subtype) {
		fmt.Println("subtype", subtype.Subtype, "is not", subtype.Representation)
	}
	// Output: subtype 3 is not standard
}

// A collection whose identifiers are text keeps them so, with any registry.
func ExampleStringUUID() {
	type order struct {
		ID uuidrep.StringUUID `bson:"_id"`
	}
	id := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	raw, err := bson.Marshal(order{uuidrep.StringUUID{UUID: id}})
	fmt.Println(bson.Raw(raw), err)
	// Output: {"_id": "00112233-4455-6677-8899-aabbccddeeff"} <nil>
}

func ExampleParse() {
	r, err := uuidrep.Parse("JAVALEGACY")
	fmt.Println(r, err)
	// Output: javaLegacy <nil>
}

// One field of a document keeps its representation with any registry, the driver's default one
// included.
func ExampleJavaLegacyUUID() {
	type order struct {
		ID uuidrep.JavaLegacyUUID `bson:"_id"`
	}
	raw, err := bson.Marshal(order{uuidrep.JavaLegacyUUID{UUID: uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := bson.Raw(raw).Lookup("_id").Binary()
	fmt.Printf("subtype %d, %X\n", subtype, octets)
	// Output: subtype 3, 7766554433221100FFEEDDCCBBAA9988
}

type Customer struct {
	ID   uuidrep.ID[Customer] `bson:"_id,omitempty"`
	Name string               `bson:"name"`
}

// An ID says in Go which kind of things it identifies. It is subtype 4 without any registry.
func ExampleID() {
	id, err := uuidrep.ParseID[Customer]("00112233-4455-6677-8899-aabbccddeeff")
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := bson.Marshal(Customer{ID: id, Name: "Ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := bson.Raw(doc).Lookup("_id").Binary()
	fmt.Printf("%v is stored as subtype %d, %x\n", id, subtype, octets)

	var c Customer
	err = bson.Unmarshal(doc, &c)
	fmt.Println(c.ID == id, uuid.UUID(c.ID).Variant(), err)
	// Output:
	// 00112233-4455-6677-8899-aabbccddeeff is stored as subtype 4, 00112233445566778899aabbccddeeff
	// true RFC4122 <nil>
}
