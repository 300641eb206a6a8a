package clientopt

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A client of Connect sends UUIDs in the representation of its connection string.
func TestConnect(t *testing.T) {
	ctx := context.Background()
	for want := range stored {
		t.Run(want.String(), func(t *testing.T) {
			s := &server{found: bson.D{{Key: "_id", Value: stored[want]}}}
			coll := connect(t, s, "mongodb://h/?uuidRepresentation="+want.String()).Database("db").Collection("coll")
			res, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: testUUID}})
			if err != nil || res.InsertedID != testUUID {
				t.Errorf("%v, %v", res, err)
			}
			wantStored(t, s.insertedID(t), want)

			var doc bson.M
			if err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: testUUID}}).Decode(&doc); err != nil || doc["_id"] != testUUID {
				t.Errorf("found %v, %v", doc, err)
			}
			wantStored(t, s.sent("find")[0].Lookup("filter", "_id"), want)
		})
	}
}

// Two clients of one program have two representations.
func TestTwoClients(t *testing.T) {
	s := &server{}
	java := connect(t, s, "mongodb://h/?uuidRepresentation=javaLegacy")
	standard := connect(t, s, "mongodb://h/?uuidRepresentation=standard")
	silent := connect(t, s, "mongodb://h/")

	insert := func(c *mongo.Client) error {
		_, err := c.Database("db").Collection("coll").InsertOne(context.Background(), bson.M{"_id": testUUID})
		return err
	}
	for range 3 {
		if err := insert(java); err != nil {
			t.Fatal(err)
		}
		wantStored(t, s.insertedID(t), uuidrep.JavaLegacy)
		if err := insert(standard); err != nil {
			t.Fatal(err)
		}
		wantStored(t, s.insertedID(t), uuidrep.Standard)
		if err := insert(silent); !errors.Is(err, uuidrep.ErrUnspecified) {
			t.Fatal(err)
		}
	}
}

// Without a representation, the default of the specification, a UUID is an error and no command is sent.
func TestUnspecifiedSendsNothing(t *testing.T) {
	ctx := context.Background()
	for _, uri := range []string{"mongodb://h/", "mongodb://h/?uuidRepresentation=unspecified"} {
		s := &server{}
		coll := connect(t, s, uri).Database("db").Collection("coll")
		doc := bson.D{{Key: "x", Value: testUUID}}
		_, errInsert := coll.InsertOne(ctx, doc)
		errFind := coll.FindOne(ctx, doc).Err()
		_, errUpdate := coll.UpdateOne(ctx, bson.D{}, bson.D{{Key: "$set", Value: doc}})
		_, errAggregate := coll.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: doc}}})
		for i, err := range []error{errInsert, errFind, errUpdate, errAggregate} {
			if !errors.Is(err, uuidrep.ErrUnspecified) {
				t.Errorf("%s: operation %d: %v", uri, i, err)
			}
		}
		for _, name := range []string{"insert", "find", "update", "aggregate"} {
			if sent := s.sent(name); len(sent) != 0 {
				t.Errorf("%s: %v was sent", uri, sent)
			}
		}
	}
}

