package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// These tests have a server answer as mongod or mongos does, where FerretDB wouldn't. Error codes are those of MongoDB's
// src/mongo/base/error_codes.yml.

// What a router cannot reach, or a server cannot do at the moment, it reports for each document. No document is skipped for
// that: with the same subtype before and after, none could be converted any more. The run ends, and the same command goes on.
func TestNoMatterOfADocument(t *testing.T) {
	for _, tt := range []struct {
		code int32
		name string
		exit int
	}{
		{6, "HostUnreachable", exitUnreachable},
		{89, "NetworkTimeout", exitUnreachable},
		{133, "FailedToSatisfyReadPreference", exitUnreachable},
		{82, "NoProgressMade", exitUnreachable},
		{202, "NetworkInterfaceExceededTimeLimit", exitUnreachable},
		{13388, "StaleConfig", exitUnreachable},
		{9001, "SocketException", exitUnreachable},
		{10058, "LegacyNotPrimary", exitUnreachable},
		{11601, "Interrupted", exitFailed},
		{50, "MaxTimeMSExpired", exitUnreachable}, // the driver calls it a timeout
		{262, "ExceededTimeLimit", exitUnreachable},
		{24, "LockTimeout", exitFailed},
		{112, "WriteConflict", exitFailed},
		{365, "TemporarilyUnavailable", exitFailed},
		{371, "UserWritesBlocked", exitFailed},
		{462, "IngressRequestRateLimitExceeded", exitFailed},
		{14031, "OutOfDiskSpace", exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mongotest.Start(t)
			db := connect(t, s)
			want := seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if r.name() != "update" || r.documents < 5 {
					return pass()
				}
				return r.refuse(tt.code, "it was "+tt.name)
			})
			dir := t.TempDir()
			args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy", "--write",
				"--state", filepath.Join(dir, "state"), "--undo", filepath.Join(dir, "undo")}
			if r := command(t, p, args...).want(t, tt.exit); !strings.Contains(r.stderr, "the same command goes on") || !strings.Contains(r.stderr, tt.name) {
				t.Error(r.stderr)
			}
			command(t, s, args...).want(t, exitOK)
			equal(t, all(t, db.Collection("c")), want)
		})
	}
}

// cursor answers a command with all of a cursor at once.
func (r request) cursor(ns string, docs ...any) []byte {
	return r.reply(bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: ns}, {Key: "firstBatch", Value: bson.A(docs)}}}, {Key: "ok", Value: 1.0}})
}

// An index of the simple collation on a collection with another default is listed without one, and one that is made without
// one gets the default. Old indexes have options that no server takes any more, and values in their keys likewise.
func TestIndexSpecs(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("old"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
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
	command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write").want(t, exitOK)
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

// A unique value passes from one document to another while they are copied, so that the copies hold it twice. They are
// brought up to date before the unique index is given up.
func TestUniqueValuePassesOn(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old, fresh := db.Collection("old"), db.Collection("new")
	insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "seat", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "seat", Value: "b"}}})
	if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	set := func(coll *mongo.Collection, id int, seat string) {
		if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "seat", Value: seat}}}}); err != nil {
			t.Error(err)
		}
	}
	refused := 0
	changed := false
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "find":
			if _, err := r.command.LookupErr("filter", "_id", "$gt"); err == nil && !changed { // behind the first document
				changed = true
				set(old, 1, "c")
				set(old, 2, "a")
			}
		case "createIndexes":
			n, err := fresh.CountDocuments(t.Context(), bson.D{{Key: "seat", Value: "a"}})
			if err != nil {
				t.Error(err)
			}
			if n > 1 {
				refused++
				return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(11000)}, {Key: "codeName", Value: "DuplicateKey"}, {Key: "errmsg", Value: "E11000 duplicate key error collection: db.new index: seat_1 dup key"}})
			}
		}
		return pass()
	})
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write", "--batch", "1", "--state", state}
	command(t, p, args...).want(t, exitOK)
	if refused != 1 {
		t.Errorf("the index was refused %d times", refused)
	}
	equal(t, all(t, fresh), all(t, old))
	specs, err := fresh.Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v, %v", specs, err)
	}
}

// The same once the unique index is there: the copy that needs a value which another one still has is replaced after that.
func TestUniqueValueIsAwaited(t *testing.T) {
	for _, swap := range []bool{false, true} {
		s := mongotest.Start(t)
		db := connect(t, s)
		old, fresh := db.Collection("old"), db.Collection("new")
		insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "seat", Value: "a"}}, bson.D{{Key: "_id", Value: 2}, {Key: "seat", Value: "b"}}})
		if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "seat", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
			t.Fatal(err)
		}
		set := func(id int, seat string) {
			if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: bson.D{{Key: "seat", Value: seat}}}}); err != nil {
				t.Error(err)
			}
		}
		updates := 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			switch r.name() {
			case "createIndexes":
				answer := pass()
				set(2, "c")
				set(1, "b")
				if swap {
					set(2, "a")
				}
				return answer
			case "update":
				if updates++; updates == 1 || swap {
					return r.refuse(11000, "E11000 duplicate key error")
				}
			}
			return pass()
		})
		args := []string{"convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write"}
		if swap { // two copies wait for each other
			if r := command(t, p, args...).want(t, exitIncomplete); !strings.Contains(r.stdout, "Not verified") || !strings.Contains(r.stdout, "an index is unique") {
				t.Error(r.stdout)
			}
			continue
		}
		command(t, p, args...).want(t, exitOK)
		equal(t, all(t, fresh), all(t, old))
	}
}

