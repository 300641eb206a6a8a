package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/objectidgen"
)

// database connects to a server in this process. The server starts with the first insert and ends
// with the process.
var database = sync.OnceValues(func() (*mongo.Database, error) {
	server, err := embedded.Start()
	if err != nil {
		return nil, err
	}
	client, err := clientopt.Connect(server.URI() + "?uuidRepresentation=standard")
	if err != nil {
		return nil, err
	}
	return client.Database("bench"), nil
})

// insertCases returns the cases that insert 100,000 documents end to end, in batches of 1000. The
// driver gets the _ids that it would otherwise generate, and is measured twice: the difference
// between the two is noise of the machine and the server.
func insertCases() []Case {
	const count, batch = 100_000, 1000
	type document struct {
		ID       bson.ObjectID `bson:"_id,omitempty"`
		Customer uuid.UUID
		Name     string
		Amount   float64
	}
	documents := func(id func() bson.ObjectID) []any {
		docs := make([]any, count)
		for i := range docs {
			docs[i] = document{id(), uuid.New(), fmt.Sprint("customer ", i), float64(i)}
		}
		return docs
	}
	insert := func(id func() bson.ObjectID, insertMany func(context.Context, *mongo.Collection, []any) error) func(*testing.B) {
		return func(b *testing.B) {
			db, err := database()
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			for range b.N {
				b.StopTimer()
				docs := documents(id)
				coll := db.Collection(bson.NewObjectID().Hex())
				if err := db.CreateCollection(ctx, coll.Name()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for start := 0; start < count; start += batch {
					if err := insertMany(ctx, coll, docs[start:start+batch]); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				if err := coll.Drop(ctx); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		}
	}
	byDriver := func(ctx context.Context, coll *mongo.Collection, docs []any) error {
		_, err := coll.InsertMany(ctx, docs)
		return err
	}
	byAutoID := func(ctx context.Context, coll *mongo.Collection, docs []any) error {
		_, err := autoid.Wrap(coll, objectidgen.Default()).InsertMany(ctx, docs)
		return err
	}
	none := func() bson.ObjectID { return bson.NilObjectID }
	return []Case{
		{Work: "Insert100000", Impl: "driver", Run: insert(bson.NewObjectID, byDriver)},
		{Work: "Insert100000", Impl: "bsonids", Run: insert(none, byAutoID)},
		{Work: "Insert100000", Impl: "driver_again", Run: insert(bson.NewObjectID, byDriver)},
	}
}
