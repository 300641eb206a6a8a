package servertest

import (
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// If documents are deleted in the source during the copy, they are deleted in the copy, too, and
// the copy is verified. What another program wrote to the copy is kept.
func TestIntoFollowsDeletions(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		c := newScene(t, 30, uuidrep.JavaLegacy, intoNew("c"))
		code, text := failure.ExitOK, "done"
		if foreign {
			code, text = failure.ExitIncomplete, "another program wrote it to the copy"
		}
		p := justAfter(t, c.s, asks("insert", "c_standard"), func() {
			deleted(t, c.coll, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{3, 17}}}}})
			if foreign {
				insert(t, c.result, []any{bson.D{{Key: "_id", Value: "foreign"}}})
				note(c.want, bson.D{{Key: "_id", Value: "foreign"}})
			}
		})
		c.through(p).run(code, "apply --write").prints(t, text)
		for _, id := range []string{"3", "17"} {
			delete(c.want, `{"$numberInt":"`+id+`"}`)
		}
		equal(t, all(t, c.result), c.want)
	}
}

// copyOf is a scene of documents that are copied for the sake of another one, which it returns as it is converted.
func copyOf(t *testing.T, docs ...any) (c *scene, carrier bson.D) {
	u := uuid.New()
	c = setting(t, append(docs, bson.D{{Key: "_id", Value: "carrier"}, {Key: "u", Value: in(u, uuidrep.JavaLegacy)}}), trusted("u"), intoNew("c"))
	return c, bson.D{{Key: "_id", Value: "carrier"}, {Key: "u", Value: in(u, uuidrep.Standard)}}
}

// copied checks that the copy has all documents of the source as they are now, and the carrier as it is converted.
func (c *scene) copied(carrier bson.D) {
	c.Helper()
	want := all(c, c.coll)
	note(want, carrier)
	equal(c, all(c, c.result), want)
}

// seats are two documents with values of a unique index.
func seats(t *testing.T) (c *scene, carrier bson.D) {
	c, carrier = copyOf(t, bson.D{{Key: "_id", Value: 1}, {Key: "seat", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "seat", Value: "b"}})
	index(t, c.coll, "seat", options.Index().SetUnique(true))
	return c, carrier
}

// A unique value moves from one document to another during the copy, so that both copies hold it.
// They are brought up to date before the unique index is given up.
func TestUniqueValuePassesOn(t *testing.T) {
	c, carrier := seats(t)
	var refused atomic.Int32
	var created, changed atomic.Bool
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		switch {
		case asks("create", "c_standard")(r):
			created.Store(true)
		case r.name() == "find":
			if _, err := r.command.LookupErr("filter", "_id", "$gt"); err == nil && created.Load() && !changed.Swap(true) { // after the first document
				set(t, c.coll, 1, "seat", "c")
				set(t, c.coll, 2, "seat", "a")
			}
		case r.name() == "createIndexes":
			n, err := c.result.CountDocuments(t.Context(), bson.D{{Key: "seat", Value: "a"}})
			if err != nil {
				t.Error(err)
			}
			if n > 1 {
				refused.Add(1)
				return r.fail(11000, "E11000 duplicate key error collection: db.new index: seat_1 dup key")
			}
		}
		return pass()
	})).ok("apply --write --batch 1")
	if n := refused.Load(); n != 1 {
		t.Errorf("the index was refused %d times", n)
	}
	c.copied(carrier)
	indexed(t, c.result, "seat", true)
}

// The value moves after the unique index was created. The copy that needs a value of another copy
// is replaced after that copy. If each of two copies waits for the other, both are written anew.
func TestUniqueValueIsAwaited(t *testing.T) {
	for _, swap := range []bool{false, true} {
		c, carrier := seats(t)
		var updates atomic.Int32
		c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			switch {
			case asks("createIndexes", "c_standard")(r):
				answer := pass()
				set(t, c.coll, 2, "seat", "c")
				set(t, c.coll, 1, "seat", "b")
				if swap {
					set(t, c.coll, 2, "seat", "a")
				}
				return answer
			case asks("update", "c_standard")(r) && swap:
				return r.refuse(11000, "E11000 duplicate key error")
			case asks("update", "c_standard")(r) && updates.Add(1) == 1: // FerretDB refuses the whole command instead of its first update
				set(t, c.result, 2, "seat", "c")
				return r.ok(bson.E{Key: "n", Value: int32(1)}, bson.E{Key: "nModified", Value: int32(1)}, bson.E{Key: "writeErrors", Value: bson.A{
					bson.D{{Key: "index", Value: int32(0)}, {Key: "code", Value: int32(11000)}, {Key: "errmsg", Value: "E11000 duplicate key error"}}}})
			}
			return pass()
		})).ok("apply --write")
		c.copied(carrier)
	}
}

