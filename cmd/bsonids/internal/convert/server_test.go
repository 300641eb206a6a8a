package convert

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/mongotest"
)

func TestMain(m *testing.M) { mongotest.Main(m) }

func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	s := mongotest.Start(t)
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(s.Database()).Collection("c")
}

// Between the moment at which a document is read and the update, another program does something to it. What it did is
// never overwritten.
func TestOvertaken(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		c := conversion(t, "javaLegacy", to)
		old := value(t, "javaLegacy")
		fresh := bson.Binary{Subtype: 3, Data: bytes.Repeat([]byte{7}, 15)}
		fresh.Data = append(fresh.Data, 8)
		set := func(path string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}} }
		for name, tt := range map[string]struct {
			update bson.D // nil: deleted
			// what the document must be after the conversion: a, and the array l
			a, l any
			skip bool // with the same subtype, what the other program wrote cannot be known
		}{
			"another field":               {set("other", 1), value(t, to), bson.A{value(t, to), "x"}, false},
			"a new value in the old kind": {set("a", fresh), nil, nil, true},
			"a new value of another type": {set("a", "text"), "text", nil, true},
			"converted already":           {set("a", value(t, to)), value(t, to), nil, true},
			"an array with the old value": {set("a", bson.A{old, 1}), nil, nil, true},
			"a field removed":             {bson.D{{Key: "$unset", Value: bson.D{{Key: "a", Value: ""}}}}, nil, nil, true},
			"an array replaced":           {set("l", bson.A{"new", old}), nil, nil, true},
			"deleted":                     {},
		} {
			t.Run(to+"/"+name, func(t *testing.T) {
				coll := collection(t)
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "l", Value: bson.A{old, "x"}}}); err != nil {
					t.Fatal(err)
				}
				read, err := coll.FindOne(t.Context(), bson.D{}).Raw()
				if err != nil {
					t.Fatal(err)
				}
				p, err := c.Plan(read)
				if err != nil {
					t.Fatal(err)
				}
				if tt.update == nil {
					_, err = coll.DeleteOne(t.Context(), bson.D{})
				} else {
					_, err = coll.UpdateOne(t.Context(), bson.D{}, tt.update)
				}
				if err != nil {
					t.Fatal(err)
				}
				between, err := coll.FindOne(t.Context(), bson.D{}).Raw()
				if err != nil && tt.update != nil {
					t.Fatal(err)
				}

				r := &runner{Options: Options{Conversion: c, Write: true}, coll: coll, tracker: newTracker(),
					result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
				if err := r.write(t.Context(), 0, []Plan{p}); err != nil {
					t.Fatal(err)
				}
				after, err := coll.FindOne(t.Context(), bson.D{}).Raw()
				if tt.update == nil {
					if err == nil || r.result.Overtaken != 1 {
						t.Errorf("a deleted document is back: %v, %+v", after, r.result)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if c.SameSubtype() && tt.skip {
					// Left exactly as the other program left it, and reported.
					if !bytes.Equal(after, between) || r.result.Skipped != 1 {
						t.Errorf("got %v, want %v; %+v", after, between, r.result)
					}
					return
				}
				// Exactly what converting the other program's document gives.
				want, _, err := c.Rewrite(between, nil)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(after, want) {
					t.Errorf("got %v, want %v", after, want)
				}
				for key, v := range map[string]any{"a": tt.a, "l": tt.l} {
					if v != nil && !after.Lookup(key).Equal(marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v")) {
						t.Errorf("%s is %v, want %v", key, after.Lookup(key), v)
					}
				}
			})
		}
	}
}

