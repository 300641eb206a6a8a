package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestAutoIDUpserts upserts with every method and every form of an update, first without a document
// that matches and then onto the document that the first one made.
func TestAutoIDUpserts(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	type user struct {
		ID   uuid.UUID `bson:"_id,omitempty"`
		Name string    `bson:"name"`
		N    int       `bson:"n"`
		Made string    `bson:"made,omitempty"`
	}
	plain, _ := autoIDCollection(t, uuidrep.JavaLegacy)
	users := autoid.Wrap(plain, uuidgen.DefaultV7())
	type method func(filter, update any) error
	methods := map[string]method{
		"UpdateOne": func(f, u any) error {
			_, err := users.UpdateOne(ctx, f, u, options.UpdateOne().SetUpsert(true))
			return err
		},
		"UpdateMany": func(f, u any) error {
			_, err := users.UpdateMany(ctx, f, u, options.UpdateMany().SetUpsert(true))
			return err
		},
		"FindOneAndUpdate": func(f, u any) error {
			err := users.FindOneAndUpdate(ctx, f, u, options.FindOneAndUpdate().SetUpsert(true)).Err()
			if errors.Is(err, mongo.ErrNoDocuments) {
				return nil
			}
			return err
		},
		"UpdateOneModel": func(f, u any) error {
			_, err := users.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(f).SetUpdate(u).SetUpsert(true)})
			return err
		},
		"UpdateManyModel": func(f, u any) error {
			_, err := users.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateManyModel().SetFilter(f).SetUpdate(u).SetUpsert(true)})
			return err
		},
		"ClientUpdateOneModel": func(f, u any) error {
			writes, err := users.ClientWrites(mongo.NewClientUpdateOneModel().SetFilter(f).SetUpdate(u).SetUpsert(true))
			if err != nil {
				return err
			}
			_, err = plain.Database().Client().BulkWrite(ctx, writes)
			return err
		},
	}
	raw := func(v any) bson.Raw {
		b, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	set := func(n int) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: n}}}} }
	for name, do := range methods {
		for form, update := range map[string]func(n int) any{
			"D":     func(n int) any { return set(n) },
			"M":     func(n int) any { return bson.M{"$set": bson.M{"n": n}} },
			"Raw":   func(n int) any { return raw(set(n)) },
			"bytes": func(n int) any { return []byte(raw(set(n))) },
			"struct": func(n int) any {
				return struct {
					Set struct{ N int } `bson:"$set"`
				}{struct{ N int }{n}}
			},
			"$setOnInsert": func(n int) any {
				return append(set(n), bson.E{Key: "$setOnInsert", Value: bson.M{"made": "now"}})
			},
		} {
			who := name + ", " + form
			filter := bson.M{"name": who}
			if err := do(filter, update(1)); err != nil {
				if mongotest.Lacks(err) {
					t.Logf("%s: the server has no client-level bulk write", who)
					break
				}
				t.Fatalf("%s: %v", who, err)
			}
			var first, second user
			if err := plain.FindOne(ctx, filter).Decode(&first); err != nil {
				t.Fatalf("%s: %v", who, err)
			}
			if first.ID.Version() != 7 || first.N != 1 || form == "$setOnInsert" && first.Made != "now" {
				t.Errorf("%s: upserted %+v", who, first)
			}
			if err := do(filter, update(2)); err != nil {
				t.Fatalf("%s, onto a document: %v", who, err)
			}
			if err := do(bson.M{"_id": first.ID}, update(3)); err != nil {
				t.Fatalf("%s, onto a document by _id: %v", who, err)
			}
			if err := plain.FindOne(ctx, filter).Decode(&second); err != nil {
				t.Fatal(err)
			}
			if n, err := plain.CountDocuments(ctx, filter); err != nil || n != 1 || second.ID != first.ID || second.N != 3 || second.Made != first.Made {
				t.Errorf("%s: %d documents, %v; %+v after %+v", who, n, err, second, first)
			}
			other := uuid.New()
			if err := do(bson.M{"_id": other}, update(4)); err != nil {
				t.Fatalf("%s, by a new _id: %v", who, err)
			}
			var byID user
			if err := plain.FindOne(ctx, bson.M{"_id": other}).Decode(&byID); err != nil || byID.N != 4 {
				t.Errorf("%s: by a new _id: %+v, %v", who, byID, err)
			}
		}
	}

	// The native id of the result is the one that is stored.
	res, err := users.UpdateOne(ctx, bson.M{"name": "Ada"}, set(1), options.UpdateOne().SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
	var ada user
	if err := plain.FindOne(ctx, bson.M{"_id": res.UpsertedID}).Decode(&ada); err != nil || ada.Name != "Ada" {
		t.Errorf("%+v, %v", ada, err)
	}

	// Replacements keep the _id of the document that they replace, and get none.
	replace := func(coll *autoid.Collection, filter, replacement any) error {
		_, err := coll.ReplaceOne(ctx, filter, replacement, options.Replace().SetUpsert(true))
		return err
	}
	if err := replace(users, bson.M{"name": "Ada"}, user{Name: "Ada", N: 5}); !errors.Is(err, autoid.ErrUpsert) {
		t.Errorf("got %v", err)
	}
	if err := replace(users, bson.M{"_id": ada.ID}, bson.M{"name": "Ada", "n": 5}); err != nil {
		t.Error(err)
	}
	if err := replace(users, bson.M{"name": "Bob"}, user{ID: uuid.New(), Name: "Bob"}); err != nil {
		t.Error(err)
	}
	type item struct {
		ID   bson.ObjectID `bson:"_id"`
		Name string        `bson:"name"`
		N    int           `bson:"n"`
	}
	items := autoid.Wrap(plain.Database().Collection("items"), objectidgen.Default())
	var first, second item
	for n, target := range []*item{&first, &second} {
		if err := replace(items, bson.M{"name": "A-100"}, item{Name: "A-100", N: n}); err != nil {
			t.Fatal(err)
		}
		if err := items.FindOne(ctx, bson.M{"name": "A-100"}).Decode(target); err != nil || target.N != n || target.ID.IsZero() {
			t.Errorf("%+v, %v", target, err)
		}
	}
	if first.ID != second.ID {
		t.Errorf("%+v was replaced by %+v", first, second)
	}
	err = items.FindOneAndReplace(ctx, bson.M{"name": "B-205"}, item{Name: "B-205"},
		options.FindOneAndReplace().SetUpsert(true).SetReturnDocument(options.After)).Decode(&first)
	if err != nil || first.ID.IsZero() || first.Name != "B-205" {
		t.Errorf("%+v, %v", first, err)
	}
}

