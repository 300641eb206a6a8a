package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

type result struct {
	code           int
	stdout, stderr string
}

func command(t testing.TB, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

func (r result) want(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// Each failure is reported as one sentence on stderr with its exit code. Nothing on stdout looks
// like a result.
func TestFailures(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	const secret = "s3cr3t-p4ss"
	gone := "mongodb://user:" + secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=200&connectTimeoutMS=200"
	dir := planned(t, "")
	apply, plan := []string{"apply", dir}, []string{"plan", filepath.Join(t.TempDir(), "new.d")}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"scan"}, failure.ExitUsage, "MONGODB_URI"},
		{[]string{"scan", "--uri", "http://user:" + secret + "@h"}, failure.ExitUsage, "connection string"},
		{[]string{"scan", "--uri", "mongodb://user:" + secret + "@h:x:y"}, failure.ExitUsage, "connection string"},
		{[]string{"scan", "--uri", "mongodb://u:" + secret + "@h/?w=zero&journal=x"}, failure.ExitUsage, "connection string"},
		{[]string{"scan", "--uri", gone}, failure.ExitUnreachable, "cannot be reached"},
		{append(apply, "--uri", gone, "--write"), failure.ExitUnreachable, "cannot be reached"},
		{[]string{"plan", "--db", "d", "--to", "text", "--uri", gone}, failure.ExitUsage, "invalid representation"},
		{[]string{"plan", "x.d", "--db", "admin", "--uri", gone}, failure.ExitUsage, "of the server itself"},
		{append(apply, "--uri", "mongodb://u:"+secret+"@h/?w=0", "--write"), failure.ExitUsage, "w=0"},
		{[]string{"scan", "--output", "xml", "--uri", gone}, failure.ExitUsage, "table, json, html"},
		{[]string{"scan", "--sample", "0", "--uri", gone}, failure.ExitUsage, "--sample"},
		{[]string{"apply"}, failure.ExitUsage, "arg"},
		{[]string{"verify", dir, "--uri", gone}, failure.ExitUsage, "no plan was applied"},
		{[]string{"undo", dir, "--uri", gone}, failure.ExitUsage, "no plan was applied"},
		{[]string{"undo", dir + ".none", "--uri", gone}, failure.ExitUsage, "no such file"},
		{append(plan, "--db", "d", "--to", "generic"), failure.ExitUsage, "subtype 0"},
		{append(plan, "--db", "d", "--to", "nonsense"), failure.ExitUsage, "nonsense"},
		// A shell expands "$NAME" to an empty argument if NAME is not set. The flag is not absent
		// then.
		{append(plan, "--uri", gone, "--db", ""), failure.ExitUsage, "--db is empty"},
		{append(apply, "--uri", gone, "--out", ""), failure.ExitUsage, "--out is empty"},
		{[]string{"scan", "--uri", ""}, failure.ExitUsage, "--uri is empty"},
		{[]string{"scan", "--uri", gone, "--db", ""}, failure.ExitUsage, "--db is empty"},
		{[]string{"scan", "--uri", gone, "--collection", ""}, failure.ExitUsage, "--collection is empty"},
		// Other tools take the connection string as an argument.
		{[]string{"scan", gone}, failure.ExitUsage, "unknown command"},
		{[]string{gone}, failure.ExitUsage, "unknown command"},
		{[]string{"scan", "--sample", gone}, failure.ExitUsage, "--sample"},
		{append(plan, "--db", gone), failure.ExitUsage, "--db"},
		{[]string{"show", gone}, failure.ExitUsage, "not a UUID"},
		{[]string{"show", "mongodb+srv://user:" + secret + "-and-so-on-for-more-letters-than-a-line-has@h"}, failure.ExitUsage, "not a UUID"},
		{append(apply, "--workers", "0"), failure.ExitUsage, "--workers"},
		{append(plan, "--db", "a.b"), failure.ExitUsage, "--db"},
		{append(plan, "--db", "d", "--collection", "system.users"), failure.ExitUsage, "--collection"},
		{[]string{"show"}, failure.ExitUsage, "arg"},
		{[]string{"show", "nonsense"}, failure.ExitUsage, "nonsense"},
		{[]string{"frobnicate"}, failure.ExitUsage, "frobnicate"},
		{[]string{"scan", "--frobnicate"}, failure.ExitUsage, "frobnicate"},
	} {
		r := command(t, tt.args...)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d, want %d with %q on one line\n%s%s", tt.args, r.code, tt.code, tt.want, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr+r.stdout, secret) {
			t.Errorf("%q shows the password: %s", tt.args, r.stderr)
		}
	}
}

// The lines behind an error promise that the same command continues only if it can.
func TestStopped(t *testing.T) {
	for name, err := range map[string]error{
		"a state file of another conversion": &convert.RecordError{Record: convert.StateRecord, Path: "s", Err: errors.New("it belongs to another conversion")},
		"another run":                        &record.Error{Text: "another run has taken over", Err: record.ErrTakenOver},
		"a document that cannot be copied":   &documents.Error{Reason: "the validator rejects it"},
	} {
		w := wayOn{changed: "2 values", back: "undo it", again: curable(err)}
		if got := strings.Join(w.lines([]string{"apply", "shop.d", "--write"}), "\n"); got != "changed: 2 values\nto undo: undo it" {
			t.Errorf("%s: %s", name, got)
		}
	}
	full := &convert.RecordError{Record: convert.UndoRecord, Path: "u", Err: &fs.PathError{Op: "write", Path: "u", Err: syscall.ENOSPC}}
	if !curable(full) {
		t.Error("a full disk")
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://user:hidden@h")
	for _, cmd := range []string{"", "show", "scan", "plan", "apply", "verify", "undo"} {
		r := command(t, strings.Fields(cmd+" --help")...).want(t, failure.ExitOK)
		if !strings.Contains(r.stdout, "Example") || strings.Contains(r.stdout, "hidden") {
			t.Errorf("%s: %s", cmd, r.stdout)
		}
	}
}

func TestShow(t *testing.T) {
	r := command(t, "show", `BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")`).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "00112233-4455-6677-8899-aabbccddeeff") || strings.Contains(r.stdout, "\x1b") {
		t.Error(r.stdout)
	}
	r = command(t, "show", "699dfad90ca573f85c0eec1c", "-o", "json").want(t, failure.ExitOK)
	var e struct{ ObjectID struct{ Time time.Time } }
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || !e.ObjectID.Time.Equal(time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)) {
		t.Errorf("%v: %s", err, r.stdout)
	}
}
