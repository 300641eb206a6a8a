package autoid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// invoices is a source of the text ids INV-1, INV-2 and so on.
type invoices struct{ last atomic.Int64 }

func (s *invoices) NewID() (any, error) { return fmt.Sprintf("INV-%d", s.last.Add(1)), nil }

// encode returns the Extended JSON of the document that the driver sends for doc.
func encode(doc any) string {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(autoid.Register).Build()
	if err != nil {
		return err.Error()
	}
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, false, false))
	enc.SetRegistry(reg)
	if err := enc.Encode(doc); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(buf.Bytes()))
}

// A client of clientopt.Connect has a registry with Register and with codecs for UUIDs.
func ExampleWrap() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	coll := autoid.Wrap(client.Database("shop").Collection("invoices"), &invoices{})

	one, err := coll.InsertOne(context.TODO(), bson.M{"total": 129.95})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(one.InsertedID) // INV-1

	many, err := coll.InsertMany(context.TODO(), []bson.D{
		{{Key: "total", Value: 12}},
		{{Key: "_id", Value: "INV-1815"}, {Key: "total", Value: 36}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(many.InsertedIDs) // [INV-2 INV-1815]
}

func ExampleDocument() {
	src := &invoices{}
	type invoice struct {
		ID    string  `bson:"_id,omitempty"`
		Total float64 `bson:"total"`
	}
	fmt.Println(encode(autoid.Document(src, bson.D{{Key: "total", Value: 129.95}})))
	fmt.Println(encode(autoid.Document(src, invoice{Total: 12.5})))
	fmt.Println(encode(autoid.Document(src, invoice{ID: "INV-1815", Total: 36.5})))

	again := autoid.Document(src, bson.D{})
	fmt.Println(encode(again), encode(again))
	// Output:
	// {"_id":"INV-1","total":129.95}
	// {"_id":"INV-2","total":12.5}
	// {"_id":"INV-1815","total":36.5}
	// {"_id":"INV-3"} {"_id":"INV-3"}
}

// The client's bulk write takes documents of several collections, so there is no Collection to
// wrap.
func ExampleDocument_clientBulkWrite() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	src := &invoices{}
	res, err := client.BulkWrite(context.TODO(), []mongo.ClientBulkWrite{
		{Database: "shop", Collection: "invoices", Model: mongo.NewClientInsertOneModel().
			SetDocument(autoid.Document(src, bson.M{"total": 129.95}))},
		{Database: "shop", Collection: "archive", Model: mongo.NewClientInsertOneModel().
			SetDocument(autoid.Document(src, bson.M{"total": 12}))},
	}, options.ClientBulkWrite().SetVerboseResults(true))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.InsertResults[0].InsertedID, res.InsertResults[1].InsertedID) // INV-1 INV-2
}

// The writes of several collections, each with its own source, make one bulk write of the client.
func ExampleCollection_ClientWrites() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	invoiceColl := autoid.Wrap(client.Database("shop").Collection("invoices"), &invoices{})
	users := autoid.Wrap(client.Database("app").Collection("users"), uuidgen.DefaultV7())
	writes, err := invoiceColl.ClientWrites(mongo.NewClientInsertOneModel().SetDocument(bson.M{"total": 129.95}))
	if err != nil {
		log.Fatal(err)
	}
	more, err := users.ClientWrites(mongo.NewClientUpdateOneModel().SetFilter(bson.M{"email": "ada@example.org"}).
		SetUpdate(bson.M{"$set": bson.M{"name": "Ada"}}).SetUpsert(true))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.BulkWrite(context.TODO(), append(writes, more...)); err != nil {
		log.Fatal(err)
	}
}

// A Document that is made outside the function of WithTransaction keeps its id if the driver runs
// the function again.
func ExampleDocument_transaction() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	sess, err := client.StartSession()
	if err != nil {
		log.Fatal(err)
	}
	defer sess.EndSession(context.TODO())
	invoice := autoid.Document(&invoices{}, bson.M{"total": 129.95})
	_, err = sess.WithTransaction(context.TODO(), func(ctx context.Context) (any, error) {
		return client.Database("shop").Collection("invoices").InsertOne(ctx, invoice)
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Register prepares a registry that the application makes for documents with a source. This one has
// codecs for UUIDs.
func ExampleRegister_client() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		log.Fatal(err)
	}
	autoid.Register(reg) // before the registry is used
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
	if err != nil {
		log.Fatal(err)
	}
	ids, err := uuidgen.NewV7Generator()
	if err != nil {
		log.Fatal(err)
	}
	users := autoid.Wrap(client.Database("app").Collection("users"), ids)
	res, err := users.InsertOne(context.TODO(), bson.M{"name": "Ada"})
	if err != nil {
		log.Fatal(err)
	}
	id := res.InsertedID.(uuid.UUID) // stored as subtype 4
	fmt.Println(id.Version())        // VERSION_7
}

