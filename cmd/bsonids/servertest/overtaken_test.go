package servertest

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// Another program changes a document after it is read and before it is updated. The change is never
// overwritten.
func TestOvertaken(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		c := conversion(t, "javaLegacy", to)
		old := kindstest.Value("javaLegacy")
		fresh := bson.Binary{Subtype: 3, Data: bytes.Repeat([]byte{7}, 15)}
		fresh.Data = append(fresh.Data, 8)
		set := func(path string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}} }
		for name, tt := range map[string]struct {
			update bson.D // nil: deleted
			// the values of a and the array l after the conversion
			a, l any
			skip bool // with the same subtype, the order of what the other program wrote is unknown
		}{
			"another field":               {set("other", 1), kindstest.Value(to), bson.A{kindstest.Value(to), "x"}, false},
			"a new value in the old kind": {set("a", fresh), nil, nil, true},
			"a new value of another type": {set("a", "text"), "text", nil, true},
			"converted already":           {set("a", kindstest.Value(to)), kindstest.Value(to), nil, true},
			"an array with the old value": {set("a", bson.A{old, 1}), nil, nil, true},
			"a field removed":             {bson.D{{Key: "$unset", Value: bson.D{{Key: "a", Value: ""}}}}, nil, nil, true},
			"an array replaced":           {set("l", bson.A{"new", old}), nil, nil, true},
			"deleted":                     {},
		} {
			t.Run(to+"/"+name, func(t *testing.T) {
				s := mongotest.Start(t)
				coll := connect(t, s).Collection("c")
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "l", Value: bson.A{old, "x"}}}); err != nil {
					t.Fatal(err)
				}
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
					if between, err = coll.FindOne(t.Context(), bson.D{}).Raw(); err != nil && tt.update != nil {
						t.Error(err)
					}
				})
				after, err := coll.FindOne(t.Context(), bson.D{}).Raw()
				if tt.update == nil {
					if err == nil || res.Overtaken != 1 {
						t.Errorf("a deleted document is back: %v, %+v", after, res)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if c.SameSubtype() && tt.skip {
					// The document is as the other program left it, and is reported.
					if !bytes.Equal(after, between) || res.Skipped != 1 {
						t.Errorf("got %v, want %v; %+v", after, between, res)
					}
					return
				}
				// The document is the conversion of what the other program wrote.
				want, _, _, err := c.Rewrite(between, nil)
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

// Another program moves a value to a position that no update can reach. The document is reported as
// if it had been read so, even if another of its values can be converted. What was reported when it
// was first read is not reported again.
func TestOvertakenOutOfReach(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	old := kindstest.Value("javaLegacy")
	nameless := bson.D{{Key: "", Value: old}}
	for name, tt := range map[string]struct {
		before, after bson.D
		converted     bool // whether b is converted
		skips         int64
	}{
		"alone":         {bson.D{{Key: "a", Value: old}}, bson.D{{Key: "a", Value: nameless}}, false, 1},
		"beside others": {bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}}, bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}}, true, 1},
		"from the first": {bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: old}},
			bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: 1}}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			coll := connect(t, s).Collection("c")
			id := bson.D{{Key: "_id", Value: 1}}
			if _, err := coll.InsertOne(t.Context(), append(id, tt.before...)); err != nil {
				t.Fatal(err)
			}
			res := convertBetween(t, s, coll, c, func() {
				if _, err := coll.ReplaceOne(t.Context(), bson.D{}, append(id, tt.after...)); err != nil {
					t.Error(err)
				}
			})
			if res.Skipped != tt.skips {
				t.Errorf("%d skips, want %d: %v", res.Skipped, tt.skips, res.Skips)
			}
			doc, err := coll.FindOne(t.Context(), bson.D{}).Raw()
			if err != nil {
				t.Fatal(err)
			}
			if got := doc.Lookup("b").Equal(marshal(t, bson.D{{Key: "v", Value: kindstest.Value("standard")}}).Lookup("v")); got != tt.converted {
				t.Errorf("got %v", doc)
			}
		})
	}
}

// convertBetween converts coll in place. It calls do after a document was read and before the
// server gets the update.
func convertBetween(t *testing.T, s target, coll *mongo.Collection, c rule.Conversion, do func()) convert.Result {
	t.Helper()
	var once sync.Once
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" {
			once.Do(do)
		}
		return pass()
	})
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	var res convert.Result
	newFiles(t, c).with(t, func(state *convert.StateFile, u *convert.UndoLog) {
		res, err = convert.InPlace(t.Context(), client.Database(coll.Database().Name()).Collection(coll.Name()),
			convert.Options{Conversion: c, Write: true, Workers: 1, State: state, Undo: u})
	})
	if err != nil {
		t.Fatal(err)
	}
	return res
}