// If a killed run copied a document and the source changed since, the copy is brought up to date.
// It is then not a conflict.
func TestNoConflictOfStaleCopy(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy, intoNew("c"))
	p := justBefore(t, c.s, asks("insert", "c_standard"), func() {
		insert(t, c.result, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(7)}}})
	})
	c.through(p).run(failure.ExitOK, "apply --write").lacks(t, "another document")
	c.converted()
}

// A server fills in an empty timestamp at the top level of a document that is inserted or replaced, unless it is asked not to and
// knows that. Then such documents are copied as they are, also if they are replaced later. Otherwise, they can never be equal to
// their source: they are refused by their _id, and not because the source keeps changing, and other changes are copied. The proxy
// plays a server that fills in whatever it was not asked to leave.
func TestEmptyTimestamp(t *testing.T) {
	for _, server := range []string{"knows", "refuses", "ignores"} {
		at := func(n int) bson.D {
			return bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{}}, {Key: "n", Value: n}}}}
		}
		c, carrier := copyOf(t)
		for i := range 5 {
			insert(t, c.coll, []any{bson.D{{Key: "_id", Value: i}, {Key: "at", Value: bson.Timestamp{T: 7}}}})
			if i%2 == 1 {
				if _, err := c.coll.UpdateByID(t.Context(), i, at(1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var changed atomic.Bool
		var asked atomic.Int32
		p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			if !asks("insert", "c_standard")(r) && !asks("update", "c_standard")(r) {
				return pass()
			}
			var answer []byte
			switch exact, _ := r.command.Lookup("bypassEmptyTsReplacement").BooleanOK(); {
			case exact && server == "refuses":
				answer = r.fail(40415, "BSON field 'bypassEmptyTsReplacement' is an unknown field.")
			case exact && server == "knows":
				asked.Add(1)
				if w, _ := r.command.Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
					t.Errorf("the write concern is %q", w)
				}
				answer = exactly(c, r)
			default:
				answer = pass()
				if _, err := c.result.UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}},
					bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{T: 1_800_000_000, I: 1}}}}}); err != nil {
					t.Error(err)
				}
			}
			if !changed.Swap(true) {
				if _, err := c.coll.UpdateByID(t.Context(), 1, at(2)); err != nil {
					t.Error(err)
				}
			}
			return answer
		})
		if server == "knows" {
			c.through(p).run(failure.ExitOK, "apply --write").lacks(t, "empty timestamp")
			c.copied(carrier)
			if asked.Load() == 0 {
				t.Error("the server was not asked")
			}
			continue
		}
		c.through(p).run(failure.ExitIncomplete, "apply --write").prints(t, "empty timestamp").lacks(t, "changed during each")
		if n, err := c.result.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 2}}); err != nil || n != 1 {
			t.Errorf("%s: %d, %v", server, n, err)
		}
	}
}

// exactly carries out an insert or an update with updates of the server, which fill in nothing.
func exactly(c *scene, r request) []byte {
	field := map[string]string{"insert": "documents", "update": "updates"}[r.name()]
	writes, err := r.command.Lookup(field).Array().Values()
	if err != nil {
		c.Error(err)
	}
	for _, w := range writes {
		doc := w.Document()
		if r.name() == "update" {
			doc = doc.Lookup("u").Document()
		}
		var fields bson.D
		err := bson.Unmarshal(doc, &fields)
		if err == nil {
			_, err = c.result.UpdateOne(c.Context(), fields[:1], bson.D{{Key: "$set", Value: fields[1:]}}, options.UpdateOne().SetUpsert(true))
		}
		if err != nil {
			c.Error(err)
		}
	}
	return r.ok(bson.E{Key: "n", Value: int32(len(writes))})
}
