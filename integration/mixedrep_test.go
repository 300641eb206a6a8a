package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// mixedData stores the same documents twice: in one representation, and with each value in a random
// representation.
func mixedData(t *testing.T, s *server, r *rand.Rand, us []uuid.UUID) (uniform *mongo.Collection, mixed *mixedrep.Collection) {
	t.Helper()
	ctx := context30(t)
	binary := func(u uuid.UUID, rep uuidrep.Representation) bson.Binary {
		b, err := uuidrep.NewBinaryWithRepresentation(u, rep)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	either := func(u uuid.UUID) bson.Binary {
		if r.IntN(2) == 0 {
			return binary(u, uuidrep.JavaLegacy)
		}
		return binary(u, uuidrep.Standard)
	}
	standard := func(u uuid.UUID) bson.Binary { return binary(u, uuidrep.Standard) }

	var uniformDocs, mixedDocs []any
	for id := range 120 {
		draw := func() uuid.UUID { return us[r.IntN(len(us))] }
		v, w, x, y := draw(), draw(), draw(), draw()
		shape := r.IntN(5)
		doc := func(as func(uuid.UUID) bson.Binary) bson.D {
			d := bson.D{{Key: "_id", Value: id}, {Key: "b", Value: as(w)}}
			switch shape {
			case 0:
				return append(d, bson.E{Key: "a", Value: as(v)})
			case 1:
				return append(d, bson.E{Key: "a", Value: bson.A{as(v), as(x), 1}})
			case 2:
				return append(d, bson.E{Key: "a", Value: nil}, bson.E{Key: "c", Value: bson.D{{Key: "u", Value: as(v)}}})
			case 3:
				return append(d, bson.E{Key: "l", Value: bson.A{
					bson.D{{Key: "u", Value: as(v)}, {Key: "n", Value: id % 3}}, bson.D{{Key: "u", Value: as(y)}, {Key: "n", Value: 1}}}})
			default:
				return d
			}
		}
		uniformDocs = append(uniformDocs, doc(standard))
		mixedDocs = append(mixedDocs, doc(either))
	}
	uniform = s.collection(uuidrep.Standard, "uniform")
	mixed, err := mixedrep.Wrap(s.plain("mixed"), uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := uniform.InsertMany(ctx, uniformDocs); err != nil {
		t.Fatal(err)
	}
	if _, err := mixed.InsertMany(ctx, mixedDocs); err != nil {
		t.Fatal(err)
	}
	return uniform, mixed
}

// randomFilter returns a filter on the fields of mixedData.
func randomFilter(r *rand.Rand, us []uuid.UUID, depth int) bson.D {
	u := func() uuid.UUID { return us[r.IntN(len(us))] }
	condition := func() any {
		switch r.IntN(10) {
		case 0:
			return bson.D{{Key: "$eq", Value: u()}}
		case 1:
			return bson.D{{Key: "$ne", Value: u()}}
		case 2:
			return bson.D{{Key: "$in", Value: bson.A{u(), 1, u()}}}
		case 3:
			return bson.D{{Key: "$nin", Value: []uuid.UUID{u(), u()}}}
		case 4:
			return bson.D{{Key: "$not", Value: bson.D{{Key: "$in", Value: bson.A{u()}}}}}
		case 5:
			return bson.D{{Key: "$exists", Value: true}, {Key: "$ne", Value: u()}}
		case 6:
			return bson.D{{Key: "$all", Value: bson.A{u()}}}
		case 7:
			return bson.D{{Key: "$elemMatch", Value: bson.D{{Key: "$eq", Value: u()}}}}
		default:
			return u()
		}
	}
	if depth > 0 && r.IntN(3) == 0 {
		op := []string{"$and", "$or", "$nor"}[r.IntN(3)]
		return bson.D{{Key: op, Value: bson.A{randomFilter(r, us, depth-1), randomFilter(r, us, depth-1)}}}
	}
	if r.IntN(6) == 0 {
		return bson.D{{Key: "l", Value: bson.D{{Key: "$elemMatch", Value: bson.D{
			{Key: "u", Value: u()}, {Key: "n", Value: r.IntN(3)}}}}}}
	}
	field := []string{"a", "b", "c.u", "l.u", "l.0.u"}[r.IntN(5)]
	d := bson.D{{Key: field, Value: condition()}}
	if field != "b" && r.IntN(3) == 0 {
		d = append(d, bson.E{Key: "b", Value: condition()})
	}
	return d
}

type finder interface {
	Find(context.Context, any, ...options.Lister[options.FindOptions]) (*mongo.Cursor, error)
}

// ids returns the ids of the documents that a filter finds. It returns false if the server does not
// support $elemMatch with fields, as FerretDB does not.
func ids(ctx context.Context, t *testing.T, in finder, filter any) ([]int32, bool) {
	t.Helper()
	var docs []struct {
		ID int32 `bson:"_id"`
	}
	cursor, err := in.Find(ctx, filter, options.Find().SetProjection(bson.D{{Key: "_id", Value: 1}}))
	if err == nil {
		err = cursor.All(ctx, &docs) // FerretDB may refuse a filter in a later batch
	}
	var refused mongo.CommandError
	if errors.As(err, &refused) && refused.Message == "unknown operator: u" {
		return nil, false
	}
	if err != nil {
		t.Fatalf("%v: %v", filter, err)
	}
	found := make([]int32, len(docs))
	for i, d := range docs {
		found[i] = d.ID
	}
	slices.Sort(found)
	return found, true
}

// TestMixedFilters tests that every filter finds the same documents in a collection of two
// representations as in a collection of one.
func TestMixedFilters(t *testing.T) {
	s := newServer(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	us := make([]uuid.UUID, 8)
	for i := range us {
		us[i] = uuid.New()
	}
	uniform, mixed := mixedData(t, s, r, us)
	ctx := t.Context()
	n, hits, refused := 120, 0, 0
	if testing.Short() {
		n = 40
	}
	for range n {
		filter := randomFilter(r, us, 2)
		want, ok := ids(ctx, t, uniform, filter)
		got, mixedOK := ids(ctx, t, mixed, filter)
		if ok != mixedOK {
			t.Fatalf("%v is refused on one of the collections alone", filter)
		}
		if !ok {
			refused++
			continue
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v found %v, want %v", filter, got, want)
		}
		if len(want) > 0 && len(want) < 120 {
			hits++
		}
	}
	if hits < n/4 {
		t.Errorf("only %d of %d filters found some documents and not all", hits, n)
	}
	if refused > 0 {
		t.Logf("the server does not know %d of %d filters", refused, n)
	}
}

// TestMixedMethods tests that each method that takes a filter finds a document that is stored in
// the other representation.
func TestMixedMethods(t *testing.T) {
	s := newServer(t)
	ctx := context30(t)
	c, err := mixedrep.Wrap(s.plain("items"), uuidrep.Standard, uuidrep.CSharpLegacy)
	if err != nil {
		t.Fatal(err)
	}
	csharp := s.collection(uuidrep.CSharpLegacy, "items")
	filter := bson.D{{Key: "u", Value: testUUID}}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "seen", Value: true}}}}
	for name, f := range map[string]func() error{
		"FindOne":           func() error { return c.FindOne(ctx, filter).Err() },
		"FindOneAndDelete":  func() error { return c.FindOneAndDelete(ctx, filter).Err() },
		"FindOneAndReplace": func() error { return c.FindOneAndReplace(ctx, filter, bson.D{}).Err() },
		"FindOneAndUpdate":  func() error { return c.FindOneAndUpdate(ctx, filter, set).Err() },
		"CountDocuments": func() error {
			n, err := c.CountDocuments(ctx, filter)
			return one(n, err)
		},
		"Distinct": func() error {
			var us []uuid.UUID
			// FerretDB refuses a distinct with a deadline.
			err := c.Distinct(t.Context(), "u", filter).Decode(&us)
			return one(int64(len(us)), err)
		},
		"DeleteOne": func() error {
			res, err := c.DeleteOne(ctx, filter)
			if err != nil {
				return err
			}
			return one(res.DeletedCount, nil)
		},
		"DeleteMany": func() error {
			res, err := c.DeleteMany(ctx, filter)
			if err != nil {
				return err
			}
			return one(res.DeletedCount, nil)
		},
		"UpdateOne": func() error {
			res, err := c.UpdateOne(ctx, filter, set)
			if err != nil {
				return err
			}
			return one(res.MatchedCount, nil)
		},
		"UpdateMany": func() error {
			res, err := c.UpdateMany(ctx, filter, set)
			if err != nil {
				return err
			}
			return one(res.MatchedCount, nil)
		},
		"UpdateByID": func() error {
			id := uuid.New()
			if _, err := csharp.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
				return err
			}
			res, err := c.UpdateByID(ctx, id, set)
			if err != nil {
				return err
			}
			return one(res.MatchedCount, nil)
		},
		"ReplaceOne": func() error {
			res, err := c.ReplaceOne(ctx, filter, bson.D{})
			if err != nil {
				return err
			}
			return one(res.MatchedCount, nil)
		},
		"Aggregate": func() error {
			cursor, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: filter}}})
			if err != nil {
				return err
			}
			var docs []bson.M
			err = cursor.All(ctx, &docs)
			return one(int64(len(docs)), err)
		},
		"BulkWrite": func() error {
			models := []mongo.WriteModel{
				mongo.NewUpdateOneModel().SetFilter(filter).SetUpdate(set),
				mongo.NewUpdateManyModel().SetFilter(filter).SetUpdate(set),
				mongo.NewReplaceOneModel().SetFilter(filter).SetReplacement(bson.D{{Key: "u", Value: testUUID}}),
				mongo.NewDeleteOneModel().SetFilter(filter),
				mongo.NewDeleteManyModel().SetFilter(filter),
			}
			res, err := c.BulkWrite(ctx, models)
			if err != nil {
				return err
			}
			if res.MatchedCount != 3 {
				return fmt.Errorf("%d updates and replacements matched, want 3", res.MatchedCount)
			}
			return one(res.DeletedCount, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := csharp.DeleteMany(ctx, bson.D{}); err != nil {
				t.Fatal(err)
			}
			if _, err := csharp.InsertOne(ctx, bson.D{{Key: "u", Value: testUUID}}); err != nil {
				t.Fatal(err)
			}
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
}

func one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("%d documents, want 1", n)
	}
	return err
}

// TestMatchedUpsert tests what the documentation says about an $in in the filter of an upsert.
func TestMatchedUpsert(t *testing.T) {
	s := newServer(t)
	ctx := context30(t)
	filter, err := mixedrep.Match("_id", testUUID, uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.plain("items").UpdateOne(ctx, filter,
		bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := res.UpsertedID.(bson.ObjectID); !ok {
		t.Errorf("the upserted id is %v, want an ObjectID", res.UpsertedID)
	}
}
