package servertest

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
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
	base := []string{"--db", s.Database(), "--collection", "old", "--from", "csharpLegacy"}
	args := append(append([]string{"convert"}, base...), gentle...)

	// In place, the values in _id are reported and left as they are.
	if r := command(t, s, args...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "the value is in _id") {
		t.Error(r.stdout)
	}
	args = append(args, "--into", "new", "--state", filepath.Join(t.TempDir(), "state"))
	command(t, s, args...).want(t, failure.ExitOK)
	if got := all(t, db.Collection("new")); len(got) != 0 {
		t.Errorf("a dry run wrote %d documents", len(got))
	}
	if r := command(t, s, append(args, "--write")...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Verified: new has the 60 documents of old") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("new")), want)
	equal(t, all(t, old), before)
	specs, err := db.Collection("new").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Name != "by_n" || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v, %v", specs, err)
	}
	proof := append(append([]string{"verify"}, base...), "--into", "new")
	command(t, s, proof...).want(t, failure.ExitOK)

	// The proof finds a document that differs, a missing one and an extra one.
	if _, err := db.Collection("new").UpdateOne(t.Context(), bson.D{{Key: "n", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("new").DeleteOne(t.Context(), bson.D{{Key: "n", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	insert(t, db.Collection("new"), []any{bson.D{{Key: "_id", Value: "more"}, {Key: "n", Value: 1000}}, bson.D{{Key: "_id", Value: "more2"}, {Key: "n", Value: 1001}}})
	r := command(t, s, append(proof, "--output", "json")...).want(t, failure.ExitIncomplete)
	var v struct {
		Result struct{ DocumentsWrong, DocumentsMissing, DocumentsExtra int }
	}
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.Result.DocumentsWrong != 1 || v.Result.DocumentsMissing != 1 || v.Result.DocumentsExtra != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	// A collection with documents cannot be the target.
	command(t, s, append(append([]string{"convert"}, base...), "--into", "new", "--write")...).want(t, failure.ExitFailed)
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
	args := append([]string{"convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write", "--trust", "_id"}, gentle...)
	if r := command(t, s, args...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "Not verified") {
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
	var made bson.Raw
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "listCollections":
			name, _ := r.command.Lookup("filter", "name").StringValueOK()
			if name != "old" && name != "new" {
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
	command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write", "--references", "0").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("new")), want)
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
	seed(t, db.Collection("c"), n, uuidrep.JavaLegacy, uuidrep.Standard)
	u := uuid.New()
	insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: "text"}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}, bson.D{{Key: "_id", Value: true}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}}})
	var behind, types, other int
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
					behind++
				} else {
					types++
				}
			default:
				other++
			}
		}
		return pass()
	})
	r := command(t, p, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--batch", "10", "--trust", "a").want(t, failure.ExitOK)
	// The pages begin after 999, 1999, "text" and true. Those for other types begin after the last
	// number, and after the last of these values.
	if other > 0 || behind < 2 || behind > 4 || types < 1 || types > 3 {
		t.Errorf("%d queries behind an _id, %d for types, %d others", behind, types, other)
	}
	if want := fmt.Sprintf("in %d documents to change, of %d documents read", n+2, n+2); !strings.Contains(r.stdout, want) {
		t.Errorf("%q is not in %s", want, r.stdout)
	}
}

// A server fills in an empty timestamp at the top level of a document that is inserted or replaced.
// Such a copy can never be byte for byte equal to its source. The command must not report that the
// source keeps changing.
func TestEmptyTimestamp(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old, fresh := db.Collection("old"), db.Collection("new")
	insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: bson.Timestamp{}}, {Key: "n", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "at", Value: bson.Timestamp{T: 7, I: 1}}}})
	if n, err := old.CountDocuments(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}); err != nil || n != 1 {
		if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{}}}}}); err != nil {
			t.Fatal(err) // the server fills in the timestamp
		}
	}
	changed := false
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if name, _ := r.command.Lookup(r.name()).StringValueOK(); name == "new" && (r.name() == "insert" || r.name() == "update") {
			if _, err := fresh.UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{T: 1_800_000_000, I: 1}}}}}); err != nil {
				t.Error(err)
			}
			if !changed { // other changes of such a document are copied
				changed = true
				if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}}); err != nil {
					t.Error(err)
				}
			}
		}
		return answer
	})
	r := command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write").want(t, failure.ExitIncomplete)
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
		old, fresh := db.Collection("old"), db.Collection("new")
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
		changed, asked := false, 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if name, _ := r.command.Lookup(r.name()).StringValueOK(); name != "new" || r.name() != "insert" && r.name() != "update" {
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
				asked++
				if w, _ := r.command.Lookup("writeConcern", "w").StringValueOK(); w != "majority" {
					t.Errorf("the write concern is %q", w)
				}
				answer = exactly(t, db, r)
			}
			if !changed {
				changed = true
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
		r := command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write").want(t, code)
		if strings.Contains(r.stdout, "empty timestamp") == knows || knows != (asked > 0) {
			t.Errorf("asked %d times: %s", asked, r.stdout)
		}
		if knows {
			equal(t, all(t, fresh), all(t, old))
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
		if _, err := db.Collection("new").UpdateOne(t.Context(), fields[:1], bson.D{{Key: "$set", Value: fields[1:]}}, options.UpdateOne().SetUpsert(true)); err != nil {
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
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "new" {
			return nil // the answer is lost
		}
		return answer
	})
	args := []string{"convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write", "--batch-timeout", "15s", "--retry-for", "0"}
	command(t, p, args...).want(t, failure.ExitUnreachable)
	r := command(t, s, args...).want(t, failure.ExitFailed)
	if !strings.Contains(r.stderr, "is not empty") || strings.Contains(r.stderr, "waiting for a batch") {
		t.Error(r.stderr)
	}
}
