package servertest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// _ids of several types, including UUIDs, are copied into a new collection with the indexes of the
// old one.
func TestInto(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old := db.Collection("old")
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range 60 {
		u, v := uuid.New(), uuid.New()
		doc := func(r uuidrep.Representation) bson.D {
			var id any = in(u, r)
			switch i % 4 {
			case 1:
				id = bson.D{{Key: "tenant", Value: in(u, r)}, {Key: "n", Value: int32(i)}}
			case 2:
				id = int32(i)
			case 3:
				id = fmt.Sprint("text ", i)
			}
			return bson.D{{Key: "_id", Value: id}, {Key: "ref", Value: in(v, r)}, {Key: "n", Value: int32(i)}}
		}
		docs = append(docs, doc(uuidrep.CSharpLegacy))
		raw, err := bson.Marshal(doc(uuidrep.Standard))
		if err != nil {
			t.Fatal(err)
		}
		want[bson.Raw(raw).Lookup("_id").String()] = raw
	}
	insert(t, old, docs)
	if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: -1}}, Options: options.Index().SetUnique(true).SetName("by_n")}); err != nil {
		t.Fatal(err)
	}
	before := all(t, old)
	dir, other := filepath.Dir(planned(t, s)), filepath.Dir(planned(t, s))
	apply := append([]string{"apply", dir}, gentle...)
	command(t, s, apply...).want(t, failure.ExitOK)
	if got := all(t, db.Collection("old_standard")); len(got) != 0 {
		t.Errorf("a dry run wrote %d documents", len(got))
	}
	command(t, s, append(apply, "--write")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("old_standard")), want)
	equal(t, all(t, old), before)
	specs, err := db.Collection("old_standard").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Name != "by_n" || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v, %v", specs, err)
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK)

	// The proof finds a document that differs, a missing one and an extra one.
	if _, err := db.Collection("old_standard").UpdateOne(t.Context(), bson.D{{Key: "n", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("old_standard").DeleteOne(t.Context(), bson.D{{Key: "n", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	insert(t, db.Collection("old_standard"), []any{bson.D{{Key: "_id", Value: "more"}, {Key: "n", Value: 1000}}, bson.D{{Key: "_id", Value: "more2"}, {Key: "n", Value: 1001}}})
	r := command(t, s, "verify", dir, "--output", "json").want(t, failure.ExitIncomplete)
	var v struct {
		Steps []struct {
			Result struct{ DocumentsWrong, DocumentsMissing, DocumentsExtra int }
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.Steps[0].Result.DocumentsWrong != 1 || v.Steps[0].Result.DocumentsMissing != 1 || v.Steps[0].Result.DocumentsExtra != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	// A collection with documents cannot be the target.
	if r := command(t, s, "apply", other, "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, `"old_standard" has documents already`) {
		t.Error(r.stderr)
	}
}

// If two documents would get the same _id, neither is lost, and the command says so.
func TestIntoConflict(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	u := uuid.New()
	// FerretDB treats two _ids with the same bytes as equal, whatever their subtypes are, so the
	// orders differ.
	insert(t, db.Collection("old"), []any{
		bson.D{{Key: "_id", Value: in(u, uuidrep.JavaLegacy)}, {Key: "n", Value: 1}},
		bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "n", Value: 2}},
	})
	before := all(t, db.Collection("old"))
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("_id"), intoNew("old"))
	if r := command(t, s, append([]string{"apply", dir, "--write"}, gentle...)...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "not verified") || !strings.Contains(r.stdout, "two documents have the same _id") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("old")), before)
}

// An index of the simple collation on a collection with another default is listed without a
// collation, and an index that is created without one gets the default. Old indexes have options,
// and values in their keys, that servers no longer accept.
func TestIndexSpecs(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("old"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	collation := bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(2)}}
	listed := func(name string, key bson.D, more ...bson.E) bson.D {
		return append(bson.D{{Key: "v", Value: int32(1)}, {Key: "key", Value: key}, {Key: "name", Value: name}, {Key: "ns", Value: "db.old"}}, more...)
	}
	number := bson.D{{Key: "n", Value: int32(1)}}
	dir := prepared(t, s, "standard", intoNew("old"))
	var made bson.Raw
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "listCollections":
			name, _ := r.command.Lookup("filter", "name").StringValueOK()
			if name != "old" && name != "old_standard" {
				return pass()
			}
			return r.cursor("db.$cmd.listCollections", bson.D{{Key: "name", Value: name}, {Key: "type", Value: "collection"}, {Key: "options", Value: bson.D{{Key: "collation", Value: collation}}}})
		case "create":
			return r.reply(bson.D{{Key: "ok", Value: 1.0}})
		case "listIndexes":
			return r.cursor("db.old", listed("_id_", bson.D{{Key: "_id", Value: int32(1)}}), listed("simple", number), listed("same", number, bson.E{Key: "collation", Value: collation}),
				listed("odd", bson.D{{Key: "a", Value: true}, {Key: "b", Value: 0.0}, {Key: "c", Value: ""}, {Key: "d", Value: -1.0}, {Key: "e", Value: "hashed"}, {Key: "f", Value: int64(-2)}, {Key: "g", Value: bson.D{}}},
					bson.E{Key: "safe", Value: true}, bson.E{Key: "unique", Value: true}))
		case "createIndexes":
			made = r.command
			return r.reply(bson.D{{Key: "ok", Value: 1.0}})
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("old_standard")), want)
	if ignore, _ := made.Lookup("ignoreUnknownIndexOptions").BooleanOK(); !ignore {
		t.Error("an unknown option of an index would be an error")
	}
	simple := bson.D{{Key: "locale", Value: "simple"}}
	for i, w := range []bson.D{
		{{Key: "key", Value: number}, {Key: "name", Value: "simple"}, {Key: "collation", Value: simple}},
		{{Key: "key", Value: number}, {Key: "name", Value: "same"}, {Key: "collation", Value: collation}},
		{{Key: "key", Value: bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: int32(1)}, {Key: "c", Value: int32(1)}, {Key: "d", Value: -1.0}, {Key: "e", Value: "hashed"}, {Key: "f", Value: int64(-2)}, {Key: "g", Value: int32(1)}}},
			{Key: "name", Value: "odd"}, {Key: "safe", Value: true}, {Key: "unique", Value: true}, {Key: "collation", Value: simple}},
	} {
		raw, err := bson.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Lookup("indexes", fmt.Sprint(i)).String(); got != bson.Raw(raw).String() {
			t.Errorf("got %s, want %s", got, bson.Raw(raw))
		}
	}
}

