package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestCursors reads a collection in several batches, with the options of the client.
func TestCursors(t *testing.T) {
	type item struct {
		ID   uuid.UUID `bson:"_id"`
		Name int       `json:"n"`
	}
	s := newServer(t)
	ctx := context30(t)
	opts, err := clientopt.ApplyURI(s.With("uuidRepresentation=" + uuidrep.JavaLegacy.String()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(opts.SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	coll := client.Database(s.Database()).Collection("items")
	const n = 25
	docs := make([]any, n)
	ids := map[uuid.UUID]int{}
	for i := range docs {
		id := uuid.New()
		ids[id] = i
		docs[i] = item{id, i}
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	find := func(batch int32) *mongo.Cursor {
		c, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(batch))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	for _, batch := range []int32{0, 1, 4, n, n + 1} {
		all, err := cursors.All[item](ctx, find(batch))
		if err != nil || len(all) != n {
			t.Fatalf("batches of %d: %d documents, %v", batch, len(all), err)
		}
		for _, v := range all {
			if i, ok := ids[v.ID]; !ok || i != v.Name {
				t.Errorf("batches of %d: got %+v", batch, v)
			}
		}
	}

	done, cancel := context.WithCancel(ctx)
	defer cancel()
	read := 0
	var last error
	for _, err := range cursors.Values[item](done, find(4)) {
		if last = err; err == nil {
			if read++; read == 6 {
				cancel()
			}
		}
	}
	if read != 6 || !errors.Is(last, context.Canceled) {
		t.Errorf("after 6 documents the context was done: read %d, %v", read, last)
	}

	closed := find(4)
	if err := closed.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if all, err := cursors.All[item](ctx, closed); len(all) != 0 {
		t.Errorf("a closed cursor: %d documents, %v", len(all), err)
	}

	// The server does not know the cursor any more when the next batch is requested.
	killed := find(4)
	read, last = 0, nil
	for _, err := range cursors.Values[item](ctx, killed) {
		if last = err; err == nil {
			if read++; read == 2 {
				command := bson.D{{Key: "killCursors", Value: "items"}, {Key: "cursors", Value: bson.A{killed.ID()}}}
				if err := coll.Database().RunCommand(ctx, command).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var serverError mongo.ServerError
	if read != 4 || !errors.As(last, &serverError) {
		t.Errorf("a cursor that the server forgot: read %d documents, %v", read, last)
	}
}