// A representation in a connection string, that of the client options included, comes before
// WithDefaultRepresentation, of which the last counts.
func TestPrecedence(t *testing.T) {
	const standard, java, csharp, python = uuidrep.Standard, uuidrep.JavaLegacy, uuidrep.CSharpLegacy, uuidrep.PythonLegacy
	fallback := WithDefaultRepresentation
	uriOf := func(uri string) Option { return WithClientOptions(options.Client().ApplyURI(uri)) }
	for _, c := range []struct {
		uri  string
		opts []Option
		want uuidrep.Representation
	}{
		{"mongodb://h/", nil, uuidrep.Unspecified},
		{"mongodb://h/", []Option{fallback(java)}, java},
		{"mongodb://h/", []Option{fallback(java), fallback(csharp)}, csharp},
		{"mongodb://h/", []Option{fallback(java), fallback(uuidrep.Unspecified)}, uuidrep.Unspecified},
		{"mongodb://h/?uuidRepresentation=standard", []Option{fallback(java)}, standard},
		{"mongodb://h/?uuidRepresentation=unspecified", []Option{fallback(java)}, uuidrep.Unspecified},
		{"mongodb://h/", []Option{uriOf("mongodb://i/?uuidRepresentation=pythonLegacy"), fallback(java)}, python},
		{"mongodb://h/?uuidRepresentation=standard", []Option{uriOf("mongodb://i/")}, standard},
		{"mongodb://h/?uuidRepresentation=standard", []Option{uriOf("mongodb://i/?UUIDREPRESENTATION=Standard")}, standard},
	} {
		opts, err := ApplyURI(c.uri, c.opts...)
		if err != nil {
			t.Errorf("%s: %v", c.uri, err)
			continue
		}
		rv, err := bsoncodec.MarshalValue(opts.Registry, testUUID)
		if c.want == uuidrep.Unspecified {
			if !errors.Is(err, uuidrep.ErrUnspecified) {
				t.Errorf("%s: %v, %v", c.uri, rv, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.uri, err)
			continue
		}
		wantStored(t, rv, c.want)
	}
}

// A database or a collection with a registry of its own has its representation.
func TestDatabaseAndCollectionRegistry(t *testing.T) {
	java, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	csharp, err := bsoncodec.NewRegistry(uuidrep.CSharpLegacy)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{}
	client := connect(t, s, "mongodb://h/?uuidRepresentation=standard")
	ofDatabase := options.Database().SetRegistry(java)
	ofCollection := options.Collection().SetRegistry(csharp)
	for _, c := range []struct {
		coll *mongo.Collection
		want uuidrep.Representation
	}{
		{client.Database("db").Collection("coll"), uuidrep.Standard},
		{client.Database("db", ofDatabase).Collection("coll"), uuidrep.JavaLegacy},
		{client.Database("db").Collection("coll", ofCollection), uuidrep.CSharpLegacy},
		{client.Database("db", ofDatabase).Collection("coll", ofCollection), uuidrep.CSharpLegacy},
	} {
		if _, err := c.coll.InsertOne(context.Background(), bson.M{"_id": testUUID}); err != nil {
			t.Fatal(err)
		}
		wantStored(t, s.insertedID(t), c.want)
	}

	// The type of the value takes precedence over all of them.
	coll := client.Database("db", ofDatabase).Collection("coll", ofCollection)
	if _, err := coll.InsertOne(context.Background(), bson.M{"_id": uuidrep.PythonLegacyUUID{UUID: testUUID}}); err != nil {
		t.Fatal(err)
	}
	wantStored(t, s.insertedID(t), uuidrep.PythonLegacy)
}

// The BSONOptions of the caller are in force beside the registry.
func TestBSONOptionsStay(t *testing.T) {
	s := &server{found: bson.D{{Key: "_id", Value: stored[uuidrep.Standard]}, {Key: "sub", Value: bson.D{{Key: "b", Value: bson.Binary{Data: []byte("x")}}}}}}
	client := connect(t, s, "mongodb://h/?uuidRepresentation=standard", WithClientOptions(
		options.Client().SetBSONOptions(&options.BSONOptions{NilSliceAsEmpty: true, DefaultDocumentM: true, BinaryAsSlice: true})))
	coll := client.Database("db").Collection("coll")
	if _, err := coll.InsertOne(context.Background(), struct {
		ID   uuid.UUID `bson:"_id"`
		List []int
	}{ID: testUUID}); err != nil {
		t.Fatal(err)
	}
	if list := s.sent("insert")[0].Lookup("documents", "0", "list"); list.Type != bson.TypeArray {
		t.Errorf("a nil slice was sent as %v", list)
	}
	wantStored(t, s.insertedID(t), uuidrep.Standard)

	var got bson.M
	if err := coll.FindOne(context.Background(), bson.D{}).Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := bson.M{"_id": testUUID, "sub": bson.M{"b": []byte("x")}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %#v, want %#v", got, want)
	}
}

// The registry of a client encodes the documents of package autoid.
func TestAutoIDIsRegistered(t *testing.T) {
	s := &server{}
	client := connect(t, s, "mongodb://h/?uuidRepresentation=javaLegacy")
	users := autoid.Wrap(client.Database("db").Collection("users"), autoid.SourceFunc(func() (any, error) { return testUUID, nil }))
	if _, err := users.InsertOne(context.Background(), bson.M{"name": "Ada"}); err != nil {
		t.Fatal(err)
	}
	wantStored(t, s.insertedID(t), uuidrep.JavaLegacy)
}

// WithRegistryBuilder configures the registry of the client.
func TestWithRegistry(t *testing.T) {
	type own [16]byte
	calls := 0
	count := func(*bsoncodec.RegistryBuilder) { calls++ }
	registered := func(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[own]()) }
	opt := []Option{WithRegistryBuilder(count), WithRegistryBuilder(registered), WithRegistryBuilder(count)}
	for range 2 {
		opts, err := ApplyURI("mongodb://h/?uuidRepresentation=csharpLegacy", opt...)
		if err != nil {
			t.Fatal(err)
		}
		rv, err := bsoncodec.MarshalValue(opts.Registry, own(testUUID))
		if err != nil {
			t.Fatal(err)
		}
		wantStored(t, rv, uuidrep.CSharpLegacy)
	}
	if calls != 4 {
		t.Errorf("%d calls, want one for each function and ApplyURI", calls)
	}
}

