package servertest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// snapshot returns the documents of the record.
func snapshot(t testing.TB, db *mongo.Database) (docs []any) {
	for _, d := range all(t, db.Collection(record.Name)) {
		docs = append(docs, d)
	}
	return docs
}

// A record that was dropped, or replaced by one from before, is found by every verb that writes. Status names the
// flag that restores it, and after that the migration goes on, and can be undone.
func TestRecordForgets(t *testing.T) {
	for name, older := range map[string]bool{"dropped": false, "older": true} {
		for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
			t.Run(name+"/"+to.String(), func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				coll := db.Collection("c")
				converted := seed(t, coll, 30, uuidrep.JavaLegacy, to)
				before := all(t, coll)
				dir := prepared(t, s, to.String())
				write := []string{"apply", dir, "--batch", "10", "--write"}
				command(t, s, write...).want(t, failure.ExitOK)
				docs := snapshot(t, db)
				command(t, s, write...).want(t, failure.ExitOK)
				if err := db.Collection(record.Name).Drop(t.Context()); err != nil {
					t.Fatal(err)
				}
				if older {
					insert(t, db.Collection(record.Name), docs)
				}
				for _, args := range [][]string{write, {"apply", dir}, {"undo", dir}, {"undo", dir, "--write"}} {
					if r := command(t, s, args...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "bsonids plan "+dir+" --restore-record") {
						t.Errorf("%v: %s", args, r.stderr)
					}
				}
				equal(t, all(t, coll), converted)
				if r := command(t, s, "status", dir).want(t, failure.ExitOK); !strings.Contains(r.stdout, "--restore-record") {
					t.Error(r.stdout)
				}
				command(t, s, "plan", dir, "--restore-record").want(t, failure.ExitOK)
				command(t, s, "plan", dir, "--restore-record").want(t, failure.ExitOK)
				if r := command(t, s, "status", dir).want(t, failure.ExitOK); strings.Contains(r.stdout, "--restore-record") || !strings.Contains(r.stdout, "1 of 1 conversions done") {
					t.Error(r.stdout)
				}
				command(t, s, write...).want(t, failure.ExitOK)
				equal(t, all(t, coll), converted)
				command(t, s, "verify", dir).want(t, failure.ExitOK)
				command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
				equal(t, all(t, coll), before)
			})
		}
	}
}

// Each part of a division restores to a record that was dropped what it knows. A part that begins after that takes over
// their decision, and the record adds all of them up.
func TestRecordForgetsParts(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		db := connect(t, s)
		coll := db.Collection("c")
		converted := seed(t, coll, 90, uuidrep.JavaLegacy, to)
		before := all(t, coll)
		dirs := partsTo(t, s, 3, to.String(), convertFields("javaLegacy", ""))
		for _, dir := range dirs[:2] {
			command(t, s, applying(dir)...).want(t, failure.ExitOK)
		}
		if err := db.Collection(record.Name).Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs[:2] {
			if r := command(t, s, applying(dir)...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "bsonids plan "+dir+" --restore-record") {
				t.Error(r.stderr)
			}
			command(t, s, "plan", dir, "--restore-record").want(t, failure.ExitOK)
		}
		if d := divisionsOf(t, s, s.Database()); len(d) != 1 || d[0].Parts != 3 || d[0].PartsDone != 2 || !slices.Equal(d[0].PartsMissing, []string{"1/3"}) {
			t.Errorf("%+v", d)
		}
		command(t, s, applying(dirs[2])...).want(t, failure.ExitOK)
		equal(t, all(t, coll), converted)
		if d := divisionsOf(t, s, s.Database()); len(d) != 1 || d[0].PartsDone != 3 || len(d[0].PartsMissing) > 0 {
			t.Errorf("%+v", d)
		}
		for _, dir := range dirs {
			command(t, s, applying(dir)...).want(t, failure.ExitOK)
			command(t, s, "verify", dir).want(t, failure.ExitOK)
		}
		for _, dir := range dirs {
			command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
		}
		equal(t, all(t, coll), before)
	}
}

