package servertest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
	"github.com/bsonids/bsonids/uuidrep"
)

// spoilt are the ways in which a file may lack what was written to it.
var spoilt = map[string]func(path string, b []byte) error{
	"missing":    func(path string, _ []byte) error { return os.Remove(path) },
	"moved":      func(path string, _ []byte) error { return os.Rename(path, path+".old") },
	"empty":      func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	"a folder":   func(path string, _ []byte) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
	"cut":        func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o600) },
	"half":       func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) },
	"last gone":  func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-lastRecord(b)], 0o600) },
	"all gone":   func(path string, b []byte) error { return os.WriteFile(path, b[:recordsOf(b)[1]], 0o600) },
	"one bit":    func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
	"last bit":   func(path string, b []byte) error { b[len(b)-1] ^= 1; return os.WriteFile(path, b, 0o600) },
	"a stranger": func(path string, _ []byte) error { return os.WriteFile(path, []byte("hello\n"), 0o600) },
}

// recordsOf returns the offsets at which the records of an undo log begin, its header first, and its
// size: a line of text, and records of 12 bytes and their length, with which they begin.
func recordsOf(b []byte) []int {
	offsets := []int{bytes.IndexByte(b, '\n') + 1}
	for at := offsets[0]; at < len(b); {
		at += 12 + int(binary.LittleEndian.Uint32(b[at:]))
		offsets = append(offsets, at)
	}
	return offsets
}

// lastRecord returns the size of the last record of an undo log.
func lastRecord(b []byte) int {
	offsets := recordsOf(b)
	return len(b) - offsets[len(offsets)-2]
}

// log returns the path of the only undo log.
func (c *scene) log() string {
	c.Helper()
	logs, err := filepath.Glob(c.file("*.undo"))
	if err != nil || len(logs) != 1 {
		c.Fatalf("%q, %v", logs, err)
	}
	return logs[0]
}

// logOf returns the path of the only undo log in the directory of a collection.
func logOf(t testing.TB, dir, collection string) (path string) {
	t.Helper()
	logs, unread, err := undolog.In(dir)
	if err != nil || len(unread) > 0 {
		t.Fatal(unread, err)
	}
	for _, l := range logs {
		if l.Task.Collection == collection {
			if path != "" {
				t.Fatalf("%s and %s are of %s", path, l.Path(), collection)
			}
			path = l.Path()
		}
		check(t, l.Close())
	}
	return path
}

// logText returns an undo log as text.
func logText(t testing.TB, path string) string {
	t.Helper()
	var b bytes.Buffer
	if err := undolog.WriteText(&b, path); err != nil {
		t.Error(err)
	}
	return b.String()
}

// An undo log that lacks what was written to it proves nothing, with one exit code however it was damaged, and restores nothing, also
// of the other collections, until the user accepts that. It is named. apply and status name it, and go on: the way forward needs no log.
func TestSpoiltLog(t *testing.T) {
	for how, spoil := range spoilt {
		t.Run(how, func(t *testing.T) {
			c := newScene(t, 12, uuidrep.JavaLegacy)
			seed(t, c.db.Collection("d"), 12, uuidrep.JavaLegacy)
			c.plan(convertFields("javaLegacy"), accepted)
			before := all(t, c.db.Collection("d"))
			c.ok("apply --write", "verify")
			after := map[string]map[string]bson.Raw{"c": all(t, c.coll), "d": all(t, c.db.Collection("d"))}
			log := logOf(t, c.dir, "c")
			is := text(t, log)
			check(t, spoil(log, []byte(is)))
			for _, line := range []string{"verify", "undo", "undo --write", "apply"} {
				command(t, c.s, c.args(line)...).want(t, failure.ExitFailed).says(t, log)
			}
			command(t, c.s, c.args("status --checksums")...).want(t, failure.ExitFailed).prints(t, log, "2 of 2 conversions done")
			c.run(failure.ExitOK, "apply --write").says(t, log)
			whole(t, c.db, after)
			c.run(failure.ExitOK, "undo --write --without-lost-logs").says(t, log)
			equal(t, all(t, c.db.Collection("d")), before)
			_ = os.Remove(log)
			put(t, log, is)
			c.ok("undo --write")
		})
	}
}

// A proof by an undo log that lost its last lines fails, also after the values without a line were overwritten. If the record that
// tells its size is gone, the undo says that nothing tells.
func TestProofWithoutLines(t *testing.T) {
	c := newScene(t, 40, uuidrep.JavaLegacy)
	c.ok("apply --write", "verify --allow-changed")
	undo := c.log()
	b := []byte(text(t, undo))
	put(t, undo, string(b[:recordsOf(b)[21]]))
	c.run(failure.ExitFailed, "verify --allow-changed").says(t, undo)
	for i := 20; i < 40; i++ {
		set(t, c.coll, i, "id", in(v4(i), uuidrep.Standard))
	}
	c.run(failure.ExitFailed, "verify --allow-changed").says(t, undo)
	drop(t, c.db.Collection(record.Name))
	c.run(failure.ExitFailed, "undo").says(t, undo, "lost its end")
	c.run(failure.ExitFailed, "status").prints(t, undo)
}

