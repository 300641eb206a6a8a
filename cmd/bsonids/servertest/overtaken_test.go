package servertest

import (
	"bytes"
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// only returns the only document of a collection, or nil if there is none.
func only(t testing.TB, coll *mongo.Collection) bson.Raw {
	t.Helper()
	doc, err := coll.FindOne(context.Background(), bson.D{}).Raw()
	if err != nil && err != mongo.ErrNoDocuments {
		t.Error(err)
	}
	return doc
}

// Another program changes a document after it is read and before it is updated. The change is never
// overwritten.
func TestOvertaken(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		c := conversion(t, "javaLegacy", to)
		old := kindstest.Value("javaLegacy")
		fresh := bson.Binary{Subtype: 3, Data: append(bytes.Repeat([]byte{7}, 15), 8)}
		set := func(path string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}} }
		for name, tt := range map[string]struct {
			update bson.D // nil: deleted
			// the values of a and the array l after the conversion
			a, l any
			skip bool // with the same subtype, the order of what the other program wrote is unknown
			old  bool // it may be a value of the old kind
		}{
			"another field":               {set("other", 1), kindstest.Value(to), bson.A{kindstest.Value(to), "x"}, false, false},
			"a new value in the old kind": {set("a", fresh), nil, nil, true, true},
			"a new value of another type": {set("a", "text"), "text", nil, true, false},
			"converted already":           {set("a", kindstest.Value(to)), kindstest.Value(to), nil, true, false},
			"an array with the old value": {set("a", bson.A{old, 1}), nil, nil, true, true},
			"a field removed":             {bson.D{{Key: "$unset", Value: bson.D{{Key: "a", Value: ""}}}}, nil, nil, true, false},
			"an array replaced":           {set("l", bson.A{"new", old}), nil, nil, true, true},
			"deleted":                     {},
		} {
			t.Run(to+"/"+name, func(t *testing.T) {
				s := mongotest.Start(t)
				coll := connect(t, s).Collection("c")
				doc := func(v bson.Binary) bson.Raw {
					return marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: v}, {Key: "l", Value: bson.A{v, "x"}}})
				}
				before, converted := doc(old), doc(kindstest.Value(to))
				insert(t, coll, []any{before})
				var between bson.Raw
				res := convertBetween(t, s, coll, c, func() {
					var err error
					if tt.update == nil {
						_, err = coll.DeleteOne(t.Context(), bson.D{})
					} else {
						_, err = coll.UpdateOne(t.Context(), bson.D{}, tt.update)
					}
					if err != nil {
						t.Error(err)
					}
					between = only(t, coll)
				})
				after := only(t, coll)
				switch {
				case tt.update == nil:
					if after != nil || res.Overtaken != 1 {
						t.Errorf("a deleted document is back: %v, %+v", after, res)
					}
					return
				case c.SameSubtype() && tt.skip:
					// What the other program wrote is as it left it, and is reported if it may be of the old kind. The value that it did
					// not change is converted.
					var want bson.D
					if err := bson.Unmarshal(between, &want); err != nil {
						t.Fatal(err)
					}
					for i, e := range want {
						if between.Lookup(e.Key).Equal(before.Lookup(e.Key)) && e.Key != "_id" {
							want[i].Value = converted.Lookup(e.Key)
						}
					}
					if !bytes.Equal(after, marshal(t, want)) || (res.Skipped == 1) != tt.old {
						t.Errorf("got %v, want %v; %+v", after, want, res)
					}
					return
				}
				// The document is the conversion of what the other program wrote.
				if want, _, _, err := c.Rewrite(between, nil); err != nil || !bytes.Equal(after, want) {
					t.Errorf("got %v, want %v, %v", after, want, err)
				}
				for key, v := range map[string]any{"a": tt.a, "l": tt.l} {
					if v != nil && !after.Lookup(key).Equal(marshalValue(t, v)) {
						t.Errorf("%s is %v, want %v", key, after.Lookup(key), v)
					}
				}
			})
		}
	}
}

// Another program moves a value to a position that no update can reach. The document is reported as
// if it had been read so, even if another of its values can be converted. What was reported when it
// was first read is not reported again.
func TestOvertakenOutOfReach(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	old := kindstest.Value("javaLegacy")
	nameless := bson.D{{Key: "", Value: old}}
	for name, tt := range map[string]struct{ before, after bson.D }{
		"alone":         {bson.D{{Key: "a", Value: old}}, bson.D{{Key: "a", Value: nameless}}},
		"beside others": {bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}}, bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}}},
		"from the first": {bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: old}},
			bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			coll := connect(t, s).Collection("c")
			id := bson.D{{Key: "_id", Value: 1}}
			insert(t, coll, []any{append(id, tt.before...)})
			res := convertBetween(t, s, coll, c, func() {
				if _, err := coll.ReplaceOne(t.Context(), bson.D{}, append(id, tt.after...)); err != nil {
					t.Error(err)
				}
			})
			if res.Skipped != 1 {
				t.Errorf("%d skips: %v", res.Skipped, res.Skips)
			}
			doc := only(t, coll)
			if got := doc.Lookup("b").Equal(marshalValue(t, kindstest.Value("standard"))); got != (name != "alone") {
				t.Errorf("got %v", doc)
			}
		})
	}
}

// convertBetween converts coll in place. It calls do after a document was read and before the
// server gets the update.
func convertBetween(t *testing.T, s target, coll *mongo.Collection, c rule.Conversion, do func()) (res convert.Result) {
	t.Helper()
	p := justBefore(t, s, func(r request) bool { return r.name() == "update" }, do)
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	newFiles(t, c).with(t, func(state *convert.StateFile, u *convert.UndoLog) {
		res = inPlace(t, client.Database(coll.Database().Name()).Collection(coll.Name()), c, state, u)
	})
	return res
}

// inPlace converts a collection with its files.
func inPlace(t *testing.T, coll *mongo.Collection, c rule.Conversion, s *convert.StateFile, u *convert.UndoLog) convert.Result {
	t.Helper()
	res, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Workers: 1, State: s, Undo: u})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
