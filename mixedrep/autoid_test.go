package mixedrep_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestAutoIDOfMixedCollection tests that an autoid.Collection of the embedded collection, which would
// match one representation, is an error of every method that has a filter or a document, without a
// server.
func TestAutoIDOfMixedCollection(t *testing.T) {
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://nowhere.invalid").SetServerSelectionTimeout(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	mixed, err := mixedrep.Wrap(client.Database("db").Collection("c"), uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	src := autoid.SourceFunc(func() (any, error) { return uuid.New(), nil })
	set := bson.M{"$set": bson.M{"a": 1}}
	for _, coll := range []*autoid.Collection{autoid.Wrap(mixed.Collection, src), autoid.Wrap(mixed.Collection, src).Clone(), autoid.Wrap(mixed.Clone().Collection, src)} {
		for _, filter := range []any{bson.M{"u": uuid.New()}, bson.D{{Key: "u", Value: uuid.New()}}, struct{ U uuid.UUID }{uuid.New()}, &bson.D{}, bson.Raw("\x05\x00\x00\x00\x00")} {
			for name, do := range map[string]func() error{
				"Find":              func() error { _, err := coll.Find(ctx, filter); return err },
				"FindOne":           func() error { return coll.FindOne(ctx, filter).Err() },
				"FindOneAndDelete":  func() error { return coll.FindOneAndDelete(ctx, filter).Err() },
				"FindOneAndUpdate":  func() error { return coll.FindOneAndUpdate(ctx, filter, set).Err() },
				"FindOneAndReplace": func() error { return coll.FindOneAndReplace(ctx, filter, bson.M{}).Err() },
				"CountDocuments":    func() error { _, err := coll.CountDocuments(ctx, filter); return err },
				"Distinct":          func() error { return coll.Distinct(ctx, "a", filter).Err() },
				"DeleteOne":         func() error { _, err := coll.DeleteOne(ctx, filter); return err },
				"DeleteMany":        func() error { _, err := coll.DeleteMany(ctx, filter); return err },
				"UpdateOne":         func() error { _, err := coll.UpdateOne(ctx, filter, set); return err },
				"UpdateByID":        func() error { _, err := coll.UpdateByID(ctx, uuid.New(), set); return err },
				"UpdateMany":        func() error { _, err := coll.UpdateMany(ctx, filter, set); return err },
				"ReplaceOne":        func() error { _, err := coll.ReplaceOne(ctx, filter, bson.M{}); return err },
				"upsert": func() error {
					_, err := coll.UpdateOne(ctx, filter, set, options.UpdateOne().SetUpsert(true))
					return err
				},
				"Aggregate":  func() error { _, err := coll.Aggregate(ctx, bson.A{bson.M{"$match": filter}}); return err },
				"Watch":      func() error { _, err := coll.Watch(ctx, bson.A{bson.M{"$match": filter}}); return err },
				"InsertOne":  func() error { _, err := coll.InsertOne(ctx, bson.M{}); return err },
				"InsertMany": func() error { _, err := coll.InsertMany(ctx, []bson.M{{}}); return err },
				"BulkWrite": func() error {
					_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteOneModel().SetFilter(filter)})
					return err
				},
				"ClientWrites": func() error {
					_, err := coll.ClientWrites(mongo.NewClientDeleteOneModel().SetFilter(filter))
					return err
				},
			} {
				if err := do(); err == nil || !strings.Contains(err.Error(), "autoid.Document") {
					t.Errorf("%s by %T: got %v", name, filter, err)
				}
			}
		}
	}

	// The way out, which gets as far as a server.
	_, err = mixed.InsertOne(ctx, autoid.Document(src, bson.M{"a": 1}))
	var failed *autoid.IDError
	if err == nil || errors.As(err, &failed) || errors.Is(err, autoid.ErrNotRegistered) || !strings.Contains(err.Error(), "server selection") {
		t.Errorf("got %v", err)
	}
}