// The filter of a page is a single comparison: for $or, a server finds no bounds for the scan of a
// clustered collection, and would read it from its beginning for each page.
func TestPagesOfClusteredCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	const n = 2100 // a page has 1000 documents
	var docs []any
	for i := range n {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}})
	}
	u := uuid.New()
	insert(t, db.Collection("c"), append(docs, bson.D{{Key: "_id", Value: "text"}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}, bson.D{{Key: "_id", Value: true}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}))
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("a"))
	var behind, types, other atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if _, err := r.command.LookupErr("sort", "_id"); r.name() == "find" && err == nil {
			elements, err := r.command.Lookup("filter").Document().Elements()
			if err != nil {
				t.Error(err)
			}
			switch {
			case len(elements) == 0:
			case len(elements) == 1 && elements[0].Key() == "_id":
				if _, err := elements[0].Value().Document().LookupErr("$gt"); err == nil {
					behind.Add(1)
				} else {
					types.Add(1)
				}
			default:
				other.Add(1)
			}
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
	// The pages begin after 999, 1999, "text" and true. Those for other types begin after the last
	// number, and after the last of these values.
	if b, ty, o := behind.Load(), types.Load(), other.Load(); o > 0 || b < 2 || b > 4 || ty < 1 || ty > 3 {
		t.Errorf("%d queries behind an _id, %d for types, %d others", b, ty, o)
	}
}

// A server fills in an empty timestamp at the top level of a document that is inserted or replaced.
// Such a copy can never be byte for byte equal to its source. The command must not report that the
// source keeps changing.
func TestEmptyTimestamp(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old, fresh := db.Collection("old"), db.Collection("old_standard")
	insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: bson.Timestamp{}}, {Key: "n", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "at", Value: bson.Timestamp{T: 7, I: 1}}}})
	if n, err := old.CountDocuments(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}); err != nil || n != 1 {
		if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{}}}}}); err != nil {
			t.Fatal(err) // the server fills in the timestamp
		}
	}
	carrier(t, old)
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("u"), intoNew("old"))
	var changed atomic.Bool
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if name, _ := r.command.Lookup(r.name()).StringValueOK(); name == "old_standard" && (r.name() == "insert" || r.name() == "update") {
			if _, err := fresh.UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{T: 1_800_000_000, I: 1}}}}}); err != nil {
				t.Error(err)
			}
			if !changed.Swap(true) { // other changes of such a document are copied
				if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}}); err != nil {
					t.Error(err)
				}
			}
		}
		return answer
	})
	r := command(t, p, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if !strings.Contains(r.stdout, "empty timestamp") || strings.Contains(r.stdout, "changed during each") {
		t.Error(r.stdout)
	}
	if n, err := fresh.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 2}}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