// TestAutoIDUpsertFilters upserts by filters with conditions on the _id. Whatever the server takes from a filter, the _id that
// is stored is a UUID, or the upsert is an error.
func TestAutoIDUpsertFilters(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	plain, _ := autoIDCollection(t, uuidrep.Standard)
	users := autoid.Wrap(plain, uuidgen.DefaultV7())
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	u, v := uuid.New(), uuid.New()
	takes := func(filter bson.D) bool {
		if _, err := plain.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
		if _, err := plain.UpdateOne(ctx, filter, d("$set", d("a", 1)), options.UpdateOne().SetUpsert(true)); err != nil {
			t.Fatal(err)
		}
		return plain.FindOne(ctx, d("_id", u)).Err() == nil
	}
	for _, c := range []struct {
		filter bson.D
		given  bool
	}{
		{d("_id", u), true},
		{d("_id", d("$eq", u)), true},
		{d("_id", d("$in", bson.A{u})), true},
		{d("_id", d("$all", bson.A{u})), true},
		{d("$and", bson.A{d("_id", u), d("n", 7)}), true},
		{d("$or", bson.A{d("_id", u)}), true},
		{d("_id", d("$ne", u)), false},
		{d("_id", d("$nin", bson.A{u})), false},
		{d("_id", d("$in", bson.A{u, v})), false},
		{d("_id", d("$in", bson.A{})), false},
		{d("_id", d("$gt", u)), false},
		{d("_id", bson.D{{Key: "$gt", Value: u}, {Key: "$lt", Value: v}}), false},
		{d("_id", d("$exists", false)), false},
		{d("_id", d("$type", "string")), false},
		{d("_id", d("$not", d("$eq", u))), false},
		{d("_id", bson.Regex{Pattern: "x"}), false},
		{d("$or", bson.A{d("_id", u), d("_id", v)}), false},
		{d("$or", bson.A{d("_id", u), d("_id", u)}), false},
		{d("$or", bson.A{d("_id", u), d("name", "Ada")}), false},
		{d("$or", bson.A{d("_id", d("$gt", u)), d("name", "Ada")}), false},
		{d("$nor", bson.A{d("_id", u)}), false},
		{d("$nor", bson.A{d("_id", d("$ne", u))}), false},
		{d("$and", bson.A{d("_id", d("$ne", u)), d("name", "Ada")}), false},
		{bson.D{{Key: "_id", Value: u}, {Key: "name", Value: d("$in", bson.A{})}}, false},
	} {
		if c.given && !takes(c.filter) {
			t.Logf("%v: MongoDB takes the _id from it, this server does not", c.filter)
			continue
		}
		if _, err := plain.DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
		_, err := users.UpdateOne(ctx, c.filter, d("$set", d("a", 1)), options.UpdateOne().SetUpsert(true))
		if err != nil && !c.given {
			t.Logf("%v: %v", c.filter, err)
			if n, err := plain.CountDocuments(ctx, bson.D{}); err != nil || n != 0 {
				t.Errorf("%v: %d documents, %v", c.filter, n, err)
			}
			continue
		}
		var user struct {
			ID uuid.UUID `bson:"_id"`
		}
		if err != nil {
			t.Errorf("%v: %v", c.filter, err)
		} else if err := plain.FindOne(ctx, bson.D{}).Decode(&user); err != nil || (user.ID == u) != c.given {
			t.Errorf("%v: got %v, %v", c.filter, user.ID, err)
		}
	}
}
