package integration

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// changeEvent is what the test reads of a change event into native types.
type changeEvent struct {
	Token         bson.Raw `bson:"_id"`
	OperationType string   `bson:"operationType"`
	DocumentKey   struct {
		ID uuid.UUID `bson:"_id"`
	} `bson:"documentKey"`
	FullDocument item `bson:"fullDocument"`
}

// TestChangeStream: the events of a stream hold native UUIDs, a stage can match on one, and the resume token stays what
// the server sent, so that a stream goes on from it.
func TestChangeStream(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			s := newServer(t)
			s.Require(t, mongotest.ChangeStreams)
			ctx := context30(t)
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
			s.insert(coll, newItem(uuid.New(), 0), newItem(testUUID, 1, ref))
			if _, err := coll.UpdateByID(ctx, testUUID, bson.M{"$set": bson.M{"n": 2}}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.DeleteOne(ctx, bson.M{"_id": testUUID}); err != nil {
				t.Fatal(err)
			}

			var tokens []bson.Raw
			for i, want := range []struct {
				operation string
				n         int32
			}{{"insert", 1}, {"update", 2}, {"delete", 0}} {
				if !stream.Next(ctx) {
					t.Fatalf("event %d: %v", i, stream.Err())
				}
				var event changeEvent
				if err := stream.Decode(&event); err != nil {
					t.Fatal(err)
				}
				if event.OperationType != want.operation || event.DocumentKey.ID != testUUID {
					t.Errorf("event %d: %+v", i, event)
				}
				if want.n != 0 && (event.FullDocument.ID != testUUID || event.FullDocument.N != want.n ||
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
				if want.n != 0 {
					checkStored(t, stream.Current, r.stored, "fullDocument", "_id")
				}

				// The token, three ways: as the driver keeps it, decoded raw, and through any and back.
				sent := stream.Current.Lookup("_id").Document()
				reg, err := bsoncodec.NewRegistry(r.rep)
				if err != nil {
					t.Fatal(err)
				}
				again, err := bsoncodec.Marshal(reg, generic["_id"])
				if err != nil {
					t.Fatal(err)
				}
				for _, got := range []bson.Raw{stream.ResumeToken(), event.Token, again} {
					if !bytes.Equal(got, sent) {
						t.Errorf("event %d: token %v, the server sent %v", i, got, sent)
					}
				}
				tokens = append(tokens, again)
			}

			resumed, err := coll.Watch(ctx, pipeline, options.ChangeStream().SetResumeAfter(tokens[0]))
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
		})
	}
}
