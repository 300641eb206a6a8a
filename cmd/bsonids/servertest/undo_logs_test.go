package servertest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
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
	"all gone":   func(path string, b []byte) error { return os.WriteFile(path, b[:firstRecord(b)], 0o600) },
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

// firstRecord returns the offset of the first record after the header.
func firstRecord(b []byte) int { return recordsOf(b)[1] }

// logText returns an undo log as text.
func logText(t testing.TB, path string) string {
	t.Helper()
	var b bytes.Buffer
	if err := convert.WriteText(&b, path); err != nil {
		t.Error(err)
	}
	return b.String()
}

// The undo of a plan changes nothing if one of the undo logs lacks what was written to it, or if a
// state file does not tell. It names the files.
func TestUndoPlanWithoutLog(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 12)
	before := map[string]map[string]bson.Raw{"orders": all(t, db.Collection("orders")), "invoices": all(t, db.Collection("invoices"))}
	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, mixed...)
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	logs, err := filepath.Glob(filepath.Join(dir, "*.undo"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("%q, %v", logs, err)
	}
	undo := []string{"undo", dir, "--batch", "10"}
	refused := func(t *testing.T, how string, paths ...string) {
		t.Helper()
		for _, args := range [][]string{undo, append(undo[:len(undo):len(undo)], "--write")} {
			r := command(t, s, args...).want(t, failure.ExitFailed)
			for _, path := range paths {
				if !strings.Contains(r.stderr, path) {
					t.Errorf("%s: %s is not named: %s", how, path, r.stderr)
				}
			}
		}
		whole(t, db, want)
	}
	for how, spoil := range spoilt {
		for _, path := range []string{logs[0], logs[3]} {
			b, err := os.ReadFile(path)
			if err == nil {
				err = spoil(path, bytes.Clone(b))
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Run(how, func(t *testing.T) { refused(t, how, path) })
			_ = os.Remove(path)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Two that are exchanged, and all that are missing, are named.
	swap := func(a, b string) {
		for _, p := range [][2]string{{a, dir + "/x"}, {b, a}, {dir + "/x", b}} {
			if err := os.Rename(p[0], p[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap(logs[1], logs[2])
	refused(t, "exchanged", logs[1], logs[2])
	swap(logs[1], logs[2])
	states := make([]string, len(logs))
	for i, path := range logs {
		states[i] = strings.TrimSuffix(path, ".undo") + ".state"
	}
	for _, path := range slices.Concat(states, logs) {
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "the state files and the logs", states[0], states[3])
	for _, path := range states {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, "all logs", logs...)
	for _, path := range logs {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK)
	whole(t, db, before)
}

// The undo of one of two conversions names the log of the other one, whose values it leaves.
func TestUndoNamesOtherLogs(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 20, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, coll)
	first := onePart(t, s, "1/2")
	command(t, s, "apply", first, "--batch", "10", "--write").want(t, failure.ExitOK)
	second := prepared(t, s, "standard")
	command(t, s, "apply", second, "--batch", "10", "--write").want(t, failure.ExitOK)
	if r := command(t, s, "undo", second, "--write").want(t, failure.ExitOK); !strings.Contains(r.stderr, "its undo log is "+onlyFile(t, first, ".undo")) {
		t.Error(r.stderr)
	}
	if r := command(t, s, "undo", first, "--write").want(t, failure.ExitOK); strings.Contains(r.stderr, "its undo log is") {
		t.Error(r.stderr)
	}
	whole(t, coll.Database(), map[string]map[string]bson.Raw{"c": before})
}

// A proof by an undo log that lost its last lines fails, also after the values without a line were overwritten, and if
// the record, or also the state file, that tell its size are gone.
func TestProofWithoutLines(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		db := connect(t, s)
		coll := db.Collection("c")
		seed(t, coll, 40, uuidrep.JavaLegacy, to)
		dir := prepared(t, s, to.String())
		state, undo := filepath.Join(dir, "c.javaLegacy.state"), filepath.Join(dir, "c.javaLegacy.undo")
		command(t, s, applying(dir)...).want(t, failure.ExitOK)
		verify := []string{"verify", dir, "--allow-changed"}
		command(t, s, verify...).want(t, failure.ExitOK)
		b, err := os.ReadFile(undo)
		if err != nil {
			t.Fatal(err)
		}
		cut := b
		for range 20 {
			cut = cut[:len(cut)-lastRecord(cut)]
		}
		if err := os.WriteFile(undo, cut, 0o600); err != nil {
			t.Fatal(err)
		}
		notProven := func(path string) {
			t.Helper()
			if r := command(t, s, verify...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, path) {
				t.Error(r.stderr)
			}
		}
		notProven(undo)
		for i := 20; i < 40; i++ {
			if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: in(uuid.New(), to)}}}}); err != nil {
				t.Fatal(err)
			}
		}
		notProven(undo)
		if err := db.Collection(record.Name).Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		notProven(undo) // the state file tells
		if err := os.Remove(state); err != nil {
			t.Fatal(err)
		}
		notProven(state)
	}
}

