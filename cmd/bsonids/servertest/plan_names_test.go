package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A plan leaves fields whose names an update cannot use, and says why. apply does not claim to
// convert them, and refuses a plan that does.
func TestPlanOfOddNames(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old := func(i int) bson.Binary { return in(v4(i), uuidrep.JavaLegacy) }
	var docs []any
	for i := range 12 {
		doc := bson.D{{Key: "_id", Value: int32(i)}, {Key: "good", Value: old(i)}, {Key: "a.b", Value: old(100 + i)}, {Key: "$d", Value: old(200 + i)}, {Key: "", Value: old(300 + i)},
			{Key: "s", Value: bson.D{{Key: "x.y", Value: old(400 + i)}, {Key: "$z", Value: old(500 + i)}, {Key: "", Value: old(600 + i)}}}, {Key: "m.n", Value: old(700 + i)}}
		if i%2 == 0 {
			doc[6] = bson.E{Key: "m", Value: bson.D{{Key: "n", Value: old(700 + i)}}}
		}
		docs = append(docs, doc)
	}
	coll := db.Collection("c")
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		mongotest.Skip(t, "the server refuses field names with a dot or a dollar sign")
	}
	before := all(t, coll)
	file := planned(t, s)
	var decided []string
	for _, l := range strings.Split(text(t, file), "\n") {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "- path: ") || strings.HasPrefix(l, "decision: ") {
			decided = append(decided, strings.TrimPrefix(l, "- path: "))
		}
	}
	want := `"" decision: leave "$d" decision: leave "a.b" decision: leave "good" decision: convert from javaLegacy "m.n" decision: unknown ` +
		`"s." decision: leave "s.$z" decision: leave "s.x.y" decision: leave`
	if got := strings.Join(decided, " "); got != want {
		t.Fatalf("%s, want %s", got, want)
	}

	edit(t, file, "decision: unknown", "decision: convert from javaLegacy")
	dir := filepath.Dir(file)
	// The values of the field that is called "m.n" are listed.
	if r := command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "6 documents have values") {
		t.Error(r.stdout)
	}
	for id, doc := range all(t, coll) {
		for _, e := range elements(t, doc) {
			same := string(e.Value().Value) == string(before[id].Lookup(e.Key()).Value)
			if converted := e.Key() == "good" || e.Key() == "m"; same == converted {
				t.Errorf("%s: %q: converted %v", id, e.Key(), !same)
			}
		}
	}
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)

	for _, name := range []string{"a.b", "$d", "s.x.y", "s.$z"} {
		file := planned(t, s)
		edit(t, file, "decision: unknown", "decision: leave", `path: "`+name+"\"\n        stored: subtype 3\n        decision: leave", `path: "`+name+"\"\n        stored: subtype 3\n        decision: convert from javaLegacy")
		r := command(t, s, "apply", filepath.Dir(file), "--write").want(t, failure.ExitUsage)
		if !strings.Contains(r.stderr, "cannot be converted: an update cannot address this path: the field name") || !strings.Contains(r.stderr, "this command changed nothing") {
			t.Errorf("%s: %s", name, r.stderr)
		}
	}
	equal(t, all(t, coll), before)
}

func elements(t *testing.T, doc bson.Raw) []bson.RawElement {
	t.Helper()
	e, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The path a.b of a plan is also a field with the name "a.b". Its values are listed in place,
// and converted in a copy.
func TestFieldWithDot(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var docs []any
	for i := range 12 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: bson.D{{Key: "b", Value: in(v4(i), uuidrep.JavaLegacy)}}}},
			bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "a.b", Value: in(v4(100+i), uuidrep.JavaLegacy)}})
	}
	coll := db.Collection("c")
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		mongotest.Skip(t, "the server refuses field names with a dot")
	}
	convert := convertFields("javaLegacy", "", "a.b")
	command(t, s, "apply", prepared(t, s, "standard", convert, intoNew("c")), "--write").want(t, failure.ExitOK)
	for id, doc := range all(t, db.Collection("c_standard")) {
		for _, value := range []bson.RawValue{doc.Lookup("a", "b"), doc.Lookup("a.b")} {
			if subtype, _, ok := value.BinaryOK(); ok && subtype != 4 {
				t.Errorf("%s has subtype %d in the copy", id, subtype)
			}
		}
	}
	if err := db.Collection("c_standard").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := prepared(t, s, "standard", convert)
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	if list := text(t, skipList(t, dir)); strings.Count(list, "contains a dot") != 12 || strings.Count(list, "\n") != 12 {
		t.Error(list)
	}
	if r := command(t, s, "verify", dir).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "not converted: a.b") {
		t.Error(r.stdout)
	}
}
