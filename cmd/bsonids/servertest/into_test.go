package servertest

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/uuidrep"
)

// index creates an index of a field, and indexed checks that the collection has it, beside that of _id.
func index(t testing.TB, coll *mongo.Collection, field string, opts *options.IndexOptionsBuilder) {
	t.Helper()
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: field, Value: -1}}, Options: opts.SetName("by " + field)}); err != nil {
		t.Fatal(err)
	}
}

func indexed(t testing.TB, coll *mongo.Collection, field string, unique bool) {
	t.Helper()
	specs, err := coll.Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Name != "by "+field || (specs[1].Unique != nil && *specs[1].Unique) != unique {
		t.Errorf("%+v, %v", specs, err)
	}
}

// _ids of several types, including UUIDs, are copied into a new collection with the indexes of the
// old one.
func TestInto(t *testing.T) {
	s, db := started(t)
	old, fresh := db.Collection("old"), db.Collection("old_standard")
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range 60 {
		u, v := uuid.New(), uuid.New()
		doc := func(r uuidrep.Representation) bson.D {
			id := []any{in(u, r), bson.D{{Key: "tenant", Value: in(u, r)}, {Key: "n", Value: int32(i)}}, int32(i), fmt.Sprint("text ", i)}[i%4]
			return bson.D{{Key: "_id", Value: id}, {Key: "ref", Value: in(v, r)}, {Key: "n", Value: int32(i)}}
		}
		docs = append(docs, doc(uuidrep.CSharpLegacy))
		note(want, doc(uuidrep.Standard))
	}
	insert(t, old, docs)
	index(t, old, "n", options.Index().SetUnique(true))
	before := all(t, old)
	dir, other := filepath.Dir(planned(t, s)), filepath.Dir(planned(t, s))
	command(t, s, "apply", dir).want(t, failure.ExitOK)
	if got := all(t, fresh); len(got) != 0 {
		t.Errorf("a dry run wrote %d documents", len(got))
	}
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	equal(t, all(t, fresh), want)
	equal(t, all(t, old), before)
	indexed(t, fresh, "n", true)
	command(t, s, "verify", dir).want(t, failure.ExitOK)

	// The proof finds a document that differs, a missing one and an extra one.
	if _, err := fresh.UpdateOne(t.Context(), bson.D{{Key: "n", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	deleted(t, fresh, bson.D{{Key: "n", Value: 4}})
	insert(t, fresh, []any{bson.D{{Key: "_id", Value: "more"}, {Key: "n", Value: 1000}}, bson.D{{Key: "_id", Value: "more2"}, {Key: "n", Value: 1001}}})
	command(t, s, "verify", dir, "--output", "json").want(t, failure.ExitIncomplete).
		prints(t, `"documentsWrong": 1,`, `"documentsMissing": 1,`, `"documentsExtra": 2,`)
	// A collection with documents cannot be the target.
	command(t, s, "apply", other, "--write").want(t, failure.ExitUsage).says(t, `"old_standard" has documents already`)
}

// If two documents would get the same _id, neither is lost, also if they have the same values. The copy is then not verified.
func TestIntoConflict(t *testing.T) {
	for _, second := range []string{"the same", "another"} {
		u := uuid.New()
		// FerretDB treats two _ids with the same bytes as equal, whatever their subtypes are, so the
		// orders differ.
		c := setting(t, []any{bson.D{{Key: "_id", Value: in(u, uuidrep.JavaLegacy)}, {Key: "v", Value: "the same"}},
			bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: second}}}, trusted("_id"), intoNew("c"))
		const finding = "two documents have the same _id after the conversion"
		c.run(failure.ExitIncomplete, "apply --write").prints(t, "not verified", finding)
		c.run(failure.ExitIncomplete, "verify").prints(t, "Not proven", finding)
		c.unchanged()
	}
}

// An index of the simple collation on a collection with another default is listed without a
// collation, and an index that is created without one gets the default. Old indexes have options,
// and values in their keys, that servers no longer accept.
func TestIndexSpecs(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy, intoNew("c"))
	collation := bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(2)}}
	listed := func(name string, key bson.D, more ...bson.E) bson.D {
		return append(bson.D{{Key: "v", Value: int32(1)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "ns", Value: "db.c"}}, more...)
	}
	number := bson.D{{Key: "n", Value: int32(1)}}
	var made bson.Raw
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "listCollections":
			name, _ := r.command.Lookup("filter", "name").StringValueOK()
			if name != "c" && name != "c_standard" {
				return pass()
			}
			return r.cursor("db.$cmd.listCollections", bson.D{{Key: "name", Value: name}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{{Key: "collation", Value: collation}}}})
		case "create":
			return r.ok()
		case "listIndexes":
			return r.cursor("db.c", listed("_id_", bson.D{{Key: "_id", Value: int32(1)}}), listed("simple", number), listed("same", number, bson.E{Key: "collation", Value: collation}),
				listed("odd", bson.D{{Key: "a", Value: true}, {Key: "b", Value: 0.0}, {Key: "c", Value: ""}, {Key: "d", Value: -1.0}, {Key: "e", Value: "hashed"}, {Key: "f", Value: int64(-2)}, {Key: "g", Value: bson.D{}}},
					bson.E{Key: "safe", Value: true}, bson.E{Key: "unique", Value: true}))
		case "createIndexes":
			made = r.command
			return r.ok()
		}
		return pass()
	})).ok("apply --write")
	c.converted()
	if ignore, _ := made.Lookup("ignoreUnknownIndexOptions").BooleanOK(); !ignore {
		t.Error("an unknown option of an index would be an error")
	}
	simple := bson.D{{Key: "locale", Value: "simple"}}
	for i, want := range []bson.D{
		{{Key: "key", Value: number}, {Key: "name", Value: "simple"}, {Key: "collation", Value: simple}},
		{{Key: "key", Value: number}, {Key: "name", Value: "same"}, {Key: "collation", Value: collation}},
		{{Key: "key", Value: bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: int32(1)}, {Key: "c", Value: int32(1)}, {Key: "d", Value: -1.0}, {Key: "e", Value: "hashed"}, {Key: "f", Value: int64(-2)}, {Key: "g", Value: int32(1)}}},
			{Key: "name", Value: "odd"}, {Key: "safe", Value: true}, {Key: "unique", Value: true}, {Key: "collation", Value: simple}},
	} {
		if got, want := made.Lookup("indexes", fmt.Sprint(i)).String(), marshal(t, want).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A collection that has documents is refused before the last batch of an earlier copy into it is waited
// for.
func TestIntoRefusedAtOnce(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy, intoNew("c"))
	other := prepared(t, c.s, intoNew("c"))
	c.through(startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if asks("insert", "c_standard")(r) {
			return nil // the answer is lost
		}
		return answer
	})).run(failure.ExitUnreachable, "apply --write --batch-timeout 15s")
	c.in(other).run(failure.ExitUsage, "apply --write --batch-timeout 15s").says(t, `"c_standard" has documents already`).lacks(t, "waiting for a batch")
}