// Another program moves a value to where no update reaches it. The document is reported as one that was read so, also where
// another value of it can be converted; what was reported when it was first read isn't reported again.
func TestOvertakenOutOfReach(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	old := value(t, "javaLegacy")
	nameless := bson.D{{Key: "", Value: old}}
	for name, tt := range map[string]struct {
		before, after bson.D
		converted     bool // what stands in b
		skips         int64
	}{
		"alone":         {bson.D{{Key: "a", Value: old}}, bson.D{{Key: "a", Value: nameless}}, false, 1},
		"beside others": {bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}}, bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}}, true, 1},
		"from the first": {bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: old}},
			bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: 1}}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			coll := collection(t)
			id := bson.D{{Key: "_id", Value: 1}}
			p, err := c.Plan(marshal(t, append(id, tt.before...)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := coll.InsertOne(t.Context(), append(id, tt.after...)); err != nil {
				t.Fatal(err)
			}
			r := &runner{Options: Options{Conversion: c, Write: true}, coll: coll, tracker: newTracker(),
				result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
			if err := r.write(t.Context(), 0, []Plan{p}); err != nil {
				t.Fatal(err)
			}
			if r.result.Skipped != tt.skips {
				t.Errorf("%d skips, want %d: %v", r.result.Skipped, tt.skips, r.result.Skips)
			}
			doc, err := coll.FindOne(t.Context(), bson.D{}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			if got := doc.Lookup("b").Equal(marshal(t, bson.D{{Key: "v", Value: value(t, "standard")}}).Lookup("v")); got != tt.converted {
				t.Errorf("got %v", doc)
			}
		})
	}
}

// Paging meets every document once, whatever the types of _id are, and wherever it begins again.
func TestPages(t *testing.T) {
	coll := collection(t)
	var docs []any
	for i := range 10 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i * 10)}}, bson.D{{Key: "_id", Value: float64(i) + .5}}, bson.D{{Key: "_id", Value: int64(1)<<40 + int64(i)}},
			bson.D{{Key: "_id", Value: string(rune('a' + i))}}, bson.D{{Key: "_id", Value: bson.D{{Key: "k", Value: int32(i)}}}},
			bson.D{{Key: "_id", Value: bson.Binary{Subtype: byte(3 + i%2), Data: bytes.Repeat([]byte{byte(i)}, 16)}}},
			bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "_id", Value: bson.DateTime(5000 + i)}})
	}
	docs = append(docs, bson.D{{Key: "_id", Value: nil}}, bson.D{{Key: "_id", Value: true}}, bson.D{{Key: "_id", Value: false}})
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1, 7, 1000} {
		seen := make(map[string]bool)
		p := &pages{coll: coll, size: size}
		for {
			page, err := p.next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, doc := range page {
				k := key(doc.Lookup("_id"))
				if seen[k] {
					t.Fatalf("size %d: %v twice", size, doc)
				}
				seen[k] = true
			}
			// Begin again from here, as another process would.
			p = &pages{coll: coll, size: size, after: p.after}
		}
		if len(seen) != len(docs) {
			t.Errorf("size %d: %d of %d documents", size, len(seen), len(docs))
		}
	}
}

// A unique index that forbids the converted value leaves the document as it is, and is reported.
func TestRefused(t *testing.T) {
	coll := collection(t)
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "u", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	docs := []any{bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: value(t, "javaLegacy")}}, bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: value(t, "standard")}}}
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	res, err := InPlace(t.Context(), coll, Options{Conversion: conversion(t, "javaLegacy", "standard"), Write: true, Workers: 1, Batch: 10})
	var ce mongo.CommandError
	if errors.As(err, &ce) && ce.Code == 1 {
		mongotest.Skip(t, "FerretDB answers an update that a unique index forbids with an internal error")
	}
	if err != nil || res.Skipped != 1 || res.Documents != 0 || len(res.Skips) != 1 || res.Skips[0].ID.Int32() != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// The same subtype before and after: without a record of what is done nothing may be written.
func TestNeedsRecord(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "csharpLegacy")
	s, err := OpenState(filepath.Join(t.TempDir(), "s"), Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, o := range []Options{{Conversion: c, Write: true}, {Conversion: c, Write: true, State: s}} {
		if _, err := InPlace(t.Context(), coll, o); err == nil {
			t.Error("written without a record")
		}
	}
}