// An Option that is nil or not valid, a registry in the client options and two representations are errors of
// ApplyURI, before any look-up.
func TestOptionErrors(t *testing.T) {
	lookups := refuseDNS(t)
	reg := bson.NewRegistry()
	alsoJava := func(b *bsoncodec.RegistryBuilder) { b.AlsoDecode(uuidrep.JavaLegacy) }
	for _, c := range []struct {
		uri  string
		opt  Option
		want string
	}{
		{"?uuidRepresentation=standard", WithClientOptions(options.Client().SetRegistry(reg)), "WithRegistryBuilder"},
		{"", WithClientOptions(options.Client(), &options.ClientOptions{Registry: reg}), "WithRegistryBuilder"},
		{"", WithClientOptions(options.Client(), nil), "WithClientOptions was given nil"},
		{"", nil, "an Option is nil"},
		{"", WithDefaultRepresentation(9), "WithDefaultRepresentation: uuidrep: Representation(9)"},
		{"?uuidRepresentation=standard", WithDefaultRepresentation(9), "WithDefaultRepresentation: uuidrep: Representation(9)"},
		{"", WithRegistryBuilder(nil), "the function of WithRegistryBuilder is nil"},
		{"?uuidRepresentation=csharpLegacy", WithRegistryBuilder(alsoJava), "cannot build the registry: bsoncodec: "},
		{"", WithRegistryBuilder(alsoJava), "cannot build the registry: bsoncodec: "},
		{"?uuidRepresentation=standard", WithClientOptions(options.Client().ApplyURI("mongodb://i/?uuidRepresentation=javaLegacy")),
			"twice, to standard and to javaLegacy"},
		{"", WithClientOptions(options.Client().ApplyURI("mongodb://i/?uuidRepresentation=bogus")), `"bogus"`},
		{"", WithClientOptions(options.Client().ApplyURI("http://i/")), "an argument of WithClientOptions is not valid"},
		{"", WithClientOptions(keyVault("mongodb://user:secret/i")), "an argument of WithClientOptions is not valid"},
		{"", WithClientOptions(options.Client().ApplyURI("mongodb://i/?maxPoolSize=x")), "an argument of WithClientOptions is not valid"},
	} {
		// None of these may wait for a DNS look-up.
		uri := "mongodb+srv://cluster.example.com/" + c.uri
		opts, err := ApplyURI(uri, c.opt)
		if err == nil || opts != nil || !strings.HasPrefix(err.Error(), "clientopt: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %s", uri, opts, err, c.want)
		}
	}
	if n := lookups.Load(); n != 0 {
		t.Errorf("%d DNS look-ups", n)
	}

	_, err := ApplyURI("mongodb://h", WithRegistryBuilder(alsoJava))
	if !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("%v does not wrap the builder's error", err)
	}
}

// keyVault returns options for client-side encryption with a key vault at uri.
func keyVault(uri string) *options.ClientOptions {
	return options.Client().SetAutoEncryptionOptions(options.AutoEncryption().
		SetKeyVaultClientOptions(options.Client().ApplyURI(uri)))
}

// Client options are merged as by options.MergeClientOptions, and the given ones are not changed.
func TestMergesAsTheDriver(t *testing.T) {
	const uri = "mongodb://u:p@h:1,i:2/db?appName=uri&maxPoolSize=7&uuidRepresentation=standard&retryWrites=false"
	first := options.Client().SetAppName("first").SetMinPoolSize(3)
	second := options.Client().SetAppName("second")
	before := *first

	got, err := ApplyURI(uri, WithClientOptions(first), WithClientOptions(second))
	if err != nil {
		t.Fatal(err)
	}
	want := options.MergeClientOptions(options.Client().ApplyURI(uri), first, second)
	if got.Registry == nil || want.Registry != nil {
		t.Error("the registry is not where it should be")
	}
	got.Registry = nil
	if !reflect.DeepEqual(exported(got), exported(want)) || got.GetURI() != want.GetURI() {
		t.Errorf("%+v, want %+v", got, want)
	}
	if *got.AppName != "second" || *got.MaxPoolSize != 7 || *got.MinPoolSize != 3 || *got.RetryWrites || got.Auth.Password != "p" {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(exported(first), exported(&before)) {
		t.Error("the caller's options were changed")
	}
}

// exported returns the exported fields of o without the HTTP client, which contains functions.
func exported(o *options.ClientOptions) map[string]any {
	m := map[string]any{}
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && f.Name != "HTTPClient" {
			m[f.Name] = v.Field(i).Interface()
		}
	}
	return m
}

// Concurrent calls of ApplyURI can share their Options.
func TestConcurrentUse(t *testing.T) {
	opts := []Option{
		WithDefaultRepresentation(uuidrep.JavaLegacy),
		WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.AlsoDecode(uuidrep.Standard) }),
		WithClientOptions(options.Client().SetAppName("shared")),
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := ApplyURI("mongodb://h/?w=1", opts...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The connection string of WithClientOptions is checked as the main one is.
func TestStringWithinClientOptionsIsChecked(t *testing.T) {
	_, err := ApplyURI("mongodb://h", WithClientOptions(options.Client().ApplyURI("mongodb://h/?uuid_representation=standard")))
	if err == nil || !strings.Contains(err.Error(), "within WithClientOptions is not valid") || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}
