package servertest

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// spelling writes a UUID in the n-th of its usual spellings.
func spelling(u uuid.UUID, n int) string {
	s := []string{u.String(), hex.EncodeToString(u[:]), "{" + u.String() + "}", u.URN()}[n%4]
	if n%8 >= 4 {
		s = strings.ToUpper(s)
	}
	return s
}

// texts inserts n documents with UUIDs in text, and returns what standard makes of them.
func texts(t *testing.T, coll *mongo.Collection, n int) map[string]bson.Raw {
	t.Helper()
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range n {
		u, sku := uuid.New(), uuid.New()
		doc := func(customer, item any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: customer}, {Key: "note", Value: u.String()},
				{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: item}}, bson.D{{Key: "n", Value: "1"}}}}}
		}
		docs = append(docs, doc(spelling(u, i), spelling(sku, i/8)))
		raw := marshal(t, doc(in(u, uuidrep.Standard), in(sku, uuidrep.Standard)))
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	return want
}

// Text is converted in the fields that the user names, and restored in the spelling that it had.
func TestText(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	dir := t.TempDir()
	want := texts(t, coll, 64)
	before := all(t, coll)
	named := []string{"--db", s.Database(), "--collection", "c", "--from", "text", "--field", "customer,items.sku"}
	args := append(append([]string{"convert"}, named...), gentle...)
	verify := append([]string{"verify"}, named...)
	undo, state := filepath.Join(dir, "undo"), filepath.Join(dir, "state")

	r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "text", "--write").want(t, failure.ExitUsage)
	if !strings.Contains(r.stderr, "--field: from text, the fields must be named") {
		t.Error(r.stderr)
	}
	for _, field := range []string{"custoner", "_id", "items"} {
		r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "text", "--field", field, "--write").want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "has no such field with a binary value of 16 bytes or text") {
			t.Errorf("%s: %s", field, r.stderr)
		}
	}
	r = command(t, s, args...).want(t, failure.ExitOK)
	for _, text := range []string{"text to standard (subtype 4); dry run", "text by variant and version 4", "128 values in 64 documents to change", before["{\"$numberInt\":\"0\"}"].Lookup("customer").String()} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("%q is not in\n%s", text, r.stdout)
		}
	}
	command(t, s, append(args, "--output", "json")...).want(t, failure.ExitOK) // of the schema
	equal(t, all(t, coll), before)
	command(t, s, verify...).want(t, failure.ExitIncomplete)

	write := append(args, "--write", "--state", state, "--undo-log", undo)
	command(t, s, write...).want(t, failure.ExitOK)
	equal(t, all(t, coll), want)
	if r := command(t, s, append(verify, "--undo-log", undo, "--state", state)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the undo log: 64 documents") {
		t.Error(r.stdout)
	}
	if r := command(t, s, verify...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the types alone") {
		t.Error(r.stdout)
	}
	if r := command(t, s, write...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "finished") {
		t.Error(r.stdout)
	}

	// Another program changes one of two converted values of a document.
	u := uuid.NewString()
	if _, err := coll.UpdateByID(t.Context(), int32(7), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: u}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, append(verify, "--undo-log", undo)...).want(t, failure.ExitIncomplete)
	if _, err := coll.UpdateByID(t.Context(), int32(7), bson.D{{Key: "$set", Value: bson.D{{Key: "customer", Value: want["{\"$numberInt\":\"7\"}"].Lookup("customer")}}}}); err != nil {
		t.Fatal(err)
	}

	command(t, s, "undo", undo, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
	command(t, s, "undo", undo, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// Binary values become text in its canonical spelling.
func TestToText(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	dir := t.TempDir()
	var docs []any
	want := make(map[string]bson.Raw)
	for i := range 40 {
		u := uuid.New()
		doc := func(v any) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "list", Value: bson.A{v, "x", v}}}
		}
		docs = append(docs, doc(in(u, uuidrep.JavaLegacy)))
		raw := marshal(t, doc(u.String()))
		want[raw.Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	before := all(t, coll)
	named := []string{"--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", "text"}
	undo := filepath.Join(dir, "undo")
	command(t, s, append([]string{"convert", "--output", "json"}, named...)...).want(t, failure.ExitOK) // of the schema
	r := command(t, s, append([]string{"convert", "--write", "--undo-log", undo}, named...)...).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "javaLegacy (subtype 3) to text") {
		t.Error(r.stdout)
	}
	equal(t, all(t, coll), want)
	if r := command(t, s, append([]string{"verify", "--undo-log", undo}, named...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "values that are text") {
		t.Error(r.stdout)
	}
	command(t, s, "undo", undo, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "text", "--to", "generic", "--field", "list").want(t, failure.ExitUsage)
}

// What is not a UUID, or may be a checksum, is left and listed. Empty strings are left and not listed. The list can
// be converted later.
func TestTextLeft(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	dir := t.TempDir()
	var docs []any
	odd := "12345678-0000-0000-0000-000000000001" // without variant and version
	for i := range 40 {
		v := uuid.NewString()
		switch i {
		case 3:
			v = "unknown"
		case 4:
			v = odd
		case 5:
			v = ""
		case 6:
			v = uuid.Nil.String()
		}
		sum := md5.Sum([]byte(v))
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: v}, {Key: "sum", Value: hex.EncodeToString(sum[:])},
			{Key: "digits", Value: spelling(uuid.New(), 1)}, {Key: "other", Value: nil}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "text"}
	if r := command(t, s, append(args, "--field", "sum", "--write")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "may be a checksum") {
		t.Error(r.stderr)
	}
	equal(t, all(t, coll), before)

	list := filepath.Join(dir, "skipped")
	r := command(t, s, append(args, "--field", "id,sum,digits", "--trust", "sum", "--write", "--skip-list", list)...).want(t, failure.ExitIncomplete)
	b, err := os.ReadFile(list)
	if err != nil || bytes.Count(b, []byte("\n")) != 2 || !strings.Contains(string(b), `"value":"unknown"`) || !strings.Contains(string(b), odd) {
		t.Errorf("%s, %v\n%s", b, err, r.stdout)
	}
	converted := 0
	for _, doc := range all(t, coll) {
		for _, field := range []string{"id", "sum", "digits"} {
			if subtype, _, ok := doc.Lookup(field).BinaryOK(); ok && subtype == 4 {
				converted++
			}
		}
	}
	if converted != 120-3 {
		t.Errorf("%d values are converted", converted)
	}
	retry := append(args, "--field", "id", "--retry", list, "--write")
	command(t, s, retry...).want(t, failure.ExitIncomplete) // nothing fits
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(4)}, {Key: "id", Value: odd}}).Err(); err != nil {
		t.Error(err)
	}
	command(t, s, append(retry, "--trust", "id")...).want(t, failure.ExitIncomplete) // the words are left
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(4)}, {Key: "id", Value: in(uuid.MustParse(odd), uuidrep.Standard)}}).Err(); err != nil {
		t.Error(err)
	}
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}, {Key: "id", Value: "unknown"}}).Err(); err != nil {
		t.Error(err)
	}
}

