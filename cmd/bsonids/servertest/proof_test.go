package servertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A conversion between two orders of one subtype is not proven before it is finished, although each
// value in its undo log is correct. A byte that is changed afterwards is found without any flag.
func TestProofOfOneSubtype(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	want := seed(t, coll, 40, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	dir := prepared(t, s, "csharpLegacy")
	var updates atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" && r.documents > 1 && updates.Add(1) > 2 {
			return nil
		}
		return pass()
	})
	apply, verify := []string{"apply", dir, "--write", "--batch", "10"}, []string{"verify", dir}
	command(t, p, apply...).want(t, failure.ExitUnreachable)
	for _, more := range [][]string{nil, {"--allow-changed"}} {
		if r := command(t, s, append(verify[:2:2], more...)...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "Not proven") {
			t.Error(r.stdout)
		}
	}
	command(t, s, apply...).want(t, failure.ExitOK)
	equal(t, all(t, coll), want)
	if r := command(t, s, verify...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the undo logs") {
		t.Error(r.stdout)
	}
	b := in([16]byte{1, 2, 3}, uuidrep.CSharpLegacy)
	if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: b}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, verify...).want(t, failure.ExitIncomplete)
	command(t, s, append(verify, "--allow-changed")...).want(t, failure.ExitOK)
}

// A field that matches nothing is an error in each command that takes one.
func TestFieldThatMatchesNothing(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 20, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, coll)
	base := []string{"--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
	for _, field := range []string{"idd", "n", "id,items[].skus", "odd"} {
		for _, cmd := range [][]string{{"convert"}, {"convert", "--write"}, {"convert", "--write", "--into", "new"}, {"verify"}} {
			args := append(append(cmd, base...), "--field", field)
			if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "no such field") {
				t.Errorf("%q: %s", args, r.stderr)
			}
		}
	}
	for _, from := range []string{"standard", "generic"} {
		command(t, s, append(append([]string{"convert", "--write"}, base...), "--from", from, "--to", "csharpLegacy", "--field", "id.x")...).want(t, failure.ExitUsage)
	}
	equal(t, all(t, coll), before)
}

// The output says what a proof is based on. Values that a decision leaves as they are do not fail a
// proof that has the decision.
func TestProofNamesItsBasis(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	want := seed(t, coll, 40, uuidrep.JavaLegacy, uuidrep.Standard)
	stray := bson.D{{Key: "_id", Value: "stray"}, {Key: "id", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}
	insert(t, coll, []any{stray})
	dir := t.TempDir()
	base := []string{"--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
	state, undo := filepath.Join(dir, "state"), filepath.Join(dir, "undo")
	with := func(cmd string, more ...string) []string { return append(append([]string{cmd}, base...), more...) }
	into := with("convert", "--write", "--into", "new", "--state", filepath.Join(dir, "into"), "--batch", "10")
	if r := command(t, s, into...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "Verified") || strings.Contains(r.stdout, "Not verified") {
		t.Error(r.stdout)
	}
	command(t, s, with("convert", "--write", "--state", state, "--undo-log", undo, "--batch", "10")...).want(t, failure.ExitIncomplete)
	got := all(t, coll)
	for id := range want {
		if !got[id].Lookup("id").Equal(want[id].Lookup("id")) {
			t.Errorf("%v, want %v", got[id], want[id])
		}
	}
	for _, tt := range []struct {
		args   []string
		code   int
		basis  string
		left   int64
		oldest int64
	}{
		{with("verify"), failure.ExitIncomplete, "subtypes", 0, 1},
		{with("verify", "--state", state), failure.ExitOK, "subtypes", 1, 0},
		{with("verify", "--undo-log", undo), failure.ExitIncomplete, "undoLog", 0, 1},
		{with("verify", "--undo-log", undo, "--state", state), failure.ExitOK, "undoLog", 1, 0},
	} {
		r := command(t, s, append(tt.args, "--output", "json")...).want(t, tt.code)
		var v struct {
			RestsOn string
			Result  struct{ ValuesLeft, OldValues int64 }
		}
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.RestsOn != tt.basis || v.Result.ValuesLeft != tt.left || v.Result.OldValues != tt.oldest {
			t.Errorf("%v, %q: %s", err, tt.args, r.stdout)
		}
	}
	if r := command(t, s, with("verify", "--state", state)...); !strings.Contains(r.stdout, "Proven by the subtypes alone") {
		t.Error(r.stdout)
	}
	command(t, s, with("verify", "--undo-log", undo, "--field", "id")...).want(t, failure.ExitUsage)
	command(t, s, with("verify", "--state", filepath.Join(dir, "into"))...).want(t, failure.ExitUsage)
}

// A copy that has values that the decision left unchanged is proven with the decision in the
// directory, also without the record.
func TestProofOfCopyWithSkippedValues(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
	insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: "stray"}, {Key: "id", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}})
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), intoNew("c"))
	command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	if err := db.Collection(record.Name).Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}

// A conversion of the documents that match a filter is proven for them. The files belong to the
// filter, and a filter that matches nothing proves nothing.
func TestProofOfQuery(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		seed(t, coll, 30, uuidrep.JavaLegacy, to)
		dir := t.TempDir()
		base := []string{"--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", to.String(), "--state", filepath.Join(dir, "state"), "--undo-log", filepath.Join(dir, "undo")}
		with := func(cmd string, more ...string) []string { return append(append([]string{cmd}, base...), more...) }
		half := []string{"--query", `{"_id": {"$lt": 15}}`}
		if r := command(t, s, with("convert", "--write", "--query", `{"_id": {"$lt": -15}}`)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "no document") {
			t.Error(r.stderr)
		}
		for _, f := range []string{"state", "undo"} {
			_ = os.Remove(filepath.Join(dir, f))
		}
		command(t, s, append(with("convert", "--write"), half...)...).want(t, failure.ExitOK)
		command(t, s, append(with("verify"), half...)...).want(t, failure.ExitOK)
		if r := command(t, s, with("verify")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, `--query '{"_id":{"$lt":`) {
			t.Error(r.stderr)
		}
		command(t, s, with("verify", "--query", `{"_id": {"$lt": 16}}`)...).want(t, failure.ExitUsage)
		if to == uuidrep.Standard {
			alone := []string{"verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
			command(t, s, append(alone, half...)...).want(t, failure.ExitOK)
			command(t, s, append(alone, "--query", `{"_id": {"$lt": 16}}`)...).want(t, failure.ExitIncomplete)
			command(t, s, append(alone, "--query", `{"_id": {"$lt": -16}}`)...).want(t, failure.ExitUsage)
			command(t, s, append(alone, "--query", `{`)...).want(t, failure.ExitUsage)
		}
	}
}

// A proof by subtypes alone is one of the collection that was converted, and not of another one that has
// its name since.
func TestProofOfReplacedCollection(t *testing.T) {
	s := mongotest.Start(t)
	c := connect(t, s).Collection("c")
	seed(t, c, 10, uuidrep.JavaLegacy, uuidrep.Standard)
	named := []string{"--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
	command(t, s, append(append([]string{"convert", "--write"}, gentle...), named...)...).want(t, failure.ExitOK)
	verify := append([]string{"verify"}, named...)
	command(t, s, verify...).want(t, failure.ExitOK)
	if err := losses["replaced"].do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, verify...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "another collection than the one that was converted") {
		t.Error(r.stderr)
	}
}
