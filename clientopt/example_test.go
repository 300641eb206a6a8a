package clientopt_test

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidrep"
)

func ExampleConnect() {
	// Connect returns at once. The first operation asks the server.
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())

	// Every collection of this client reads and writes UUIDs as binary subtype 4.
	fmt.Println(client.Database("app").Collection("users").Name())
	// Output: users
}

// An unknown value is an error before the client connects to a server.
func ExampleConnect_error() {
	_, err := clientopt.Connect("mongodb://ada:secret@localhost:27017/?uuidRepresentation=java")
	fmt.Println(err)

	// The driver's own error for a missing @ would show the password.
	_, err = clientopt.Connect("mongodb://ada:secret/localhost")
	fmt.Println(err)
	// Output:
	// clientopt: option uuidRepresentation: uuidrep: unknown UUID representation "java": the valid ones are unspecified, standard, csharpLegacy, javaLegacy, pythonLegacy
	// clientopt: the connection string is not valid: host 1 of 1 has a port that is not a number from 1 to 65535; a user name and a password must be followed by an @, and there is none
}

func ExampleApplyURI() {
	opts, err := clientopt.ApplyURI("mongodb://localhost:27017/?maxPoolSize=20",
		clientopt.WithDefaultRepresentation(uuidrep.JavaLegacy), // for connection strings without the option
		clientopt.WithClientOptions(options.Client().SetAppName("shop")))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*opts.AppName, *opts.MaxPoolSize)

	rv, err := bsoncodec.MarshalValue(opts.Registry, uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"))
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := rv.Binary()
	fmt.Printf("subtype %d, %X\n", subtype, octets)

	client, err := mongo.Connect(opts)
	fmt.Println(client != nil, err)
	// Output:
	// shop 20
	// subtype 3, 7766554433221100FFEEDDCCBBAA9988
	// true <nil>
}

func ExampleRepresentation() {
	for _, uri := range []string{
		"mongodb://localhost/?w=majority&UUIDREPRESENTATION=javalegacy",
		"mongodb+srv://cluster.example.com/", // without a DNS look-up
		"mongodb://localhost/?uuidRepresentation=standard&uuidRepresentation=javaLegacy",
	} {
		r, err := clientopt.Representation(uri)
		fmt.Println(r, err)
	}
	// Output:
	// javaLegacy <nil>
	// unspecified <nil>
	// unspecified clientopt: option uuidRepresentation is set twice, to standard and to javaLegacy
}

// One collection was written by a Java service. The others have the representation of the client.
func ExampleCollection() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())

	orders, err := clientopt.Collection(client.Database("shop").Collection("orders"), uuidrep.JavaLegacy)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(orders.Name())
	// Output: orders
}

// A client that is made without a connection string gets the registry that Connect would give it.
func ExampleNewClientRegistry() {
	reg, err := clientopt.NewClientRegistry(uuidrep.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := mongo.Connect(options.Client().SetHosts([]string{"localhost:27017"}).SetRegistry(reg))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())

	setup, err := clientopt.Check(client)
	fmt.Println(setup, err)
	// Output: standard <nil>
}

// A misspelt option is an error. The driver alone ignores it, and the representation of the client
// would be unspecified.
func ExampleConnect_misspelt() {
	_, err := clientopt.Connect("mongodb://localhost:27017/?uuid_representation=standard")
	fmt.Println(err)
	// Output:
	// clientopt: the connection string is not valid: option 1, "uuid_representation", is not known: did you mean uuidRepresentation?
}

// SessionID is a UUID type of the application.
type SessionID [16]byte

func ExampleWithRegistryBuilder() {
	opts, err := clientopt.ApplyURI("mongodb://localhost/?uuidRepresentation=standard",
		clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) {
			b.RegisterUUIDType(reflect.TypeFor[SessionID]())
			b.AlsoDecode(uuidrep.CSharpLegacy) // data of an earlier service in the same database
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	rv, err := bsoncodec.MarshalValue(opts.Registry, SessionID(uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")))
	if err != nil {
		fmt.Println(err)
		return
	}
	subtype, octets := rv.Binary()
	fmt.Printf("subtype %d, %X\n", subtype, octets)
	// Output: subtype 4, 00112233445566778899AABBCCDDEEFF
}

// A program that was left with mongo.Connect would store UUIDs as binary subtype 0, or not find them. Check notices it
// before the first operation, without a server.
func ExampleCheck() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=javaLegacy",
		clientopt.WithClientOptions(options.Client().SetBSONOptions(&options.BSONOptions{NilSliceAsEmpty: true})))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())
	setup, err := clientopt.Check(client)
	fmt.Println(setup, err)

	plain, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017/?uuidRepresentation=javaLegacy"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plain.Disconnect(context.Background())
	_, err = clientopt.Check(plain)
	fmt.Println(err)
	// Output:
	// javaLegacy, NilSliceAsEmpty <nil>
	// clientopt: package bsoncodec did not build the registry of the client, and what it does with UUIDs is not known: make it by clientopt.Connect, or give it the registry of clientopt.NewClientRegistry
}

// A document is encoded as a collection encodes it.
func ExampleCollectionCodec() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard",
		clientopt.WithClientOptions(options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true})))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Disconnect(context.Background())
	reg, opts, err := clientopt.CollectionCodec(client.Database("app").Collection("users"))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, err := bsoncodec.MarshalExtJSON(reg, struct {
		Name string `json:"fullName"`
	}{"Ada"}, false, false, opts)
	fmt.Println(string(doc), err)
	// Output: {"fullName":"Ada"} <nil>
}