// A copy that somebody has dropped is made again, with its indexes, and status and a dry run say that it is not done: after it was
// finished, and after a run that was stopped when it compared the copy.
func TestCopyDropped(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		c := newScene(t, 30, uuidrep.JavaLegacy, intoNew("c"))
		index(t, c.coll, "n", options.Index())
		if stopped {
			var made atomic.Bool
			c.through(lostAfter(t, c.s, 0, func(r request) bool {
				return r.name() == "createIndexes" && made.Swap(true) || made.Load() && asks("find", "c_standard")(r)
			})).run(failure.ExitUnreachable, "apply --write --batch-timeout 1s")
		} else {
			c.ok("apply --write --batch-timeout 1s")
		}
		drop(t, c.result)
		for _, args := range [][]string{c.args("status"), {"status", "--db", c.db.Name()}, c.args("apply")} {
			command(t, c.s, append(args, "--output", "json")...).want(t, failure.ExitOK).prints(t, `"status": "stopped"`).lacks(t, `"status": "done"`)
		}
		for range 2 { // the second finds that everything is done
			c.ok("apply --write --batch-timeout 1s")
			c.converted()
			indexed(t, c.result, "n", false)
		}
		c.ok("verify")
	}
}

// skippedIn checks how many documents with values that were left the last run has in the record.
func skippedIn(t *testing.T, db *mongo.Database, want int64) {
	t.Helper()
	var run record.Run
	err := db.Collection(record.Name).FindOne(t.Context(), bson.D{{Key: "collection", Value: "c"}, {Key: "kind", Value: record.Convert}},
		options.FindOne().SetSort(bson.D{{Key: "epoch", Value: -1}})).Decode(&run)
	if err != nil || run.Progress.Skipped != want {
		t.Errorf("%d documents are left, want %d, %v", run.Progress.Skipped, want, err)
	}
}