// The id of an upsert is native, as the id of an insert is. The result of a mongo.Collection has a
// bson.Binary, which bsoncodec.DecodeNative converts.
func ExampleCollection_UpdateOne() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		log.Fatal(err)
	}
	autoid.Register(reg)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
	if err != nil {
		log.Fatal(err)
	}
	coll := client.Database("app").Collection("users")
	filter := bson.M{"_id": uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")}
	update := bson.M{"$set": bson.M{"name": "Ada"}}
	upsert := options.UpdateOne().SetUpsert(true)

	res, err := autoid.Wrap(coll, &invoices{}).UpdateOne(context.TODO(), filter, update, upsert)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", res.UpsertedID) // uuid.UUID

	res, err = coll.UpdateOne(context.TODO(), filter, update, upsert)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T\n", res.UpsertedID) // bson.Binary
	id, err := bsoncodec.DecodeNative(reg, res.UpsertedID)
	fmt.Println(id, err) // 00112233-4455-6677-8899-aabbccddeeff <nil>
}

// Assign sets an _id that is missing or zero, for example in a hook of an object-document mapper.
func ExampleAssign() {
	type invoice struct {
		ID    string  `bson:"_id"`
		Total float64 `bson:"total"`
	}
	src := &invoices{}
	first, second := invoice{Total: 129.95}, invoice{ID: "INV-1815", Total: 12}
	for _, i := range []*invoice{&first, &second} {
		if err := autoid.Assign(src, i); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(first.ID, second.ID)

	doc := bson.M{"total": 36.5}
	err := autoid.Assign(src, doc)
	fmt.Println(doc["_id"], err)

	err = autoid.Assign(src, invoice{}) // not a pointer
	fmt.Println(errors.Is(err, autoid.ErrNotAssignable))
	// Output:
	// INV-1 INV-1815
	// INV-2 <nil>
	// true
}

// The inserts of a Collection with WithWriteBack set the _id of the caller's document.
func ExampleWithWriteBack() {
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	type invoice struct {
		ID    string  `bson:"_id"`
		Total float64 `bson:"total"`
	}
	coll := autoid.Wrap(client.Database("shop").Collection("invoices"), &invoices{}, autoid.WithWriteBack())
	i := invoice{Total: 129.95}
	if _, err := coll.InsertOne(context.TODO(), &i); err != nil {
		log.Fatal(err)
	}
	fmt.Println(i.ID) // INV-1
}

func ExampleWithZeroIDAsMissing() {
	type invoice struct {
		ID    string  `bson:"_id"`
		Total float64 `bson:"total"`
	}
	src := &invoices{}
	fmt.Println(encode(autoid.Document(src, invoice{Total: 12.5})))
	fmt.Println(encode(autoid.Document(src, invoice{Total: 12.5}, autoid.WithZeroIDAsMissing())))
	// Output:
	// {"_id":"","total":12.5}
	// {"_id":"INV-1","total":12.5}
}

func ExampleSourceFunc() {
	numbers := make(chan int64, 1)
	numbers <- 4711
	src := autoid.SourceFunc(func() (any, error) {
		select {
		case n := <-numbers:
			return n, nil
		default:
			return nil, errors.New("out of numbers")
		}
	})
	fmt.Println(encode(autoid.Document(src, bson.M{"total": 1})))
	fmt.Println(encode(autoid.Document(src, bson.M{"total": 1})))
	fmt.Println(encode(autoid.Document(src, bson.M{"_id": 7})))
	// Output:
	// {"_id":4711,"total":1}
	// autoid: no id for a document of type bson.M: out of numbers
	// {"_id":7}
}

func ExampleRegister() {
	var buf bytes.Buffer
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		log.Fatal(err)
	}
	doc := autoid.Document(&invoices{}, bson.M{"total": 1})

	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	fmt.Println(errors.Is(enc.Encode(doc), autoid.ErrNotRegistered))

	autoid.Register(reg)
	enc = bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	fmt.Println(enc.Encode(doc), bson.Raw(buf.Bytes()))
	// Output:
	// true
	// <nil> {"_id": "INV-1","total": {"$numberInt":"1"}}
}

// A call sends no document if one of its documents gets no id.
func ExampleIDError() {
	src := autoid.SourceFunc(func() (any, error) { return nil, errors.New("out of numbers") })
	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.TODO()) }()
	coll := autoid.Wrap(client.Database("shop").Collection("invoices"), src)
	_, err = coll.InsertMany(context.TODO(), []bson.M{{"_id": "INV-1815"}, {"total": 12}})
	var failed *autoid.IDError
	if errors.As(err, &failed) {
		fmt.Println(failed.Index, failed.Document)
		fmt.Println(failed)
	}
	// Output:
	// 1 {"total":{"$numberInt":"12"}}
	// autoid: no id for document 1 of type bson.M: out of numbers
}