// A directory that is a copy from before a field was decided is refused, because it does not know of the pass that
// has converted it, and the latest one is not.
func TestDirectoryFromBefore(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	late(t, coll, 30, uuidrep.Standard)
	file := planned(t, s)
	dir := filepath.Dir(file)
	setDecision(t, file, "b[]", "leave")
	write := []string{"apply", dir, "--batch", "10", "--write"}
	command(t, s, write...).want(t, failure.ExitOK)
	earlier := filepath.Join(t.TempDir(), "earlier")
	if err := os.CopyFS(earlier, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	setDecision(t, file, "b[]", "convert from javaLegacy")
	command(t, s, write...).want(t, failure.ExitOK)
	converted := all(t, coll)
	for _, args := range [][]string{{"apply", earlier}, {"apply", earlier, "--write"}, {"undo", earlier}, {"undo", earlier, "--write"}, {"plan", earlier, "--restore-record"}} {
		if r := command(t, s, args...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, earlier+": the directory is an older copy") || !strings.Contains(r.stderr, dir) {
			t.Errorf("%v: %s", args, r.stderr)
		}
		equal(t, all(t, coll), converted)
	}
	command(t, s, write...).want(t, failure.ExitOK)
}

// A migration whose directory is lost is abandoned by the id that status prints. A new plan leaves the fields of
// which it has converted values within one subtype, and converts others. The old directory, if it comes back, is
// refused.
func TestAbandon(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	coll := db.Collection("c")
	var docs []any
	for i := range 30 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(v4(i), uuidrep.JavaLegacy)}, {Key: "b", Value: in(v4(100+i), uuidrep.JavaLegacy)}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	file := planned(t, s, "--to", "csharpLegacy")
	lost := filepath.Dir(file)
	setDecision(t, file, "b", "leave")
	var batches atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "c" && r.documents > 1 && batches.Add(1) == 2 {
			return nil // as if the process or the server had died
		}
		return pass()
	})
	command(t, p, "apply", lost, "--batch", "10", "--batch-timeout", "5s", "--retry-for", "0s", "--write").want(t, failure.ExitUnreachable)
	half := all(t, coll)
	r := command(t, s, "status", "--db", db.Name()).want(t, failure.ExitOK)
	id := regexp.MustCompile(`Migration ([0-9a-f]{16}) to csharpLegacy: `).FindStringSubmatch(r.stdout)
	if id == nil {
		t.Fatal(r.stdout)
	}
	dir := filepath.Join(t.TempDir(), "new.d")
	command(t, s, "plan", dir, "--db", db.Name(), "--to", "csharpLegacy", "--abandon", "0123456789abcdef").want(t, failure.ExitUsage)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	command(t, s, "plan", dir, "--db", db.Name(), "--to", "csharpLegacy", "--abandon", id[1]).want(t, failure.ExitOK)
	yaml := text(t, filepath.Join(dir, "plan.yaml"))
	_, a, _ := strings.Cut(yaml, `- path: "a"`)
	a, _, _ = strings.Cut(a, "- path:")
	if !strings.Contains(a, "decision: leave") || !strings.Contains(yaml, "was abandoned on") {
		t.Fatal(yaml)
	}
	command(t, s, "apply", dir, "--batch", "10", "--batch-timeout", "5s", "--write").want(t, failure.ExitOK)
	now := all(t, coll)
	converted := 0
	for id, d := range half {
		if got, want := now[id].Lookup("a"), d.Lookup("a"); !got.Equal(want) {
			t.Errorf("%s: %s was %s", id, got, want)
		}
		if !d.Lookup("a").Equal(before[id].Lookup("a")) {
			converted++
		}
		u, err := uuidOf(d.Lookup("b"))
		if err != nil {
			t.Fatal(err)
		}
		if want := marshalValue(t, in(u, uuidrep.CSharpLegacy)); !now[id].Lookup("b").Equal(want) {
			t.Errorf("%s: got %s, want %s", id, now[id].Lookup("b"), want)
		}
	}
	if converted == 0 || converted == len(before) {
		t.Errorf("the abandoned migration has converted %d of %d values", converted, len(before))
	}
	for _, args := range [][]string{{"apply", lost, "--write"}, {"undo", lost, "--write"}} {
		if r := command(t, s, args...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "was abandoned") {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
	if r := command(t, s, "status", "--db", db.Name()).want(t, failure.ExitOK); !strings.Contains(r.stdout, "abandoned on") {
		t.Error(r.stdout)
	}
}
