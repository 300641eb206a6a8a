package bsoncodec_test

import (
	"errors"
	"fmt"
	"log"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// CustomerID is a UUID type of a program.
type CustomerID [16]byte

// MD5 is not a UUID, although it has 16 bytes.
type MD5 [16]byte

// NullCustomerID is a CustomerID or null.
type NullCustomerID struct {
	ID    CustomerID
	Valid bool
}

// show prints how reg stores v.
func show(reg *bson.Registry, v any) {
	rv, err := bsoncodec.MarshalValue(reg, v)
	if err != nil {
		fmt.Println(err)
		return
	}
	if subtype, data, ok := rv.BinaryOK(); ok {
		fmt.Printf("subtype %d, %X\n", subtype, data)
		return
	}
	fmt.Println(rv)
}

func ExampleNewRegistryBuilder() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.CSharpLegacy).
		AlsoDecode(uuidrep.Standard).
		RegisterUUIDType(reflect.TypeFor[CustomerID]()).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"))
	// Output: subtype 3, 33221100554477668899AABBCCDDEEFF
}

// Build reports every mistake of the calls before it.
func ExampleRegistryBuilder_Build() {
	_, err := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).
		AlsoDecode(uuidrep.JavaLegacy).
		RegisterUUIDType(reflect.TypeFor[string]()).
		Build()
	fmt.Println(err)
	// Output:
	// bsoncodec: AlsoDecode(javaLegacy): this is the registry's own representation already
	// bsoncodec: string cannot be a UUID: its kind must be [16]byte, or it must be a struct with one field of such a kind
}

// A registry that was made elsewhere gets the codecs for UUIDs.
func ExampleRegistryBuilder_ApplyTo() {
	reg := bson.NewMgoRegistry()
	if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(reg); err != nil {
		fmt.Println(err)
		return
	}
	show(reg, uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"))
	// Output: subtype 4, 00112233445566778899AABBCCDDEEFF
}

// A UUID type that can be null, such as NullUUID of github.com/gofrs/uuid or database/sql.Null of a
// UUID type.
func ExampleRegistryBuilder_RegisterNullUUIDType() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		RegisterNullUUIDType(reflect.TypeFor[NullCustomerID]()).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, NullCustomerID{ID: CustomerID{15: 1}, Valid: true})
	show(reg, NullCustomerID{})
	// Output:
	// subtype 4, 00000000000000000000000000000001
	// null
}

// A checksum of 16 bytes is not a UUID, and is written as the driver writes it.
func ExampleRegistryBuilder_RegisterBytesType() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		RegisterBytesType(reflect.TypeFor[MD5]()).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, MD5{15: 1})
	// Output: subtype 0, 00000000000000000000000000000001
}

// A program that has many identifier types need not name each of them.
func ExampleRegistryBuilder_UnregisteredAsUUID() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		UnregisteredAsUUID().
		RegisterBytesType(reflect.TypeFor[MD5]()).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, CustomerID{15: 1})
	show(reg, MD5{15: 1})
	// Output:
	// subtype 4, 00000000000000000000000000000001
	// subtype 0, 00000000000000000000000000000001
}

// The driver's behavior for all types but uuid.UUID, for a program that relies on it.
func ExampleRegistryBuilder_UnregisteredAsBytes() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, uuid.UUID{15: 1})
	show(reg, CustomerID{15: 1})
	// Output:
	// subtype 4, 00000000000000000000000000000001
	// subtype 0, 00000000000000000000000000000001
}

// A type of kind [16]byte that nobody registered is an error, not binary subtype 0.
func ExampleUnregisteredTypeError() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = bsoncodec.Marshal(reg, bson.M{"customer": CustomerID{}})
	var unregistered *bsoncodec.UnregisteredTypeError
	if errors.As(err, &unregistered) {
		fmt.Println("register", unregistered.Type)
	}
	// Output: register bsoncodec_test.CustomerID
}