// Within one subtype, a value that looks converted and has no line is a difference, unless it was left
// and listed.
func TestProofOfConvertedValueWithoutLine(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 40, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	for i := range 3 { // values of another service, in the new order
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "id", Value: in(v4(i), uuidrep.CSharpLegacy)}}})
	}
	dir := prepared(t, s, "csharpLegacy", convertFields("javaLegacy", ""))
	command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitIncomplete)
	verify := []string{"verify", dir}
	command(t, s, verify...).want(t, failure.ExitOK)
	insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(200)}, {Key: "id", Value: in(v4(7), uuidrep.CSharpLegacy)}}})
	if r := command(t, s, verify...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "200") {
		t.Error(r.stdout)
	}
	command(t, s, append(verify, "--allow-changed")...).want(t, failure.ExitOK)
}

// A document of which a service changed one value has its other values restored. What is not restored
// is listed, and the undo can be ended without it.
func TestUndoByValue(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		seed(t, coll, 60, uuidrep.JavaLegacy, to)
		want := all(t, coll)
		dir := prepared(t, s, to.String())
		command(t, s, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitOK)
		fresh := make(map[int]bson.Binary)
		for i := 20; i < 40; i++ {
			fresh[i] = in(v4(i), to)
			if _, err := coll.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: i}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: fresh[i]}}}}); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"undo", dir, "--batch", "10"}
		foreign := ""
		if to == uuidrep.Standard {
			foreign = `"newValuesNotInUndoLog": 20`
		}
		for range 2 {
			r := command(t, s, append(args, "--output", "json")...).want(t, failure.ExitIncomplete)
			if !strings.Contains(r.stdout, `"changedSince": 20`) || !strings.Contains(r.stdout, `"valuesLeft": 20`) || !strings.Contains(r.stdout, foreign) ||
				strings.Count(r.stdout, `"id: another program`) != 20 {
				t.Error(r.stdout)
			}
			if r = command(t, s, append(args, "--write")...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "--allow-changed") {
				t.Error(r.stdout)
			}
		}
		for id, doc := range all(t, coll) {
			if b, ok := fresh[int(doc.Lookup("_id").Int32())]; ok {
				if got := doc.Lookup("id"); !got.Equal(marshalled(t, b)) {
					t.Errorf("%s: the value of the service became %v", id, got)
				}
				continue
			}
			if !bytes.Equal(doc, want[id]) {
				t.Errorf("%v, want %v", doc, want[id])
			}
		}
		for _, doc := range all(t, coll) {
			if got, w := doc.Lookup("items"), want[doc.Lookup("_id").String()].Lookup("items"); !got.Equal(w) {
				t.Errorf("%v, want %v", got, w)
			}
		}
		if r := command(t, s, append(args, "--write", "--allow-changed")...).want(t, failure.ExitOK); strings.Contains(r.stdout, "give --allow-changed") {
			t.Error(r.stdout)
		}
		// The undo is complete, and another conversion may begin.
		other := prepared(t, s, to.String(), convertFields("javaLegacy", ""), trusted("id"))
		command(t, s, "apply", other, "--write", "--batch", "10")
		if _, err := os.Stat(filepath.Join(other, "c.javaLegacy.undo")); err != nil {
			t.Error("no other conversion began")
		}
	}
}

func marshalled(t testing.TB, v any) bson.RawValue {
	t.Helper()
	typ, b, err := bson.MarshalValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return bson.RawValue{Type: typ, Value: b}
}
