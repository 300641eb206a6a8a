package servertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// If both orders have the same subtype, a list converts each value once, however often it is given.
func TestRetryTwice(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 50, uuidrep.JavaLegacy, v4)
	odd := fill(t, coll, 50, 1, uuidrep.JavaLegacy, func(int) uuid.UUID { return uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f") })
	dir := t.TempDir()
	files := []string{"--state", filepath.Join(dir, "s"), "--undo-log", filepath.Join(dir, "u")}
	args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy", "--write"}, gentle...)
	command(t, s, append(args, files...)...).want(t, failure.ExitIncomplete)
	want := all(t, coll)
	list := filepath.Join(dir, "s.skipped.jsonl")
	if lines := skipLines(t, list); len(lines) != 1 || !strings.Contains(lines[0].Reason, "version 7") {
		t.Fatalf("%+v", lines)
	}
	for range 3 {
		command(t, s, append(append(args, files...), "--retry", list)...).want(t, failure.ExitOK)
		got := all(t, coll)
		subtype, data := got[`{"$numberInt":"50"}`].Lookup("a").Binary()
		if subtype != 3 || [16]byte(data) != uuidrep.CSharpLegacy.Permute(odd[0]) {
			t.Errorf("subtype %d, %x", subtype, data)
		}
		delete(got, `{"$numberInt":"50"}`)
		delete(want, `{"$numberInt":"50"}`)
		equal(t, got, want)
	}
	// One undo log holds both runs.
	command(t, s, "undo", filepath.Join(dir, "u"), "--write", "--batch", "10").want(t, failure.ExitOK)
	if b := all(t, coll)[`{"$numberInt":"50"}`].Lookup("a"); b.String() != marshalValue(t, in(odd[0], uuidrep.JavaLegacy)).String() {
		t.Errorf("%v", b)
	}
}

// A list is refused if it is damaged, belongs to something else, or is not a list.
func TestRetryOfOtherFiles(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 10, uuidrep.JavaLegacy, v4)
	before := all(t, coll)
	path := filepath.Join(t.TempDir(), "list")
	line := func(collection, subtype string) string {
		return `{"collection":"` + collection + `","_id":{"$numberInt":"1"},"path":"a","value":{"$binary":{"base64":"AAAAAAAAAAAAAAAAAAAAAA==","subType":"` + subtype + `"}},"reason":"x"}` + "\n"
	}
	own := s.Database() + ".c"
	for _, text := range []string{"", "{}\n", "text", line("x.c", "03"), line(own, "04"), line(own, "03") + "{", line(own, "03")[:50]} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--retry", path, "--write").want(t, failure.ExitUsage)
	}
	if err := os.WriteFile(path, []byte(line(own, "03")), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--retry", path, "--trust", "b", "--write").want(t, failure.ExitUsage)
	equal(t, all(t, coll), before)
}

// --query takes any filter. The order is decided from the documents that match it, and no other
// document is changed.
func TestQuery(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	var docs []any
	var ids [2][]uuid.UUID
	for i := range 60 {
		u, app := uuid.New(), i%2
		ids[app] = append(ids[app], u)
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i/2 + 100*app)}, {Key: "a", Value: in(u, []uuidrep.Representation{uuidrep.JavaLegacy, uuidrep.CSharpLegacy}[app])}, {Key: "app", Value: app}})
	}
	insert(t, coll, docs)
	args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--write"}, gentle...)
	for _, bad := range []string{"{", "[]", "1", "{app:"} {
		command(t, s, append(args, "--from", "javaLegacy", "--query", bad)...).want(t, failure.ExitUsage)
	}
	command(t, s, append(args, "--from", "javaLegacy", "--query", `{"$or":[{"app":0},{"_id":{"$lt":-1}}]}`)...).want(t, failure.ExitOK)
	if converted, _ := held(t, coll, ids[0], 0, uuidrep.JavaLegacy); converted != 30 {
		t.Errorf("%d of 30 converted", converted)
	}
	if _, same := held(t, coll, ids[1], 100, uuidrep.CSharpLegacy); same != 30 {
		t.Errorf("%d of 30 as they were", same)
	}
	command(t, s, append(args, "--from", "csharpLegacy", "--query", `{"app":1}`)...).want(t, failure.ExitOK)
	if converted, _ := held(t, coll, ids[1], 100, uuidrep.CSharpLegacy); converted != 30 {
		t.Errorf("%d of 30 converted", converted)
	}
}

