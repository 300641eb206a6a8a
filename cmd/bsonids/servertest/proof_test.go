package servertest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
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

// The proof says what it is based on. Values that the decision leaves as they are do not fail it.
func TestProofNamesItsBasis(t *testing.T) {
	for _, tt := range []struct {
		to      uuidrep.Representation
		changes []func(*plan.Plan)
		basis   string
		text    string
	}{
		{uuidrep.Standard, nil, "undoLog", "Proven by the undo logs"},
		{uuidrep.CSharpLegacy, nil, "undoLog", "Proven by the undo logs"},
		{uuidrep.Standard, []func(*plan.Plan){intoNew("c")}, "source", "Proven"},
	} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		seed(t, coll, 40, uuidrep.JavaLegacy, tt.to)
		insert(t, coll, []any{bson.D{{Key: "_id", Value: "stray"}, {Key: "id", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}})
		dir := prepared(t, s, tt.to.String(), append(tt.changes, convertFields("javaLegacy", ""))...)
		command(t, s, applying(dir)...).want(t, failure.ExitIncomplete)
		r := command(t, s, "verify", dir, "--output", "json").want(t, failure.ExitOK)
		var v struct {
			Steps []struct {
				Proven  bool
				RestsOn string
				Result  struct{ ValuesLeft, OldValues int64 }
			}
		}
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.Steps) != 1 || !v.Steps[0].Proven || v.Steps[0].RestsOn != tt.basis ||
			v.Steps[0].Result.ValuesLeft != 1 || v.Steps[0].Result.OldValues != 0 {
			t.Errorf("%v: %s", err, r.stdout)
		}
		if r := command(t, s, "verify", dir).want(t, failure.ExitOK); !strings.Contains(r.stdout, tt.text) {
			t.Error(r.stdout)
		}
	}
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

// A filter that matches nothing any more proves nothing, also if deleted documents are accepted.
func TestProofOfFilterWithoutDocuments(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		batched(t, coll, 30, uuidrep.JavaLegacy, uuidrep.JavaLegacy)
		file := planned(t, s, "--to", to.String())
		filtered(t, s, file, []string{`{"batch": 0}`}, []string{""})
		dir := filepath.Dir(file)
		command(t, s, applying(dir)...).want(t, failure.ExitOK)
		if _, err := coll.DeleteMany(t.Context(), bson.D{{Key: "batch", Value: 0}}); err != nil {
			t.Fatal(err)
		}
		for _, more := range [][]string{nil, {"--allow-changed"}} {
			if r := command(t, s, append([]string{"verify", dir}, more...)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, `no document matches the filter`) {
				t.Error(r.stderr)
			}
		}
	}
}
