package integration

import (
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/mongotest"
)

// TestUniqueIndex tests that a unique index refuses a UUID that it has in the same representation,
// and only in the same one: the four representations of one UUID are four values, unless subtype
// and bytes are equal.
func TestUniqueIndex(t *testing.T) {
	for _, field := range []string{"_id", "u"} {
		t.Run(field, func(t *testing.T) {
			s := newServer(t)
			ctx := context30(t)
			if field != "_id" {
				_, err := s.plain("items").Indexes().CreateOne(ctx, mongo.IndexModel{
					Keys: bson.D{{Key: field, Value: 1}}, Options: options.Index().SetUnique(true),
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			insert := func(r int, u uuid.UUID) error {
				_, err := s.collection(representations[r].rep, "items").InsertOne(ctx, bson.M{field: u})
				return err
			}
			for r := range representations {
				// Each representation has a UUID of its own, because a server may ignore the
				// subtype.
				u := uuid.New()
				if err := insert(r, u); err != nil {
					t.Fatal(err)
				}
				if err := insert(r, u); !mongo.IsDuplicateKeyError(err) {
					t.Errorf("%v again: %v, want a duplicate key", representations[r].rep, err)
				}
			}

			s.Require(t, mongotest.DistinctSubtypes)
			for r := range representations {
				if err := insert(r, testUUID); err != nil {
					t.Errorf("%v beside the others: %v", representations[r].rep, err)
				}
			}
			for r := range representations {
				if err := insert(r, testUUID); !mongo.IsDuplicateKeyError(err) {
					t.Errorf("%v again: %v, want a duplicate key", representations[r].rep, err)
				}
			}
			// All bytes are equal, so every order is the same, and the three legacy representations
			// are one value.
			var alike uuid.UUID
			for i := range alike {
				alike[i] = 0x5A
			}
			inserted := 0
			for r := range representations {
				switch err := insert(r, alike); {
				case err == nil:
					inserted++
				case !mongo.IsDuplicateKeyError(err):
					t.Error(err)
				}
			}
			if inserted != 2 {
				t.Errorf("%d values of one octet repeated, want 2: subtype 4 and subtype 3", inserted)
			}
		})
	}
}
