package bench

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
)

// order is an ordinary document: scalars, a date, an embedded document and an array of documents.
type order struct {
	ID       bson.ObjectID `bson:"_id,omitempty"`
	Number   int64         `bson:"number"`
	Customer string        `bson:"customer"`
	Email    string        `bson:"email"`
	Placed   time.Time     `bson:"placed"`
	Paid     bool          `bson:"paid"`
	Total    float64       `bson:"total"`
	Address  address       `bson:"address"`
	Items    []item        `bson:"items"`
}

type address struct {
	Street string `bson:"street"`
	City   string `bson:"city"`
	Zip    string `bson:"zip"`
}

type item struct {
	SKU   string  `bson:"sku"`
	Count int32   `bson:"count"`
	Price float64 `bson:"price"`
}

// lateOrder has its _id after another field.
type lateOrder struct {
	Kind  string `bson:"kind"`
	Order order  `bson:",inline"`
}

// openOrder has a map that could hold its _id, so autoid must encode it into a buffer first.
type openOrder struct {
	Order order  `bson:",inline"`
	Rest  bson.M `bson:",inline"`
}

func newOrder() order {
	return order{
		Number: 4711, Customer: "Ada Lovelace", Email: "ada@example.org",
		Placed: time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC), Paid: true, Total: 129.95,
		Address: address{"12 St James's Square", "London", "SW1Y 4LE"},
		Items:   []item{{"A-100", 2, 19.95}, {"B-205", 1, 49.95}, {"C-310", 4, 10.025}},
	}
}

func orderD(id any) bson.D {
	o := newOrder()
	var d bson.D
	if id != nil {
		d = append(d, bson.E{Key: "_id", Value: id})
	}
	items := bson.A{}
	for _, i := range o.Items {
		items = append(items, bson.D{{Key: "sku", Value: i.SKU}, {Key: "count", Value: i.Count}, {Key: "price", Value: i.Price}})
	}
	return append(d,
		bson.E{Key: "number", Value: o.Number}, bson.E{Key: "customer", Value: o.Customer},
		bson.E{Key: "email", Value: o.Email}, bson.E{Key: "placed", Value: o.Placed},
		bson.E{Key: "paid", Value: o.Paid}, bson.E{Key: "total", Value: o.Total},
		bson.E{Key: "address", Value: bson.D{
			{Key: "street", Value: o.Address.Street}, {Key: "city", Value: o.Address.City}, {Key: "zip", Value: o.Address.Zip},
		}},
		bson.E{Key: "items", Value: items})
}

func orderM(id any) bson.M {
	m := bson.M{}
	for _, e := range orderD(id) {
		m[e.Key] = e.Value
	}
	return m
}

// autoIDPair is a document with its _id and the same document without it.
type autoIDPair struct {
	name          string
	with, without any
}

// autoIDPairs returns the pairs of documents. Their _id is id.
func autoIDPairs(id bson.ObjectID) []autoIDPair {
	with, without := newOrder(), newOrder()
	with.ID = id
	raw := func(doc any) bson.Raw {
		b, err := bson.Marshal(doc)
		if err != nil {
			panic(err)
		}
		return b
	}
	return []autoIDPair{
		{"struct", &with, &without},
		{"D", orderD(id), orderD(nil)},
		{"M", orderM(id), orderM(nil)},
		{"map", map[string]any(orderM(id)), map[string]any(orderM(nil))},
		{"Raw", raw(with), raw(without)},
		{"late", &lateOrder{"web", with}, &lateOrder{"web", without}},
		{"open", &openOrder{with, bson.M{"note": "gift"}}, &openOrder{without, bson.M{"note": "gift"}}},
	}
}

// autoIDRegistry returns the driver's registry with the codec that Document needs.
func autoIDRegistry() *bson.Registry {
	reg := bson.NewRegistry()
	autoid.Register(reg)
	return reg
}

// encodeForInsert encodes doc as the driver does for an insert: with a new buffer, a new encoder
// and the registry of the client.
func encodeForInsert(reg *bson.Registry, doc any) ([]byte, error) {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	err := enc.Encode(doc)
	return buf.Bytes(), err
}

// autoIDCases returns the cases that encode one document for an insert. The driver gets the
// document with its _id. autoid gets the same document without it and draws the same id from a
// source. No case measures the generation of an id, or the driver's look-up of the encoded _id for
// InsertedID, which is the same for both.
func autoIDCases() []Case {
	id := bson.NewObjectID()
	var drawn any = id
	src := autoid.SourceFunc(func() (any, error) { return drawn, nil })
	reg := autoIDRegistry()
	var cases []Case
	for _, p := range autoIDPairs(id) {
		run := func(doc func() any) func(b *testing.B) {
			return func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := encodeForInsert(reg, doc()); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		cases = append(cases,
			Case{Work: "AutoID/" + p.name, Impl: "driver", Run: run(func() any { return p.with })},
			Case{Work: "AutoID/" + p.name, Impl: "bsonids", Run: run(func() any { return autoid.Document(src, p.without) })})
	}
	return append(cases, autoIDBulkCases(reg, src, id)...)
}

// autoIDBulkCases returns the cases that prepare a bulk write of one insert, with a context that is
// over, so that nothing is sent: through a new Collection, which learns how the driver encodes its
// documents, and through one that knows.
func autoIDBulkCases(reg *bson.Registry, src autoid.Source, id bson.ObjectID) []Case {
	with, without := newOrder(), newOrder()
	with.ID = id
	over, cancel := context.WithCancel(context.Background())
	cancel()
	type collection interface {
		BulkWrite(context.Context, []mongo.WriteModel, ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error)
	}
	run := func(doc any, wrap func(*mongo.Collection) func() collection) func(b *testing.B) {
		return func(b *testing.B) {
			client, err := mongo.Connect(options.Client().ApplyURI("mongodb://nowhere.invalid").SetRegistry(reg))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = client.Disconnect(context.Background()) }()
			next := wrap(client.Database("db").Collection("orders"))
			models := []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(doc)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := next().BulkWrite(over, models); !errors.Is(err, context.Canceled) {
					b.Fatal(err)
				}
			}
		}
	}
	plain := func(c *mongo.Collection) func() collection { return func() collection { return c } }
	first := func(c *mongo.Collection) func() collection { return func() collection { return autoid.Wrap(c, src) } }
	later := func(c *mongo.Collection) func() collection {
		wrapped := autoid.Wrap(c, src)
		return func() collection { return wrapped }
	}
	return []Case{
		{Work: "AutoIDBulkWrite/first", Impl: "driver", Run: run(&with, plain)},
		{Work: "AutoIDBulkWrite/first", Impl: "bsonids", Run: run(&without, first)},
		{Work: "AutoIDBulkWrite/later", Impl: "driver", Run: run(&with, plain)},
		{Work: "AutoIDBulkWrite/later", Impl: "bsonids", Run: run(&without, later)},
	}
}
