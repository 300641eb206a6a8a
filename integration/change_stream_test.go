package integration

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// changeEvent is a change event, decoded into native types.
type changeEvent struct {
	Token         bson.Raw `bson:"_id"`
	OperationType string   `bson:"operationType"`
	DocumentKey   struct {
		ID uuid.UUID `bson:"_id"`
	} `bson:"documentKey"`
	FullDocument item `bson:"fullDocument"`
}

// TestChangeEvent decodes an event without a server: native UUIDs in a struct and in a map, and a
// resume token, byte for byte. Servers have sent resume tokens in two forms, hexadecimal and
// binary. The binary token here has 16 bytes, as a UUID has.
func TestChangeEvent(t *testing.T) {
	for _, r := range representations {
		for name, token := range map[string]bson.D{
			"text":   {{Key: "_data", Value: "8265D4B5F2000000012B022C0100296E5A1004"}},
			"binary": {{Key: "_data", Value: binary(0, octetsStandard)}, {Key: "_typeBits", Value: binary(0, []byte{0x82, 0})}},
		} {
			t.Run(r.rep.String()+"/"+name, func(t *testing.T) {
				reg, err := bsoncodec.NewRegistry(r.rep)
				if err != nil {
					t.Fatal(err)
				}
				sent, err := bson.Marshal(token)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := bson.Marshal(bson.D{
					{Key: "_id", Value: bson.Raw(sent)},
					{Key: "operationType", Value: "insert"},
					{Key: "clusterTime", Value: bson.Timestamp{T: 1708444146, I: 1}},
					{Key: "ns", Value: bson.D{{Key: "db", Value: "app"}, {Key: "coll", Value: "items"}}},
					{Key: "documentKey", Value: bson.D{{Key: "_id", Value: r.stored}}},
					{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: r.stored}, {Key: "refs", Value: bson.A{r.stored}}}},
				})
				if err != nil {
					t.Fatal(err)
				}
				var event changeEvent
				if err := bsoncodec.Unmarshal(reg, raw, &event); err != nil {
					t.Fatal(err)
				}
				if event.DocumentKey.ID != testUUID || event.FullDocument.ID != testUUID ||
					len(event.FullDocument.Refs) != 1 || event.FullDocument.Refs[0] != testUUID {
					t.Errorf("got %+v", event)
				}
				if !bytes.Equal(event.Token, sent) {
					t.Errorf("token %v, sent %v", event.Token, bson.Raw(sent))
				}
				var generic bson.M
				if err := bsoncodec.Unmarshal(reg, raw, &generic); err != nil {
					t.Fatal(err)
				}
				if key, ok := generic["documentKey"].(bson.D); !ok || len(key) != 1 || key[0].Value != testUUID {
					t.Errorf("key %v in a map", generic["documentKey"])
				}
				if again, err := bsoncodec.Marshal(reg, generic["_id"]); err != nil || !bytes.Equal(again, sent) {
					t.Errorf("token %v, %v, sent %v", bson.Raw(again), err, bson.Raw(sent))
				}
			})
		}
	}
}

// TestChangeStream tests that the events of a stream hold native UUIDs, that a stage can match a
// UUID, and that the resume token is not changed, so that a stream can resume after it.
func TestChangeStream(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			s := newServer(t)
			s.Require(t, mongotest.ChangeStreams)
			// A router holds an event back until every shard has written something later. An idle
			// shard writes to its oplog every ten seconds.
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			coll := s.collection(r.rep, "items")
			if err := coll.Database().CreateCollection(ctx, "items"); err != nil {
				t.Fatal(err)
			}
			pipeline := mongo.Pipeline{{{Key: "$match", Value: bson.M{"documentKey._id": testUUID}}}}
			stream, err := coll.Watch(ctx, pipeline, options.ChangeStream().SetFullDocument(options.UpdateLookup))
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close(ctx)

			ref := uuid.New()
			var tokens [2]bson.Raw
			for i, step := range []struct {
				operation string
				do        func() error
				n         int32
			}{
				{"insert", func() error {
					_, err := coll.InsertMany(ctx, []any{newItem(uuid.New(), 0), newItem(testUUID, 1, ref)})
					return err
				}, 1},
				{"update", func() error {
					_, err := coll.UpdateByID(ctx, testUUID, bson.M{"$set": bson.M{"n": 2}})
					return err
				}, 2},
				{"delete", func() error {
					_, err := coll.DeleteOne(ctx, bson.M{"_id": testUUID})
					return err
				}, 0},
			} {
				// Each event is read before the next operation, because the document of an update
				// is looked up when the event is read.
				if err := step.do(); err != nil {
					t.Fatal(err)
				}
				if !stream.Next(ctx) {
					t.Fatalf("event %d: %v", i, stream.Err())
				}
				var event changeEvent
				if err := stream.Decode(&event); err != nil {
					t.Fatal(err)
				}
				if event.OperationType != step.operation || event.DocumentKey.ID != testUUID {
					t.Errorf("event %d: %+v", i, event)
				}
				if step.n != 0 && (event.FullDocument.ID != testUUID || event.FullDocument.N != step.n ||
					len(event.FullDocument.Refs) != 1 || event.FullDocument.Refs[0] != ref) {
					t.Errorf("event %d: document %+v", i, event.FullDocument)
				}

				var generic bson.M
				if err := stream.Decode(&generic); err != nil {
					t.Fatal(err)
				}
				if key, ok := generic["documentKey"].(bson.D); !ok || len(key) != 1 || key[0].Value != testUUID {
					t.Errorf("event %d: key %v in a map", i, generic["documentKey"])
				}
				if step.n != 0 {
					checkStored(t, stream.Current, r.stored, "fullDocument", "_id")
				}

				// The token, decoded as a raw document, and decoded into any and encoded again.
				sent := stream.Current.Lookup("_id").Document()
				reg, err := bsoncodec.NewRegistry(r.rep)
				if err != nil {
					t.Fatal(err)
				}
				again, err := bsoncodec.Marshal(reg, generic["_id"])
				if err != nil {
					t.Fatal(err)
				}
				for _, got := range []bson.Raw{event.Token, again} {
					if !bytes.Equal(got, sent) {
						t.Errorf("event %d: token %v, the server sent %v", i, got, sent)
					}
				}
				if i == 0 {
					// At the end of a batch, the driver's own token is the one for the end of the
					// batch.
					tokens = [2]bson.Raw{again, stream.ResumeToken()}
				}
			}

			for _, token := range tokens {
				resumed, err := coll.Watch(ctx, pipeline, options.ChangeStream().SetResumeAfter(token))
				if err != nil {
					t.Fatal(err)
				}
				defer resumed.Close(ctx)
				if !resumed.Next(ctx) {
					t.Fatal(resumed.Err())
				}
				if op := resumed.Current.Lookup("operationType").StringValue(); op != "update" {
					t.Errorf("after the insert comes %s, want update", op)
				}
			}
		})
	}
}
