package servertest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A collection is converted by the decisions of its plan, and what other programs write later stays.
func TestConvert(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 60, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, db.Collection("c"))
	dir := prepared(t, s, "standard", convertFields("csharpLegacy", ""))
	apply := append([]string{"apply", dir}, gentle...)

	// A wrong order is noticed.
	if r := command(t, s, append(apply, "--write")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "the values are not csharpLegacy but javaLegacy") {
		t.Error(r.stderr)
	}

	// One field only, without a write.
	changePlan(t, dir, convertFields("javaLegacy", "", "items.sku"))
	if r := command(t, s, append(apply, "--output", "json")...).want(t, failure.ExitOK); !strings.Contains(r.stdout, `"values": 60`) {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("c")), before)

	changePlan(t, dir, convertFields("javaLegacy", ""))
	command(t, s, append(apply, "--write")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), want)
	command(t, s, "verify", dir).want(t, failure.ExitOK)

	// Another program changes a converted value. The proof reports it, and undo leaves it as it is.
	later := in(uuid.New(), uuidrep.Standard)
	if _, err := db.Collection("c").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 7}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: later}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "verify", dir, "--allow-changed").want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--batch", "10").want(t, failure.ExitIncomplete)
	for range 2 {
		if r := command(t, s, "undo", dir, "--write", "--batch", "10").want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "changed since") {
			t.Error(r.stdout)
		}
	}
	got := all(t, db.Collection("c"))
	if b := got[`{"$numberInt":"7"}`].Lookup("id"); b.String() != marshalValue(t, later).String() {
		t.Errorf("undo overwrote %v", b)
	}
	delete(got, `{"$numberInt":"7"}`)
	delete(before, `{"$numberInt":"7"}`)
	equal(t, got, before)
}

// Another program replaces the document that a value is in by an array. A query still finds the
// value, but the update fails, because an array has no named fields. The value is converted at its
// new position.
func TestDocumentBecomesArray(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	c := db.Collection("c")
	u := uuid.New()
	insert(t, c, []any{bson.D{{Key: "_id", Value: 1}, {Key: "d", Value: bson.D{{Key: "b", Value: in(u, uuidrep.JavaLegacy)}}}}})
	first := true
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() != "update" || !first || r.documents != 1 {
			return pass()
		}
		if _, err := r.command.LookupErr("ordered"); err != nil || r.command.Lookup("ordered").Boolean() { // not the batch
			return pass()
		}
		first = false
		if _, err := c.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "d", Value: bson.A{bson.D{{Key: "b", Value: in(u, uuidrep.JavaLegacy)}}}}}}}); err != nil {
			t.Error(err)
		}
		return r.refuse(28, "Cannot create field 'b' in element {d: [ { b: … } ]}")
	})
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("d.b"))
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
	for _, doc := range all(t, c) {
		if subtype, data := doc.Lookup("d", "0", "b").Binary(); subtype != 4 || [16]byte(data) != u {
			t.Errorf("%v", doc)
		}
	}
}

// A router of MongoDB before 6.0 sends an update by _id to all shards, and also counts the updates
// of orphaned documents. The count may be as high as requested although another program had changed
// a document first and it was not found.
func TestOrphansAreCounted(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	u, v := uuid.New(), uuid.New()
	c := db.Collection("c")
	insert(t, c, []any{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}})
	first := true
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch {
		case strings.EqualFold(r.name(), "hello"), strings.EqualFold(r.name(), "isMaster"):
			return r.reply(bson.D{{Key: "ismaster", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "maxBsonObjectSize", Value: int32(16 << 20)}, {Key: "maxMessageSizeBytes", Value: int32(48_000_000)},
				{Key: "maxWriteBatchSize", Value: int32(100_000)}, {Key: "minWireVersion", Value: int32(0)}, {Key: "maxWireVersion", Value: int32(13)}, {Key: "ok", Value: 1.0}})
		case r.name() == "update" && r.documents == 2 && first:
			first = false
			if _, err := c.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: in(v, uuidrep.JavaLegacy)}}}}); err != nil {
				t.Error(err)
			}
			pass()
			return r.reply(bson.D{{Key: "n", Value: int32(2)}, {Key: "nModified", Value: int32(2)}, {Key: "ok", Value: 1.0}})
		}
		return pass()
	})
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("a"))
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
	for _, doc := range all(t, c) {
		want := u
		if doc.Lookup("_id").Int32() == 1 {
			want = v
		}
		if subtype, data := doc.Lookup("a").Binary(); subtype != 4 || [16]byte(data) != want {
			t.Errorf("%v, want %v", doc, want)
		}
	}
}

// If the count of the server is not the number of updates, undo reads the documents to tell what it
// restored: a router counts orphaned documents, and another program may have changed a document
// first.
func TestUndoCounts(t *testing.T) {
	for more, want := range map[int32]map[string]int{
		1:  {"documentsRestored": 8, "changedSince": 0, "documentsGone": 0},
		-2: {"documentsRestored": 7, "changedSince": 1, "documentsGone": 1},
	} {
		s := mongotest.Start(t)
		db := connect(t, s)
		c := db.Collection("c")
		seed(t, c, 8, uuidrep.JavaLegacy, uuidrep.Standard)
		dir := filepath.Dir(planned(t, s))
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() != "update" {
				return pass()
			}
			if more < 0 {
				if _, err := c.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 0}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: "new"}}}}); err != nil {
					t.Error(err)
				}
				if _, err := c.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
					t.Error(err)
				}
			}
			pass()
			n := int32(r.documents) + more
			return r.reply(bson.D{{Key: "n", Value: n}, {Key: "nModified", Value: n}, {Key: "ok", Value: 1.0}})
		})
		code := failure.ExitOK
		if more < 0 {
			code = failure.ExitIncomplete
		}
		r := command(t, p, "undo", dir, "--write", "--output", "json").want(t, code)
		var got struct {
			Steps []struct{ Result map[string]any }
		}
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatal(err)
		}
		for key, n := range want {
			if got.Steps[0].Result[key] != float64(n) {
				t.Errorf("%d: %s: %v, want %d", more, key, got.Steps[0].Result[key], n)
			}
		}
	}
}
