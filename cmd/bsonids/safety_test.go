package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// --into with --part may find documents of other parts, but never writes among those of another collection.
func TestPartIntoAnotherCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 6, uuidrep.JavaLegacy, uuidrep.Standard)
	var docs []any
	for i := range 6 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "precious", Value: true}})
	}
	insert(t, db.Collection("another"), docs)
	before := all(t, db.Collection("another"))
	for _, part := range []string{"1/2", "2/2"} {
		r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "another", "--part", part, "--write",
			"--state", filepath.Join(t.TempDir(), "s"))
		if r.code == exitOK {
			t.Errorf("part %s: %s%s", part, r.stdout, r.stderr)
		}
		equal(t, all(t, db.Collection("another")), before)
	}
}

// Nothing is proven of a collection that is not there.
func TestNoCollection(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 3, uuidrep.JavaLegacy, uuidrep.Standard)
	undo := filepath.Join(t.TempDir(), "undo")
	command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--undo", undo, "--write").want(t, exitOK)
	for _, args := range [][]string{
		{"verify", "--db", s.Database(), "--collection", "d", "--from", "javaLegacy"},
		{"verify", "--db", s.Database(), "--collection", "d", "--from", "javaLegacy", "--into", "e"},
		{"verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "e"},
	} {
		if r := command(t, s, args...).want(t, exitUsage); !strings.Contains(r.stderr, "there is no collection "+s.Database()) {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
	if err := db.Collection("c").Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	command(t, s, "verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--undo", undo).want(t, exitUsage)
	command(t, s, "undo", undo).want(t, exitUsage)
	command(t, s, "undo", undo, "--write").want(t, exitUsage)
}

// A finished conversion is told in the format that was asked for, and never with advice that would convert twice.
func TestFinished(t *testing.T) {
	s := mongotest.Start(t)
	seed(t, connect(t, s).Collection("c"), 3, uuidrep.JavaLegacy, uuidrep.Standard)
	for _, extra := range [][]string{{"--to", "standard", "--into", "copy"}, {"--to", "pythonLegacy"}} {
		dir := t.TempDir()
		args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(dir, "s")}, extra...)
		if len(extra) == 2 {
			args = append(args, "--undo", filepath.Join(dir, "u"))
		}
		command(t, s, args...).want(t, exitOK)
		if r := command(t, s, args...).want(t, exitOK); !strings.Contains(r.stdout, "finished") || len(extra) == 2 && strings.Contains(r.stdout, "another state file") {
			t.Error(r.stdout)
		}
		var report struct {
			Finished bool
			Result   struct{ DocumentsChanged, DocumentsCopied int }
		}
		r := command(t, s, append(args, "--output", "json")...).want(t, exitOK)
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || !report.Finished || report.Result.DocumentsChanged+report.Result.DocumentsCopied != 0 {
			t.Errorf("%s: %v", r.stdout, err)
		}
	}
}

// What was skipped stays unfinished business, however often one asks.
func TestFinishedWithSkips(t *testing.T) {
	s := mongotest.Start(t)
	id := in(uuid.New(), uuidrep.JavaLegacy)
	insert(t, connect(t, s).Collection("c"), []any{bson.D{{Key: "_id", Value: id}, {Key: "a", Value: id}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: id}}})
	args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(t.TempDir(), "s")}
	command(t, s, args...).want(t, exitIncomplete)
	for range 2 {
		if r := command(t, s, args...).want(t, exitIncomplete); !strings.Contains(r.stdout, "finished") || !strings.Contains(r.stdout, "skipped 1 doc") {
			t.Error(r.stdout)
		}
	}
	var report struct {
		Finished bool
		Result   struct{ DocumentsSkipped int }
	}
	r := command(t, s, append(args, "--output", "json")...).want(t, exitIncomplete)
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || !report.Finished || report.Result.DocumentsSkipped != 1 {
		t.Errorf("%s: %v", r.stdout, err)
	}
}

// How far one collection came says nothing about another, though both have the same name.
func TestStateOfAnotherDeployment(t *testing.T) {
	dir := t.TempDir()
	for i, extra := range [][]string{{}, {"--into", "new"}} {
		s := mongotest.Start(t)
		db := connect(t, s)
		args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(dir, fmt.Sprint(i))}, extra...)
		seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
		command(t, s, args...).want(t, exitOK)
		for _, name := range []string{"c", "new"} {
			if err := db.Collection(name).Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
		before := all(t, db.Collection("c"))
		for range 2 { // refused for good
			if r := command(t, s, args...).want(t, exitUsage); !strings.Contains(r.stderr, "another collection of this name") {
				t.Error(r.stderr)
			}
		}
		equal(t, all(t, db.Collection("c")), before)
	}
}

// Parts that begin after another one has written find its documents, and go on.
func TestPartAfterAnother(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 8, uuidrep.JavaLegacy, uuidrep.Standard)
	if err := db.CreateCollection(t.Context(), "new"); err != nil { // as where it should be sharded
		t.Fatal(err)
	}
	for _, part := range []string{"2/3", "1/3", "3/3"} {
		command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--into", "new", "--part", part, "--write").want(t, exitOK)
	}
	equal(t, all(t, db.Collection("new")), want)
}

// A router reports a shard that stops being the primary for each document. None of them is skipped for it: the run ends, and
// the same command goes on.
func TestLostBehindRouter(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() != "update" || r.documents < 5 {
			return pass()
		}
		return r.refuse(189, "primary stepped down")
	})
	args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", filepath.Join(t.TempDir(), "state")}
	command(t, p, args...).want(t, exitUnreachable)
	command(t, s, args...).want(t, exitOK)
	equal(t, all(t, db.Collection("c")), want)
}
