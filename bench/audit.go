package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

type auditedOrder struct {
	ID                 bson.ObjectID `bson:"_id"`
	Customer, Session  bson.Binary
	Name, City, Status string
	Items              []auditedItem
	Total              float64
}

type auditedItem struct {
	Product bson.Binary
	Count   int
	Price   float64
}

const auditedDocuments = 100

// auditedOrders are the documents that the cases insert and find.
func auditedOrders() []any {
	docs := make([]any, auditedDocuments)
	for i := range docs {
		id := func() bson.Binary { return uuidrep.NewBinary(uuid.New()) }
		docs[i] = auditedOrder{
			bson.NewObjectID(), id(), id(), "a name of some length", "a city", "paid",
			[]auditedItem{{id(), 1, 9.5}, {id(), 2, 19}, {id(), 3, 1.25}}, 51.25,
		}
	}
	return docs
}

// memoryServer answers the commands of the cases.
var memoryServer = sync.OnceValues(func() (string, error) { return newMemoryServer(auditedOrders()) })

// newMemoryServer starts a server that answers the commands of the cases from memory, on loopback, and finds batch. It
// returns its connection string.
func newMemoryServer(batch bson.A) (string, error) {
	inserted := encoded(bson.D{{Key: "n", Value: auditedDocuments}, {Key: "ok", Value: 1}})
	found := encoded(bson.D{
		{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: "db.c"}, {Key: "firstBatch", Value: batch}}},
		{Key: "ok", Value: 1},
	})
	return listen(func(name bson.RawElement, _ bson.Raw, _ []bsoncore.Document) (bson.Raw, error) {
		switch name.Key() {
		case "insert":
			return inserted, nil
		case "find":
			return found, nil
		}
		return nil, fmt.Errorf("bench: the command %s", name.Key())
	})
}

// auditCases returns the cases that insert and find 100 orders on a server that answers from
// memory: without a monitor, with a monitor that does nothing (the driver's own cost), and with an
// audit.
func auditCases() []Case {
	monitors := map[string]func() (*event.CommandMonitor, error){
		"no_monitor": func() (*event.CommandMonitor, error) { return nil, nil },
		"empty_monitor": func() (*event.CommandMonitor, error) {
			return &event.CommandMonitor{
				Started:   func(context.Context, *event.CommandStartedEvent) {},
				Succeeded: func(context.Context, *event.CommandSucceededEvent) {},
			}, nil
		},
		"audit": func() (*event.CommandMonitor, error) {
			audit, err := uuidaudit.New(uuidrep.Standard, func(uuidaudit.Finding) {})
			if err != nil {
				return nil, err
			}
			return audit.Monitor(nil), nil
		},
	}
	run := func(impl string, do func(context.Context, *mongo.Collection) error) func(*testing.B) {
		return func(b *testing.B) {
			uri, err := memoryServer()
			if err != nil {
				b.Fatal(err)
			}
			monitor, err := monitors[impl]()
			if err != nil {
				b.Fatal(err)
			}
			client, err := mongo.Connect(options.Client().ApplyURI(uri).SetMonitor(monitor))
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			defer client.Disconnect(ctx)
			coll := client.Database("db").Collection("c")
			for b.Loop() {
				if err := do(ctx, coll); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	docs := auditedOrders()
	insert := func(ctx context.Context, coll *mongo.Collection) error {
		_, err := coll.InsertMany(ctx, docs)
		return err
	}
	find := func(ctx context.Context, coll *mongo.Collection) error {
		cursor, err := coll.Find(ctx, bson.D{})
		if err != nil {
			return err
		}
		var found []auditedOrder
		return cursor.All(ctx, &found)
	}
	var cases []Case
	for _, impl := range []string{"no_monitor", "empty_monitor", "audit"} {
		cases = append(cases, Case{Work: "InsertMany100", Impl: impl, Run: run(impl, insert)})
	}
	for _, impl := range []string{"no_monitor", "empty_monitor", "audit"} {
		cases = append(cases, Case{Work: "FindAll100", Impl: impl, Run: run(impl, find)})
	}
	return cases
}
