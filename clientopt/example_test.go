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
	// Connect returns at once; the server is met with the first operation.
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

// An unknown value is an error before any server is asked.
func ExampleConnect_error() {
	_, err := clientopt.Connect("mongodb://ada:secret@localhost:27017/?uuidRepresentation=java")
	fmt.Println(err)

	// The driver's own error for a missing @ would show the password.
	_, err = clientopt.Connect("mongodb://ada:secret/localhost")
	fmt.Println(err)
	// Output:
	// clientopt: option uuidRepresentation: uuidrep: unknown UUID representation "java": the valid ones are unspecified, standard, csharpLegacy, javaLegacy, pythonLegacy
	// clientopt: the connection string is not valid: host 1 of 1 has a port that is not a number from 1 to 65535; a user name and a password end with an @, and here is none
}

func ExampleApplyURI() {
	opts, err := clientopt.ApplyURI("mongodb://localhost:27017/?maxPoolSize=20",
		clientopt.WithDefaultRepresentation(uuidrep.JavaLegacy), // for connection strings that do not say
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

// SessionID is a UUID type of the application.
type SessionID [16]byte

func ExampleWithRegistry() {
	opts, err := clientopt.ApplyURI("mongodb://localhost/?uuidRepresentation=standard",
		clientopt.WithRegistry(func(b *bsoncodec.RegistryBuilder) {
			b.RegisterUUIDType(reflect.TypeFor[SessionID]())
			b.AlsoDecode(uuidrep.CSharpLegacy) // what the service before this one left in the database
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