// Values that refer to converted ones and are not converted are named before the first write, with
// how many the search may have missed.
func TestReferencesLeftBehind(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	ids := fill(t, db.Collection("customers"), 0, 30, uuidrep.JavaLegacy, v4)
	var orders []any
	for i := range 200 {
		orders = append(orders, bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: in(ids[i%3], uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
	}
	insert(t, db.Collection("orders"), orders)
	if _, err := db.Collection("customers").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 0}}, bson.D{{Key: "$set", Value: bson.D{{Key: "friend", Value: in(ids[1], uuidrep.JavaLegacy)}}}}); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"convert", "--db", s.Database(), "--collection", "customers", "--from", "javaLegacy", "--field", "a"}, gentle...)
	r := command(t, s, args...).want(t, failure.ExitOK)
	for _, want := range []string{s.Database() + ".customers friend has 1 distinct values that equal", s.Database() + ".orders customer has 3 distinct values that equal"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("%q is not in %s", want, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "missed") {
		t.Error(r.stderr)
	}
	// (1 - 10/200)^58 is more than 5 %, and (1 - 10/200)^59 is less.
	if r := command(t, s, append(args, "--references", "10")...).want(t, failure.ExitOK); !strings.Contains(r.stderr, "references in fewer than 59 documents are missed") &&
		!strings.Contains(r.stderr, "cannot sample") {
		t.Error(r.stderr)
	}
	if r := command(t, s, append(args, "--references", "0")...).want(t, failure.ExitOK); strings.Contains(r.stderr, "orders") || !strings.Contains(r.stderr, "not searched") {
		t.Error(r.stderr)
	}
	var report struct {
		References struct {
			LeftBehind []struct {
				Collection, Path string
				Equal            int
			}
		}
	}
	r = command(t, s, append(args, "--write", "--output", "json")...).want(t, failure.ExitOK)
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || len(report.References.LeftBehind) != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
}

// A later pass with the files of a pass that is finished converts a new field if a new decision is asked
// for.
func TestLaterPassWithFiles(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 50, uuidrep.JavaLegacy, v4)
	args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--undo-log", filepath.Join(t.TempDir(), "undo")}, gentle...)
	command(t, s, args...).want(t, failure.ExitOK)
	var late []any
	for i := range 50 {
		late = append(late, bson.D{{Key: "_id", Value: 100 + i}, {Key: "later", Value: in(uuid.New(), uuidrep.JavaLegacy)}})
	}
	if _, err := coll.InsertMany(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	command(t, s, args...).want(t, failure.ExitIncomplete)
	command(t, s, append(args, "--decide-anew")...).want(t, failure.ExitOK)
	if n, err := coll.CountDocuments(t.Context(), bson.D{{Key: "later", Value: bson.D{{Key: "$gte", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}}}); err != nil || n != 50 {
		t.Errorf("%d of 50 values converted: %v", n, err)
	}
}

// A later pass converts new values by the decision of the first pass, although the few values that
// are left could not decide anything. If a new decision is asked for, it makes one.
func TestLaterPass(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 50, uuidrep.JavaLegacy, v4)
	args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write"}, gentle...)
	command(t, s, args...).want(t, failure.ExitOK)
	late := fill(t, coll, 100, 2, uuidrep.JavaLegacy, v4)
	command(t, s, append(args, "--decide-anew")...).want(t, failure.ExitUsage)
	if r := command(t, s, args...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "This was decided on") {
		t.Error(r.stdout)
	}
	if converted, _ := held(t, coll, late, 100, uuidrep.JavaLegacy); converted != 2 {
		t.Errorf("%d of 2 values converted", converted)
	}
	// Later values in another order are left as they are, however many there are.
	other := fill(t, coll, 200, 60, uuidrep.CSharpLegacy, func(int) uuid.UUID {
		return uuid.MustParse("00112233-4455-4677-8899-aabbccddee" + uuid.NewString()[:2])
	})
	command(t, s, args...).want(t, failure.ExitIncomplete)
	if _, same := held(t, coll, other, 200, uuidrep.CSharpLegacy); same != len(other) {
		t.Errorf("%d of %d values as they were", same, len(other))
	}
	if r := command(t, s, append(args, "--trust", "b")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "no such field") {
		t.Error(r.stderr)
	}
}
