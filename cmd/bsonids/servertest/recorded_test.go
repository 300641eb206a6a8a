package servertest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
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
		for _, to := range targets {
			t.Run(name+"/"+to.String(), func(t *testing.T) {
				c := newScene(t, 30, uuidrep.JavaLegacy, to)
				c.ok("apply --write")
				docs := snapshot(t, c.db)
				c.ok("apply --write")
				drop(t, c.db.Collection(record.Name))
				if older {
					insert(t, c.db.Collection(record.Name), docs)
				}
				for _, line := range []string{"apply --write", "apply", "undo", "undo --write"} {
					c.run(failure.ExitFailed, line).says(t, "bsonids plan "+c.dir+" --restore-record")
				}
				c.converted()
				c.run(failure.ExitOK, "status").prints(t, "--restore-record")
				c.ok("plan --restore-record", "plan --restore-record")
				c.run(failure.ExitOK, "status").prints(t, "1 of 1 conversions done").lacks(t, "--restore-record")
				c.ok("apply --write", "verify")
				c.converted()
				c.ok("undo --write")
				c.unchanged()
			})
		}
	}
}

// Each part of a division restores to a record that was dropped what it knows. A part that begins after that takes over
// their decision, and the record adds all of them up.
func TestRecordForgetsParts(t *testing.T) {
	for _, to := range targets {
		c := inParts(t, 3, 90, uuidrep.JavaLegacy, to, convertFields("javaLegacy", ""))
		for _, p := range c.parts[:2] {
			p.ok(apply)
		}
		drop(t, c.db.Collection(record.Name))
		for _, p := range c.parts[:2] {
			p.run(failure.ExitFailed, apply).says(t, "bsonids plan "+p.dir+" --restore-record")
			p.ok("plan --restore-record")
		}
		if d := c.division(); d.Parts != 3 || d.PartsDone != 2 || !slices.Equal(d.PartsMissing, []string{"1/3"}) {
			t.Errorf("%+v", d)
		}
		c.parts[2].ok(apply)
		c.converted()
		if d := c.division(); d.PartsDone != 3 || len(d.PartsMissing) > 0 {
			t.Errorf("%+v", d)
		}
		c.each(apply, "verify")
		c.each("undo --write")
		c.unchanged()
	}
}

// A directory that is a copy from before a field was decided is refused, because it does not know of the pass that
// has converted it, and the latest one is not. So is one from before the first batch, which does not tell that its plan was applied: the
// record does.
func TestDirectoryFromBefore(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy, uuidrep.Standard)
	setDecision(t, c.file("plan.yaml"), "id", "leave")
	c.through(lostAfter(t, c.s, 0, asks("update", record.Name))).run(failure.ExitUnreachable, "apply --write")
	begun := c.in(copied(t, c.dir))
	c.ok("apply --write --batch-timeout 5s")
	earlier := c.in(copied(t, c.dir))
	setDecision(t, c.file("plan.yaml"), "id", "convert from javaLegacy")
	c.ok("apply --write")
	for _, line := range []string{"undo", "undo --write"} {
		begun.run(failure.ExitFailed, line).says(t, begun.dir)
		c.converted()
	}
	for _, line := range []string{"apply", "apply --write", "undo", "undo --write", "plan --restore-record"} {
		earlier.run(failure.ExitFailed, line).says(t, earlier.dir+": the directory is an older copy", c.dir)
		c.converted()
	}
	c.ok("apply --write")
}

// A migration whose directory is lost is abandoned by the id that status prints. A new plan leaves the fields of
// which it has converted values within one subtype, and converts others. The old directory, if it comes back, is
// refused.
func TestAbandon(t *testing.T) {
	s, db := started(t)
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
	p := lostAfter(t, s, 1, writesTo("c")) // as if the process or the server had died
	command(t, p, "apply", lost, "--batch", "10", "--batch-timeout", "5s", "--write").want(t, failure.ExitUnreachable)
	half := all(t, coll)
	r := command(t, s, "status", "--db", db.Name()).want(t, failure.ExitOK)
	id := regexp.MustCompile(`Migration ([0-9a-f]{16}) to csharpLegacy: `).FindStringSubmatch(r.stdout)
	if id == nil {
		t.Fatal(r.stdout)
	}
	dir := filepath.Join(t.TempDir(), "new.d")
	abandon := []string{"plan", dir, "--db", db.Name(), "--to", "csharpLegacy", "--abandon"}
	command(t, s, append(abandon, "0123456789abcdef")...).want(t, failure.ExitUsage)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	command(t, s, append(abandon, id[1])...).want(t, failure.ExitOK)
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
	for _, verb := range []string{"apply", "undo"} {
		command(t, s, verb, lost, "--write").want(t, failure.ExitFailed).says(t, "was abandoned")
	}
	command(t, s, "status", "--db", db.Name()).want(t, failure.ExitOK).prints(t, "abandoned on")
}