// strange returns a document with a value without variant and version, which is left.
func strange(i int) bson.D {
	return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: bson.Binary{Subtype: 3, Data: append(make([]byte, 15), byte(i))}}}
}

// cutDocs returns n documents of the tests of cutovers.
func cutDocs(n int) (docs []any) {
	for i := range n {
		docs = append(docs, cutDoc(i, 0))
	}
	return docs
}

// The record has the number of documents with values that a copy leaves as they are.
func TestCopySkipped(t *testing.T) {
	c := setting(t, append(cutDocs(20), strange(100), strange(101)), intoNew("c"))
	c.run(failure.ExitIncomplete, "apply --write")
	skippedIn(t, c.db, 2)
}

// While a conversion copies into a collection, no other one converts this collection or copies into
// it, and while a collection is converted, none copies into it. A run whose process has ended
// without recording it does not count.
func TestIntoLiveTarget(t *testing.T) {
	s, db := started(t)
	want := seed(t, db.Collection("a"), 12, uuidrep.JavaLegacy)
	seed(t, db.Collection("other"), 12, uuidrep.JavaLegacy)
	// apply returns the arguments that convert a field of a collection, or all, in place or into another one.
	apply := func(collection, field, into string, extra ...string) []string {
		dir := filepath.Dir(planned(t, s, "--collection", collection))
		changePlan(t, dir, convertFields("javaLegacy"), accepted, copiedInto(collection, into))
		if field != "" {
			changePlan(t, dir, convertFields("javaLegacy", field))
		}
		return applying(dir, extra...)
	}
	refused := func(why string, args []string) { command(t, s, args...).want(t, failure.ExitUsage).says(t, why) }
	p := justBefore(t, s, asks("insert", "b"), func() { refused("has not ended", apply("other", "", "b")) }) // b has no documents
	p = justAfter(t, p, asks("insert", "b"), func() {
		refused("has not ended", apply("b", "", ""))
		refused("has not ended", apply("b", "", "", "--take-over"))
		refused("has not ended", apply("b", "", "c"))
		refused("has documents already", apply("other", "", "b"))
	})
	command(t, p, apply("a", "id", "b")...).want(t, failure.ExitOK)

	p = justBefore(t, s, writesTo("a"), func() { refused("has documents already", apply("other", "", "a")) })
	command(t, p, apply("a", "", "")...).want(t, failure.ExitOK)

	// The record of a process that was killed.
	if _, err := db.Collection(record.Name).UpdateByID(t.Context(), "a/1", bson.D{{Key: "$unset", Value: bson.D{{Key: "ended", Value: true}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, apply("b", "", "")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("b")), want)
}

// A document that is deleted in the source during the copy is the only extra one, even if _ids hold
// values of both subtypes.
func TestExtraOfMixedIDs(t *testing.T) {
	var docs []any
	for i := range 4 {
		docs = append(docs, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: int32(i)}, {Key: "a", Value: in(v4(i), uuidrep.Standard)}, {Key: "b", Value: in(v4(i), uuidrep.JavaLegacy)}}}})
	}
	c := setting(t, docs, trusted("_id.b"), intoNew("c"))
	c.ok("apply --write")
	deleted(t, c.coll, docs[0].(bson.D))
	c.run(failure.ExitIncomplete, "verify --output json").prints(t, `"documentsProven": 3`, `"documentsExtra": 1`)
}
