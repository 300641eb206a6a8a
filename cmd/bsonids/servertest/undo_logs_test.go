package servertest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// spoilt are the ways in which a file may lack what was written to it.
var spoilt = map[string]func(path string, b []byte) error{
	"missing":   func(path string, _ []byte) error { return os.Remove(path) },
	"moved":     func(path string, _ []byte) error { return os.Rename(path, path+".old") },
	"empty":     func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	"a folder":  func(path string, _ []byte) error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
	"cut":       func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o600) },
	"half":      func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) },
	"last gone": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-lastRecord(b)], 0o600) },
	"all gone":  func(path string, b []byte) error { return os.WriteFile(path, b[:firstRecord(b)], 0o600) },
	"one bit":   func(path string, b []byte) error { b[len(b)/2] ^= 1; return os.WriteFile(path, b, 0o600) },
	"its twin": func(path string, b []byte) error {
		return os.WriteFile(path, append(b, b[len(b)-lastRecord(b):]...), 0o600)
	},
	"a stranger": func(path string, _ []byte) error { return os.WriteFile(path, []byte("hello\n"), 0o600) },
}

func lastRecord(b []byte) int  { return len(b) - 1 - bytes.LastIndexByte(b[:len(b)-1], '\n') }
func firstRecord(b []byte) int { return bytes.IndexByte(b, '\n') + 1 }

// The undo of a plan changes nothing if one of the undo logs lacks what was written to it, or if a
// state file does not tell. It names the files.
func TestUndoPlanWithoutLog(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 12)
	before := map[string]map[string]bson.Raw{"orders": all(t, db.Collection("orders")), "invoices": all(t, db.Collection("invoices"))}
	file, dir := planned(t, s), filepath.Join(t.TempDir(), "state")
	edit(t, file, left...)
	command(t, s, "apply", file, "--state-dir", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
	logs, err := filepath.Glob(filepath.Join(dir, "*.undo"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("%q, %v", logs, err)
	}
	undo := []string{"undo", file, "--state-dir", dir, "--batch", "10"}
	refused := func(how string, paths ...string) {
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
			refused(how, path)
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
	refused("exchanged", logs[1], logs[2])
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
	refused("the state files and the logs", states[0], states[3])
	for _, path := range states {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	refused("all logs", logs...)
	for _, path := range logs {
		if err := os.Rename(path+".away", path); err != nil {
			t.Fatal(err)
		}
	}
	command(t, s, append(undo, "--write")...).want(t, failure.ExitOK)
	whole(t, db, before)
}

// One undo log is checked as those of a plan are.
func TestUndoWithoutLines(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		want := seed(t, coll, 30, uuidrep.JavaLegacy, to)
		dir := t.TempDir()
		state, undo := filepath.Join(dir, "state"), filepath.Join(dir, "undo")
		command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", to.String(), "--batch", "10", "--write",
			"--state", state, "--undo-log", undo).want(t, failure.ExitOK)
		b, err := os.ReadFile(undo)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range []int{lastRecord(b), len(b) - firstRecord(b)} {
			if err := os.WriteFile(undo, b[:len(b)-cut], 0o600); err != nil {
				t.Fatal(err)
			}
			for _, more := range [][]string{nil, {"--no-record"}} {
				if r := command(t, s, append([]string{"undo", undo, "--write"}, more...)...).want(t, failure.ExitFailed); !strings.Contains(r.stderr, undo) {
					t.Error(r.stderr)
				}
			}
		}
		if err := os.Remove(state); err != nil { // the record alone tells
			t.Fatal(err)
		}
		command(t, s, "undo", undo, "--write").want(t, failure.ExitFailed)
		equal(t, all(t, coll), want)
	}
}