// Text in _id is converted with --into. Two spellings of one UUID become one _id, which is a
// conflict: nothing is verified.
func TestTextInID(t *testing.T) {
	for name, tt := range map[string]struct {
		second  any // in a document with another spelling of an _id; nil for no such document
		finding string
	}{
		"no conflict":     {nil, ""},
		"other values":    {"b", "two documents have the same _id"},
		"the same values": {"a", "two documents have the same _id"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			want := make(map[string]bson.Raw)
			var docs []any
			for i := range 30 {
				u := uuid.New()
				docs = append(docs, bson.D{{Key: "_id", Value: spelling(u, i)}, {Key: "v", Value: "a"}})
				raw := marshal(t, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: "a"}})
				want[raw.Lookup("_id").String()] = raw
				if i == 0 && tt.second != nil {
					docs = append(docs, bson.D{{Key: "_id", Value: spelling(u, 4)}, {Key: "v", Value: tt.second}})
				}
			}
			insert(t, db.Collection("c"), docs)
			before := all(t, db.Collection("c"))
			named := []string{"--db", s.Database(), "--collection", "c", "--from", "text", "--field", "_id", "--into", "new"}
			code := failure.ExitOK
			if tt.finding != "" {
				code = failure.ExitIncomplete
			}
			r := command(t, s, append(append([]string{"convert", "--write"}, gentle...), named...)...).want(t, code)
			proof := command(t, s, append([]string{"verify"}, named...)...).want(t, code)
			if !strings.Contains(r.stdout, tt.finding) || !strings.Contains(proof.stdout, tt.finding) || strings.Contains(r.stdout, "Verified") != (tt.finding == "") {
				t.Errorf("%s\n%s", r.stdout, proof.stdout)
			}
			equal(t, all(t, db.Collection("c")), before)
			if tt.finding == "" {
				equal(t, all(t, db.Collection("new")), want)
			}
			named[len(named)-1] = "other"
			command(t, s, append([]string{"convert", "--write", "--part", "1/2"}, named...)...).want(t, failure.ExitUsage)
		})
	}
}

