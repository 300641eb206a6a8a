package autoid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
)

// invoices is a source of the text ids INV-1, INV-2 and so on.
type invoices struct{ last atomic.Int64 }

func (s *invoices) NewID() (any, error) { return fmt.Sprintf("INV-%d", s.last.Add(1)), nil }

// encode returns the Extended JSON of what the driver sends for doc.
func encode(doc any) string {
	reg := bson.NewRegistry()
	autoid.Register(reg)
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewExtJSONValueWriter(&buf, false, false))
	enc.SetRegistry(reg)
	if err := enc.Encode(doc); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(buf.Bytes()))
}

// A registry made by hand needs Register; clientopt.Connect does it.
func ExampleWrap() {
	reg := bson.NewRegistry()
	autoid.Register(reg)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
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

// The client's bulk write takes documents of any collection, so it has no Collection to wrap.
func ExampleDocument_clientBulkWrite() {
	reg := bson.NewRegistry()
	autoid.Register(reg)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
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

// A Document made outside the function that WithTransaction may run again keeps its id in every run.
func ExampleDocument_transaction() {
	reg := bson.NewRegistry()
	autoid.Register(reg)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
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
	reg := bson.NewRegistry()
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

// No document of a call is sent when one of them gets no id.
func ExampleIDError() {
	src := autoid.SourceFunc(func() (any, error) { return nil, errors.New("out of numbers") })
	reg := bson.NewRegistry()
	autoid.Register(reg)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:27017").SetRegistry(reg))
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
