package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestCalls tests that every call sends and reads what the driver encodes.
func TestCalls(t *testing.T) {
	uri, err := ServeCalls()
	if err != nil {
		t.Fatal(err)
	}
	calls, disconnect, err := Calls(uri)
	if err != nil {
		t.Fatal(err)
	}
	defer disconnect()
	names := map[string]bool{}
	for _, c := range calls {
		names[c.Row] = true
	}
	ctx := context.Background()
	for _, c := range calls {
		if c.Run == nil {
			if !names[c.SameAs] {
				t.Errorf("%s is the same as %q, which is no row", c.Row, c.SameAs)
			}
			continue
		}
		last, err := c.Run(ctx)
		if err == nil {
			err = c.Check(last)
		}
		if err != nil {
			t.Errorf("%s/%s: %v", c.Row, c.Column, err)
		}
		if reads := strings.HasPrefix(c.Row, "Find") || strings.HasPrefix(c.Row, "Aggregate"); reads != (last != nil) {
			t.Errorf("%s/%s: read %v", c.Row, c.Column, last)
		}
	}
	if len(names) != 9*4 {
		t.Errorf("%d rows", len(names))
	}
}

// TestCallServerRefuses tests that the server notices a document that is not the one that the driver would write, and
// a call a document that is not the one that the server has.
func TestCallServerRefuses(t *testing.T) {
	uri, err := ServeCalls()
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer client.Disconnect(ctx)
	coll := client.Database(callDatabase).Collection("order")
	order := newPurchaseOf(callIDs(0, asBinary))
	if _, err := coll.InsertOne(ctx, order); err != nil {
		t.Fatal(err)
	}
	wrong := map[string]func(*purchaseOf[bson.Binary]){
		"value":         func(p *purchaseOf[bson.Binary]) { p.Version++ },
		"nested value":  func(p *purchaseOf[bson.Binary]) { p.Address.City = "" },
		"subtype":       func(p *purchaseOf[bson.Binary]) { p.Customer.Subtype = bson.TypeBinaryUUIDOld },
		"_id":           func(p *purchaseOf[bson.Binary]) { p.ID = asBinary(uuid.New()) },
		"missing field": func(p *purchaseOf[bson.Binary]) { p.Updated = nil },
	}
	for name, change := range wrong {
		changed := newPurchaseOf(callIDs(0, asBinary))
		change(&changed)
		if _, err := coll.InsertOne(ctx, changed); err == nil {
			t.Errorf("%s: no error of InsertOne", name)
		}
		if _, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: order.ID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "doc", Value: changed}}}}); err == nil {
			t.Errorf("%s: no error of UpdateOne", name)
		}
		if sameDocument(changed, encoded(order)) == nil {
			t.Errorf("%s: no error of reading", name)
		}
	}
	// An _id of version 5 in the database of autoid.
	if _, err := client.Database(autoidDatabase).Collection("order").InsertOne(ctx, order); err == nil {
		t.Error("no error of an _id of another version")
	}
}