// Targets of type any, and with them bson.M and bson.D, receive the program's own type.
func ExampleRegistryBuilder_SetImplicitType() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		SetImplicitType(reflect.TypeFor[CustomerID]()).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := bsoncodec.Marshal(reg, bson.M{"customer": CustomerID{15: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var m bson.M
	err = bsoncodec.Unmarshal(reg, doc, &m)
	fmt.Printf("%T %v\n", m["customer"], err)
	// Output: bsoncodec_test.CustomerID <nil>
}

// Go programs without a codec wrote UUIDs as subtype 0.
func ExampleRegistryBuilder_AlsoDecodeSubtype0() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecodeSubtype0().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	old, err := bson.Marshal(bson.M{"id": uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")})
	if err != nil {
		fmt.Println(err)
		return
	}
	var doc struct{ ID uuid.UUID }
	err = bsoncodec.Unmarshal(reg, old, &doc)
	fmt.Println(doc.ID, err)
	// Output: 00112233-4455-6677-8899-aabbccddeeff <nil>
}

func ExampleRegistryBuilder_AlsoDecodeString() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecodeString().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	old, err := bson.Marshal(bson.M{"id": "00112233-4455-6677-8899-aabbccddeeff"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var doc struct{ ID uuid.UUID }
	err = bsoncodec.Unmarshal(reg, old, &doc)
	fmt.Println(doc.ID, err)
	// Output: 00112233-4455-6677-8899-aabbccddeeff <nil>
}

// A database that holds UUIDs as text keeps them so.
func ExampleRegistryBuilder_EncodeAsString() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Unspecified).EncodeAsString().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, uuid.MustParse("00112233-4455-6677-8899-AABBCCDDEEFF"))
	// Output: "00112233-4455-6677-8899-aabbccddeeff"
}

func ExampleRegistryBuilder_EncodeZeroAsNull() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).EncodeZeroAsNull().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, uuid.Nil)
	// Output: null
}

// The caller's own codecs, hooks and type map entries go into the same registry.
func ExampleRegistryBuilder_With() {
	type celsius float64
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		With(func(reg *bson.Registry) {
			reg.RegisterTypeEncoder(reflect.TypeFor[celsius](), bson.ValueEncoderFunc(
				func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
					return vw.WriteString(fmt.Sprintf("%g °C", v.Float()))
				}))
		}).
		Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	show(reg, celsius(21.5))
	show(reg, uuid.UUID{15: 1})
	// Output:
	// "21.5 °C"
	// subtype 4, 00000000000000000000000000000001
}

// Plans save time and give the results of the driver's codec. A program that suspects them can leave
// them out.
func ExampleRegistryBuilder_WithoutPlans() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans().Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := bsoncodec.Marshal(reg, struct{ ID uuid.UUID }{uuid.UUID{15: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, data := bson.Raw(doc).Lookup("id").Binary()
	fmt.Printf("subtype %d, %X\n", subtype, data)
	// Output: subtype 4, 00000000000000000000000000000001
}

// A type with a prefix is stored as the UUID in it.
func ExampleRegisterUUIDFunc() {
	b := bsoncodec.NewRegistryBuilder(uuidrep.Standard)
	bsoncodec.RegisterUUIDFunc(b,
		func(id roomID) (uuid.UUID, bool) { return id.value, id.value != uuid.Nil },
		func(id uuid.UUID, _ bool) (roomID, error) { return roomID{"room", id}, nil })
	reg, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	id := roomID{"room", uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")}
	doc, err := bsoncodec.Marshal(reg, bson.M{"_id": id})
	if err != nil {
		log.Fatal(err)
	}
	var back struct {
		ID roomID `bson:"_id"`
	}
	if err := bsoncodec.Unmarshal(reg, doc, &back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bson.Raw(doc))
	fmt.Println(back.ID.prefix, back.ID.value)
	// Output:
	// {"_id": {"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}}
	// room 00112233-4455-6677-8899-aabbccddeeff
}

type roomID struct {
	prefix string
	value  uuid.UUID
}
