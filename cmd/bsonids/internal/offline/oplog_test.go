package offline

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// The operations of mongodump --oplog hold the values that the restored collections must have. The
// forms of updates are those of the server: a replacement, $set (version 1), and a description of the
// difference (version 2). The UUID of a collection, ui, stays as it is.
func TestOplog(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var ids [][16]byte
	for i := range 40 {
		ids = append(ids, v4(r, i))
	}
	make := func(kind string) []dumptest.Collection {
		var docs []any
		for i, u := range ids {
			docs = append(docs, bson.D{{Key: "_id", Value: stored(u, kind)}, {Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: stored(ids[39-i], kind)}}}},
				{Key: "by", Value: bson.D{{Key: "65", Value: stored(u, kind)}}}})
		}
		u, old := stored(ids[3], kind), stored(ids[4], "javaLegacy")
		ui := bson.Binary{Subtype: 4, Data: ids[5][:]}
		op := func(op, ns string, o, o2 any) bson.D {
			d := bson.D{{Key: "ts", Value: bson.Timestamp{T: 1, I: 1}}, {Key: "op", Value: op}, {Key: "ns", Value: ns}, {Key: "ui", Value: ui}, {Key: "o", Value: o}}
			if o2 != nil {
				d = append(d, bson.E{Key: "o2", Value: o2})
			}
			return d
		}
		id := bson.D{{Key: "_id", Value: u}}
		oplog := []any{
			op("n", "", bson.D{{Key: "msg", Value: old}}, nil),
			op("i", "d.c", docs[0], nil),
			op("d", "d.c", id, nil),
			op("u", "d.c", docs[1], id),
			op("u", "d.c", bson.D{{Key: "$v", Value: int32(1)}, {Key: "$set", Value: bson.D{{Key: "items.0.sku", Value: u}, {Key: "by.65", Value: u}}}}, id),
			op("u", "d.c", bson.D{{Key: "$v", Value: int32(2)}, {Key: "diff", Value: bson.D{
				{Key: "d", Value: bson.D{{Key: "gone", Value: false}}},
				{Key: "u", Value: bson.D{{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: u}}}}}},
				{Key: "i", Value: bson.D{{Key: "by", Value: bson.D{{Key: "65", Value: u}}}}},
				{Key: "sitems", Value: bson.D{{Key: "a", Value: true}, {Key: "l", Value: int32(3)}, {Key: "u1", Value: bson.D{{Key: "sku", Value: u}}},
					{Key: "s0", Value: bson.D{{Key: "u", Value: bson.D{{Key: "sku", Value: u}}}}}}},
			}}}, id),
			op("i", "d.system.js", bson.D{{Key: "_id", Value: old}}, nil),
			op("c", "admin.$cmd", bson.D{{Key: "applyOps", Value: bson.A{op("i", "d.c", docs[2], nil), op("d", "d.c", id, nil)}}}, nil),
		}
		return []dumptest.Collection{{Database: "d", Name: "c", Metadata: `{}`, Documents: docs}, {Database: "", Name: "oplog", Documents: oplog}}
	}
	before, after := make("javaLegacy"), make("standard")
	for form, path := range forms(t, before) {
		out := filepath.Join(t.TempDir(), "out"+filepath.Ext(path))
		res, err := Convert(t.Context(), job(t, open(t, path), out, conversion(t, "javaLegacy", "standard"), Selection{}))
		if err != nil || !res.Complete() {
			t.Fatalf("%s: %v, %+v", form, err, res.Collections[1])
		}
		got := contents(t, out)
		if want := string(dumptest.BSON(t, after[1].Documents...)); got["oplog"] != want {
			t.Errorf("%s: the operations are not those of the converted collection", form)
		}
		if want := string(dumptest.BSON(t, after[0].Documents...)); got["d.c"] != want {
			t.Errorf("%s: wrong documents", form)
		}
		v, err := Verify(t.Context(), job(t, open(t, path), "", conversion(t, "javaLegacy", "standard"), Selection{}), open(t, out))
		if err != nil || !v.Holds() {
			t.Errorf("%s: %v, %+v", form, err, v)
		}
	}
}

// What the operations do not tell apart, and fields without a decision, are left and counted.
func TestOplogLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var docs []any
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: stored(v4(r, i), "javaLegacy")}})
	}
	u := stored(v4(r, 1), "javaLegacy")
	entry := func(op string, o any) any {
		return bson.D{{Key: "op", Value: op}, {Key: "ns", Value: "d.c"}, {Key: "o", Value: o}}
	}
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "c", Documents: docs}, dumptest.Collection{Name: "oplog", Documents: []any{
		entry("i", bson.D{{Key: "later", Value: u}}),
		entry("u", bson.D{{Key: "$max", Value: bson.D{{Key: "_id", Value: u}}}}),
		entry("c", bson.D{{Key: "create", Value: "x"}, {Key: "validator", Value: bson.D{{Key: "u", Value: u}}}}),
	}})
	res, err := Convert(t.Context(), job(t, open(t, path), "", conversion(t, "javaLegacy", "standard"), Selection{}))
	if err != nil || res.Left != 3 || res.Values != 40 {
		t.Errorf("%v, %+v", err, res)
	}
}