// A server that is asked to does not fill in empty timestamps, and their documents are copied as they are,
// also if they are replaced later. Another document is refused by its _id. The proxy plays a server that
// fills in whatever it was not asked to leave.
func TestEmptyTimestampCopied(t *testing.T) {
	for _, knows := range []bool{true, false} {
		s := mongotest.Start(t)
		db := connect(t, s)
		old, fresh := db.Collection("old"), db.Collection("old_standard")
		at := func(n int) bson.D {
			return bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{}}, {Key: "n", Value: n}}}}
		}
		for i := range 5 {
			insert(t, old, []any{bson.D{{Key: "_id", Value: i}, {Key: "at", Value: bson.Timestamp{T: 7}}}})
			if i%2 == 1 {
				if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: i}}, at(1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		converted := carrier(t, old)
		dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("u"), intoNew("old"))
		var changed atomic.Bool
		var asked atomic.Int32
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if name, _ := r.command.Lookup(r.name()).StringValueOK(); name != "old_standard" || r.name() != "insert" && r.name() != "update" {
				return pass()
			}
			var answer []byte
			if exact, _ := r.command.Lookup("bypassEmptyTsReplacement").BooleanOK(); !exact {
				answer = pass()
				if _, err := fresh.UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}},
					bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{T: 1_800_000_000, I: 1}}}}}); err != nil {
					t.Error(err)
				}
			} else if !knows {
				answer = r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(40415)}, {Key: "errmsg", Value: "BSON field 'bypassEmptyTsReplacement' is an unknown field."}})
			} else {
				asked.Add(1)
				if w, _ := r.command.Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
					t.Errorf("the write concern is %q", w)
				}
				answer = exactly(t, db, r)
			}
			if !changed.Swap(true) {
				if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, at(2)); err != nil {
					t.Error(err)
				}
			}
			return answer
		})
		code := failure.ExitIncomplete
		if knows {
			code = failure.ExitOK
		}
		r := command(t, p, "apply", dir, "--write").want(t, code)
		if strings.Contains(r.stdout, "empty timestamp") == knows || knows != (asked.Load() > 0) {
			t.Errorf("asked %d times: %s", asked.Load(), r.stdout)
		}
		if knows {
			want := all(t, old)
			note(want, converted)
			equal(t, all(t, fresh), want)
		}
	}
}

// exactly carries out an insert or an update with updates of the server, which fill in nothing.
func exactly(t *testing.T, db *mongo.Database, r request) []byte {
	field, n := "documents", 0
	if r.name() == "update" {
		field = "updates"
	}
	writes, err := r.command.Lookup(field).Array().Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		doc := w.Document()
		if field == "updates" {
			doc = doc.Lookup("u").Document()
		}
		var fields bson.D
		if err := bson.Unmarshal(doc, &fields); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Collection("old_standard").UpdateOne(t.Context(), fields[:1], bson.D{{Key: "$set", Value: fields[1:]}}, options.UpdateOne().SetUpsert(true)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return r.reply(bson.D{{Key: "n", Value: int32(n)}, {Key: "ok", Value: 1.0}})
}

// A collection that has documents is refused before the last batch of an earlier copy into it is waited
// for.
func TestIntoRefusedAtOnce(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("old"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "old_standard" {
			return nil // the answer is lost
		}
		return answer
	})
	dir, other := prepared(t, s, "standard", intoNew("old")), prepared(t, s, "standard", intoNew("old"))
	command(t, p, "apply", dir, "--write", "--batch-timeout", "15s").want(t, failure.ExitUnreachable)
	r := command(t, s, "apply", other, "--write", "--batch-timeout", "15s").want(t, failure.ExitUsage)
	if !strings.Contains(r.stderr, `"old_standard" has documents already`) || strings.Contains(r.stderr, "waiting for a batch") {
		t.Error(r.stderr)
	}
}
