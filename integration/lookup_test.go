package integration

import (
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestLookupAcrossRepresentations tests what docs/beside-java-and-csharp.md says of $lookup: a reference of the field
// type of the other collection finds its document, and a uuid.UUID, which a client with standard stores as subtype 4,
// does not.
func TestLookupAcrossRepresentations(t *testing.T) {
	s := newServer(t)
	s.Require(t, mongotest.Lookup)
	type customer struct {
		ID   uuid.UUID `bson:"_id"`
		Name string
	}
	type order struct {
		Typed uuidrep.JavaLegacyUUID
		Plain uuid.UUID
	}
	ada := customer{uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff"), "Ada"}
	s.insert(s.collection(uuidrep.JavaLegacy, "customers"), ada, customer{uuid.New(), "Bob"})
	orders := s.collection(uuidrep.Standard, "orders")
	s.insert(orders, order{uuidrep.JavaLegacyUUID{UUID: ada.ID}, ada.ID})

	for _, test := range []struct {
		field string
		want  int
	}{{"typed", 1}, {"plain", 0}} {
		cursor, err := orders.Aggregate(context30(t), mongo.Pipeline{{{Key: "$lookup", Value: bson.M{
			"from": "customers", "localField": test.field, "foreignField": "_id", "as": "customer",
		}}}})
		got := all[struct {
			Customer []struct {
				ID   uuidrep.JavaLegacyUUID `bson:"_id"`
				Name string
			}
		}](t, cursor, err)
		if len(got) != 1 || len(got[0].Customer) != test.want {
			t.Errorf("%s: got %+v, want %d customers", test.field, got, test.want)
			continue
		}
		for _, c := range got[0].Customer {
			if c.ID.UUID != ada.ID || c.Name != ada.Name {
				t.Errorf("%s: got %+v, want %+v", test.field, c, ada)
			}
		}
	}
}