// What a killed run copied and the source changed since is brought up to date, and is no conflict then.
func TestNoConflictOfStaleCopy(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("old"), 3, uuidrep.JavaLegacy, uuidrep.Standard)
	first := true
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "insert" && first {
			first = false
			insert(t, db.Collection("new"), []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: int32(7)}}})
		}
		return pass()
	})
	r := command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write").want(t, exitOK)
	if !strings.Contains(r.stdout, "Verified") || strings.Contains(r.stdout, "another document") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("new")), want)
}

// Writes wait for a majority unless the connection string has another w, whatever else of a write concern it has.
func TestWriteConcern(t *testing.T) {
	for uri, want := range map[string]string{
		"":                  `{"w": "majority"}`,
		"&journal=true":     `{"w": "majority","j": true}`,
		"&journal=false":    `{"w": "majority","j": false}`,
		"&wtimeoutMS=5000":  `{"w": "majority"}`,
		"&w=1&journal=true": `{"w": {"$numberInt":"1"},"j": true}`,
		"&w=twoDataCentres": `{"w": "twoDataCentres"}`,
	} {
		s := mongotest.Start(t)
		seed(t, connect(t, s).Collection("c"), 1, uuidrep.JavaLegacy, uuidrep.Standard)
		got := ""
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" {
				got = r.command.Lookup("writeConcern").String()
			}
			return pass()
		})
		command(t, uriTarget(p.URI()+uri), "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write")
		if got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

type uriTarget string

func (u uriTarget) URI() string { return string(u) }

// A router of MongoDB before 6.0 sends an update by _id to all shards, and counts those of orphaned documents too. That may
// be as many as were asked for although one was not found, since another program had changed it.
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
	command(t, p, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write").want(t, exitOK)
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

// A server fills in an empty timestamp at the top of a document that is inserted or replaced. Such a copy can never be
// octet for octet what its source is: it isn't the source that doesn't keep still.
func TestEmptyTimestamp(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old, fresh := db.Collection("old"), db.Collection("new")
	insert(t, old, []any{bson.D{{Key: "_id", Value: 1}, {Key: "at", Value: bson.Timestamp{}}, {Key: "n", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "at", Value: bson.Timestamp{T: 7, I: 1}}}})
	if n, err := old.CountDocuments(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}); err != nil || n != 1 {
		if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{}}}}}); err != nil {
			t.Fatal(err) // a server that fills in
		}
	}
	changed := false
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if name, _ := r.command.Lookup(r.name()).StringValueOK(); name == "new" && (r.name() == "insert" || r.name() == "update") {
			if _, err := fresh.UpdateMany(t.Context(), bson.D{{Key: "at", Value: bson.Timestamp{}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "at", Value: bson.Timestamp{T: 1_800_000_000, I: 1}}}}}); err != nil {
				t.Error(err)
			}
			if !changed { // what else changes in such a document is followed
				changed = true
				if _, err := old.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 2}}}}); err != nil {
					t.Error(err)
				}
			}
		}
		return answer
	})
	r := command(t, p, "convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write").want(t, exitIncomplete)
	if !strings.Contains(r.stdout, "empty timestamp") || strings.Contains(r.stdout, "never kept still") {
		t.Error(r.stdout)
	}
	if n, err := fresh.CountDocuments(t.Context(), bson.D{{Key: "n", Value: 2}}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
}

// A page is asked for by a comparison alone: a server finds no bounds in $or for the scan of a clustered collection, and
// would read it from its beginning for each page.
func TestPagesOfClusteredCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 25, uuidrep.JavaLegacy, uuidrep.Standard)
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
	command(t, p, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--batch", "10").want(t, exitOK)
	// Behind 9, 19, "text" and true; of other types behind the last number, and again behind the last of those.
	if other > 0 || behind < 2 || behind > 4 || types < 1 || types > 3 {
		t.Errorf("%d queries behind an _id, %d for types, %d others", behind, types, other)
	}
	got := all(t, db.Collection("c"))
	for id, doc := range want {
		if !bytes.Equal(got[id], doc) {
			t.Errorf("%v, want %v", got[id], doc)
		}
	}
	for _, id := range []string{`"text"`, "true"} {
		if subtype, data := got[id].Lookup("a").Binary(); subtype != 4 || [16]byte(data) != u {
			t.Errorf("%v", got[id])
		}
	}
}

// Another program makes an array of the document that a value is in. A query finds the value in it all the same, and the
// update fails, as a field has no place in an array. It is converted where it is by then.
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
	command(t, p, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write").want(t, exitOK)
	for _, doc := range all(t, c) {
		if subtype, data := doc.Lookup("d", "0", "b").Binary(); subtype != 4 || [16]byte(data) != u {
			t.Errorf("%v", doc)
		}
	}
}

// What undo restored is told by the documents where the server's number isn't that of the updates: a router counts orphans,
// and another program may have been faster.
func TestUndoCounts(t *testing.T) {
	for more, want := range map[int32]map[string]int{
		1:  {"documentsRestored": 3, "changedSince": 0, "documentsGone": 0},
		-2: {"documentsRestored": 1, "changedSince": 1, "documentsGone": 1},
	} {
		s := mongotest.Start(t)
		db := connect(t, s)
		c := db.Collection("c")
		seed(t, c, 3, uuidrep.JavaLegacy, uuidrep.Standard)
		undo := filepath.Join(t.TempDir(), "undo")
		command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--undo", undo).want(t, exitOK)
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
		code := exitOK
		if more < 0 {
			code = exitIncomplete
		}
		r := command(t, p, "undo", undo, "--write", "--output", "json").want(t, code)
		var got struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
			t.Fatal(err)
		}
		for key, n := range want {
			if got.Result[key] != float64(n) {
				t.Errorf("%d: %s: %v, want %d", more, key, got.Result[key], n)
			}
		}
	}
}
