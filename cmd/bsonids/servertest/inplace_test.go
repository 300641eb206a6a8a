package servertest

import (
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Another program replaces the document that a value is in by an array. A query still finds the
// value, but the update fails, because an array has no named fields. The value is converted at its
// new position.
func TestDocumentBecomesArray(t *testing.T) {
	u := uuid.New()
	b := bson.D{{Key: "b", Value: in(u, uuidrep.JavaLegacy)}}
	c := setting(t, []any{bson.D{{Key: "_id", Value: 1}, {Key: "d", Value: b}}}, trusted("d.b"))
	var changed atomic.Bool
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		if !writesTo("c")(r) || changed.Swap(true) {
			return pass()
		}
		set(t, c.coll, 1, "d", bson.A{b})
		return r.refuse(28, "Cannot create field 'b' in element {d: [ { b: … } ]}")
	})).ok("apply --write")
	for _, doc := range all(t, c.coll) {
		if subtype, data := doc.Lookup("d", "0", "b").Binary(); subtype != 4 || [16]byte(data) != u {
			t.Errorf("%v", doc)
		}
	}
}

// A router of MongoDB before 6.0 sends an update by _id to all shards, and also counts the updates
// of orphaned documents. The count may be as high as requested although another program had changed
// a document first and it was not found.
func TestOrphansAreCounted(t *testing.T) {
	u, v := uuid.New(), uuid.New()
	c := setting(t, []any{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}}, trusted("a"))
	var changed atomic.Bool
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		switch {
		case r.greets():
			return r.router(13)
		case writesTo("c")(r) && r.documents == 2 && !changed.Swap(true):
			set(t, c.coll, 1, "a", in(v, uuidrep.JavaLegacy))
			pass()
			return r.ok(bson.E{Key: "n", Value: int32(2)}, bson.E{Key: "nModified", Value: int32(2)})
		}
		return pass()
	})).ok("apply --write")
	for id, want := range map[string]uuid.UUID{"1": v, "2": u} {
		if subtype, data := all(t, c.coll)[`{"$numberInt":"`+id+`"}`].Lookup("a").Binary(); subtype != 4 || [16]byte(data) != want {
			t.Errorf("%s is %x of subtype %d, want %v", id, data, subtype, want)
		}
	}
}

// If the count of the server is not the number of updates, undo reads the documents to tell what it
// restored: a router counts orphaned documents, and another program may have changed a document
// first.
func TestUndoCounts(t *testing.T) {
	for _, tt := range []struct {
		more int32 // than there are updates
		code int
		want []string
	}{
		{1, failure.ExitOK, []string{`"documentsRestored": 12,`, `"changedSince": 0,`, `"documentsGone": 0,`}},
		{-2, failure.ExitIncomplete, []string{`"documentsRestored": 11,`, `"changedSince": 1,`, `"documentsGone": 1,`}},
	} {
		c := newScene(t, 12, uuidrep.JavaLegacy)
		c.ok("apply --write")
		c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			if r.name() != "update" {
				return pass()
			}
			if tt.more < 0 {
				set(t, c.coll, 0, "id", "new")
				deleted(t, c.coll, bson.D{{Key: "_id", Value: 1}})
			}
			pass()
			n := int32(r.documents) + tt.more
			return r.ok(bson.E{Key: "n", Value: n}, bson.E{Key: "nModified", Value: n})
		})).run(tt.code, "undo --write --output json").prints(t, tt.want...)
	}
}

// The filter of a page is a single comparison: for $or, a server finds no bounds for the scan of a
// clustered collection, and would read it from its beginning for each page.
func TestPagesOfClusteredCollection(t *testing.T) {
	old := in(uuid.New(), uuidrep.JavaLegacy)
	docs := []any{bson.D{{Key: "_id", Value: "text"}, {Key: "a", Value: old}}, bson.D{{Key: "_id", Value: true}, {Key: "a", Value: old}}}
	for i := range 2100 { // a page has 1000 documents
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}})
	}
	c := setting(t, docs, trusted("a"))
	var behind, types, other atomic.Int32
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		if _, err := r.command.LookupErr("sort", "_id"); r.name() != "find" || err != nil {
			return pass()
		}
		elements, err := r.command.Lookup("filter").Document().Elements()
		if err != nil {
			t.Error(err)
		}
		if len(elements) == 0 {
			return pass()
		}
		condition, ok := elements[0].Value().DocumentOK()
		_, err = condition.LookupErr("$gt")
		switch {
		case !ok || len(elements) > 1 || elements[0].Key() != "_id":
			other.Add(1)
		case err == nil:
			behind.Add(1)
		default:
			types.Add(1)
		}
		return pass()
	})).ok("apply --write --batch 10")
	// The pages begin after 999, 1999, "text" and true. Those for other types begin after the last
	// number, and after the last of these values. There are two passes.
	if b, ty, o := behind.Load(), types.Load(), other.Load(); o > 0 || b < 2 || b > 8 || ty < 1 || ty > 6 {
		t.Errorf("%d queries behind an _id, %d for types, %d others", b, ty, o)
	}
}

// The default batch is 1,000 documents, and FerretDB 1 stops responding when more than a hundred
// updates are in progress.
func TestUpdatesUnderWay(t *testing.T) {
	c := newScene(t, 130, uuidrep.JavaLegacy)
	if server.WriteLimit(t.Context(), c.db.Client()) == 0 {
		mongotest.Skip(t, "the command limits updates on FerretDB 1 only")
	}
	var under atomic.Int32
	p := c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" {
			n := int32(r.documents)
			if under.Add(n) > 100 {
				t.Error("more than 100 updates are under way")
			}
			defer under.Add(-n)
		}
		return pass()
	}))
	p.ok("apply --write --workers 8")
	c.converted()
	p.ok("undo --write")
	c.unchanged()
}