// A reference that is not converted is named before anything is written.
func TestTextReferences(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var users, orders []any
	for i := range 30 {
		u := uuid.New()
		users = append(users, bson.D{{Key: "_id", Value: int32(i)}, {Key: "key", Value: u.String()}, {Key: "again", Value: spelling(u, 2)}})
		orders = append(orders, bson.D{{Key: "_id", Value: int32(i)}, {Key: "user", Value: spelling(u, i)}, {Key: "other", Value: uuid.NewString()}})
	}
	insert(t, db.Collection("users"), users)
	insert(t, db.Collection("orders"), orders)
	r := command(t, s, "convert", "--db", s.Database(), "--collection", "users", "--from", "text", "--field", "key").want(t, failure.ExitOK)
	for _, field := range []string{".orders user", ".users again"} {
		if want := fmt.Sprintf("%s%s has 30 distinct values that equal converted ones, and stays text", s.Database(), field); !strings.Contains(r.stderr, want) {
			t.Errorf("%q is not in\n%s", want, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "orders other") {
		t.Error(r.stderr)
	}
}

// A process is killed after the server changed a document and before the state file is updated.
// Before the same command is run again, another program writes another text. undo restores all
// texts that were converted, in their spellings.
func TestTextAfterKill(t *testing.T) {
	for _, writes := range []string{"a", "b"} {
		t.Run(writes, func(t *testing.T) {
			coll := collection(t)
			c := conversion(t, "generic", "standard", "a", "b", "z")
			var err error
			if c.From, err = kinds.Parse("text"); err != nil {
				t.Fatal(err)
			}
			doc := bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: spelling(uuid.New(), 5)}, {Key: "z", Value: spelling(uuid.New(), 6)}}
			insert(t, coll, []any{doc})
			f := newFiles(t, c)
			run := func(s *convert.StateFile, u *convert.UndoLog) {
				t.Helper()
				res, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Write: true, Workers: 1, State: s, Undo: u})
				if err != nil || res.Skipped > 0 {
					t.Fatalf("%+v, %v", res, err)
				}
			}
			f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
				begun := convert.State{Identity: s.Identity, UndoID: u.ID, UndoOffset: u.Size()}
				run(s, u)
				s.State = begun
				if err := s.Save(); err != nil {
					t.Fatal(err)
				}
			})
			other := spelling(uuid.New(), 7)
			if _, err := coll.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: writes, Value: other}}}}); err != nil {
				t.Fatal(err)
			}
			f.with(t, run)
			if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "$or", Value: bson.A{bson.D{{Key: "a", Value: bson.D{{Key: "$type", Value: "string"}}}}, bson.D{{Key: "z", Value: bson.D{{Key: "$type", Value: "string"}}}}}}}); err != nil || n > 0 {
				t.Errorf("%d documents have text, %v", n, err)
			}
			u, err := convert.ReadUndoLog(f.undo)
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			if res, err := convert.Undo(t.Context(), coll, u, convert.UndoOptions{Write: true, Batch: 10}); err != nil || len(res.Skips) > 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			if writes == "a" {
				doc[1].Value = other
			} else {
				doc = append(doc, bson.E{Key: "b", Value: other})
			}
			want := marshal(t, doc)
			equal(t, all(t, coll), map[string]bson.Raw{want.Lookup("_id").String(): want})
		})
	}
}

// Of two spellings of one UUID in a field with a unique index, the second is left and listed.
func TestTextUnique(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.UniqueUpdates)
	db := connect(t, s)
	coll := db.Collection("c")
	if _, err := coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "v", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		t.Fatal(err)
	}
	u := uuid.New()
	insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "v", Value: spelling(u, 0)}}, bson.D{{Key: "_id", Value: int32(2)}, {Key: "v", Value: spelling(u, 4)}}})
	list := filepath.Join(t.TempDir(), "skipped")
	r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "text", "--field", "v", "--write", "--skip-list", list).want(t, failure.ExitIncomplete)
	b, err := os.ReadFile(list)
	if err != nil || !strings.Contains(r.stdout, "1 values in 1 documents changed") || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("%s%s%v", r.stdout, b, err)
	}
}
