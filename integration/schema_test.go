package integration

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/mongotest"
)

const codeDocumentValidationFailure = 121

// TestJSONSchema tests that a schema with native UUIDs holds them as the client stores them. The
// schema accepts the documents of a client with the same setting and refuses every other form.
func TestJSONSchema(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			s := newServer(t)
			s.Require(t, mongotest.JSONSchema)
			ctx := context30(t)
			coll := s.collection(r.rep, "items")
			err := coll.Database().CreateCollection(ctx, "items", options.CreateCollection().SetValidator(bson.M{
				"$jsonSchema": bson.M{
					"required": bson.A{"_id", "kind"},
					"properties": bson.M{
						"_id":  bson.M{"bsonType": "binData"},
						"kind": bson.M{"enum": []uuid.UUID{testUUID}},
					},
				},
			}))
			if err != nil {
				t.Fatal(err)
			}

			if _, err := coll.InsertOne(ctx, bson.M{"_id": uuid.New(), "kind": testUUID}); err != nil {
				t.Errorf("the schema's own UUID: %v", err)
			}
			refused := []any{
				bson.M{"_id": uuid.New(), "kind": uuid.New()},
				bson.M{"_id": uuid.New(), "kind": testUUID.String()},
				bson.M{"_id": uuid.NewString(), "kind": testUUID},
			}
			for _, other := range representations {
				if other.rep != r.rep {
					refused = append(refused, bson.M{"_id": uuid.New(), "kind": other.stored})
				}
			}
			for _, doc := range refused {
				_, err := coll.InsertOne(ctx, doc)
				var failed mongo.ServerError
				if !errors.As(err, &failed) || !failed.HasErrorCode(codeDocumentValidationFailure) {
					t.Errorf("%v: %v, want a validation failure", doc, err)
				}
			}
		})
	}
}
