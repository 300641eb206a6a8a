package servertest

import (
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

// A file of something else, with the name of a state file or an undo log, is never used and never damaged.
func TestOtherFiles(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
	seed(t, coll, 10, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, coll)
	whole := filepath.Dir(planned(t, s))
	const state = `{"bsonids":"state 1","conversion":{"database":"x","collection":"c","from":"javaLegacy","to":"standard"},"done":false,"changedDocuments":0}`
	other := filepath.Join(t.TempDir(), "other")
	l, err := convert.OpenUndoLog(other, convert.Identity{Database: "x", Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy", To: "standard"}}}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	undo := text(t, other)
	for _, content := range []string{"text", "line\n", "line\nthat doesn't end", "\n", "{", state, state + "\n", undo[:len(undo)-1] + "x"} {
		for _, end := range []string{".state", ".undo"} {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "c"+end)
			put(t, path, content)
			command(t, s, "apply", dir, "--write").want(t, failure.ExitUsage).says(t, path)
			if got := text(t, path); got != content {
				t.Errorf("%s: %q became %q", end, content, got)
			}
			equal(t, all(t, coll), before)
		}
	}
}

// Parts that begin after another one has written find its documents and continue. They never write among documents
// of another collection.
func TestPartsIntoOne(t *testing.T) {
	s, db := started(t)
	want := seed(t, db.Collection("c"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	if err := db.CreateCollection(t.Context(), "new"); err != nil { // as for a collection that is to be sharded
		t.Fatal(err)
	}
	first := onePart(t, s, "1/3", copiedInto("c", "new"))
	for i, dir := range []string{partLike(t, s, "2/3", first), first, ""} {
		if i == 2 { // planned when the others are done
			dir = partLike(t, s, "3/3", first)
		}
		command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	}
	equal(t, all(t, db.Collection("new")), want)

	var docs []any
	for i := range 6 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "precious", Value: true}})
	}
	insert(t, db.Collection("another"), docs)
	before := all(t, db.Collection("another"))
	first = onePart(t, s, "1/2", copiedInto("c", "another"))
	for _, dir := range []string{first, partLike(t, s, "2/2", first)} {
		if r := command(t, s, "apply", dir, "--write").says(t, "not converted copies"); r.code == failure.ExitOK {
			t.Errorf("%s: %s%s", dir, r.stdout, r.stderr)
		}
		equal(t, all(t, db.Collection("another")), before)
	}
}