// A document of which a service changed one value has its other values restored. What is not restored
// is listed, and the undo can be ended without it. The proof finds the change, too. A dry run counts the fields that are decided.
func TestUndoByValue(t *testing.T) {
	c := newScene(t, 60, uuidrep.JavaLegacy, convertFields("javaLegacy", "items.sku"))
	c.run(failure.ExitOK, "apply --output json").prints(t, `"values": 60`)
	c.unchanged()
	changePlan(t, c.dir, convertFields("javaLegacy"))
	c.ok("apply --write", "verify")
	c.converted()
	for i := 20; i < 40; i++ {
		fresh := marshalValue(t, in(v4(i), uuidrep.Standard))
		set(t, c.coll, i, "id", fresh)
		var doc bson.D // as undo must leave it
		if err := bson.Unmarshal(c.before[marshalValue(t, int32(i)).String()], &doc); err != nil {
			t.Fatal(err)
		}
		doc[1].Value = fresh
		note(c.before, doc)
	}
	c.run(failure.ExitIncomplete, "verify --output json")
	c.ok("verify --allow-changed")
	texts := []string{`"changedSince": 20`, `"valuesLeft": 20`, `"newValuesNotInUndoLog": 20`}
	for range 2 {
		r := c.run(failure.ExitIncomplete, "undo --output json").prints(t, texts...)
		if strings.Count(r.stdout, `"id: the value was changed after`) != 20 {
			t.Error(r.stdout)
		}
		c.run(failure.ExitIncomplete, "undo --write").prints(t, "--allow-changed")
		c.unchanged()
	}
	c.run(failure.ExitOK, "undo --write --allow-changed").lacks(t, "give --allow-changed")
	// The undo is complete, and another conversion may begin.
	other := prepared(t, c.s, convertFields("javaLegacy"), trusted("id"))
	command(t, c.s, "apply", other, "--write")
	if logOf(t, other, "c") == "" {
		t.Error("no other conversion began")
	}
}

// The log of a conversion that was undone restores nothing of a later one, which has a log of its own.
func TestUndoOfAnEarlierConversion(t *testing.T) {
	c := newScene(t, 30, uuidrep.JavaLegacy)
	second := c.in(prepared(t, c.s))
	c.ok("apply --write", "undo --write", "undo --write") // nothing is left to do
	second.ok("apply --write --batch-timeout 2s")         // so long waits an undo without the record
	c.ok("undo", "undo --write")
	c.converted()
	drop(t, c.db.Collection(record.Name)) // the log itself says that it is undone
	c.run(failure.ExitUsage, "undo --write --without-record")
	c.converted()
	second.ok("undo --write --without-record")
	c.unchanged()
}

// The undo of several runs of one plan, which is stopped between them, calls none of them another conversion.
func TestUndoOfRuns(t *testing.T) {
	c := twoRuns(t)
	c.ok(apply)
	stopped := c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, "undo --write --batch-timeout 5s")
	dir := moved(t, c.dir)
	rest := c.in(dir).run(failure.ExitOK, "undo --write --batch-timeout 5s")
	stopped.lacks(t, "another conversion")
	rest.lacks(t, "another conversion")
	c.unchanged()
}

// twoRuns is a scene with three values that a finished conversion has left, and that a second run, which has not begun, will convert.
func twoRuns(t *testing.T) *scene {
	t.Helper()
	values := odd(3)
	for range 200 {
		values = append(values, v4(len(values)))
	}
	c := pairs(t, 203, func(i int) (old, converted bson.D) {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.JavaLegacy)}},
			bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(values[i], uuidrep.Standard)}}
	})
	c.run(failure.ExitIncomplete, apply)
	changePlan(t, c.dir, trusted("a"))
	return c
}

// A second plan of a database is undone for itself: what the first one has converted stays.
func TestUndoOfASecondPlan(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("z")
	seed(t, coll, 20, uuidrep.JavaLegacy)
	command(t, s, applying(filepath.Dir(planned(t, s)))...).want(t, failure.ExitOK)
	// A service writes old values again, and another collection is new.
	for i := range 12 {
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(1000 + i)}, {Key: "id", Value: in(v4(i), uuidrep.JavaLegacy)}}})
	}
	now := all(t, coll)
	seed(t, db.Collection("b"), 20, uuidrep.JavaLegacy)
	before := all(t, db.Collection("b"))
	second := filepath.Dir(planned(t, s))
	p := lostAfter(t, s, 1, writesTo("b", "z")) // the second plan does not come to z
	command(t, p, applying(second, "--collections-at-once", "1", "--batch-timeout", "5s")...).want(t, failure.ExitUnreachable)
	command(t, s, "undo", second, "--write", "--batch-timeout", "5s").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("b")), before)
	equal(t, all(t, coll), now)
}
