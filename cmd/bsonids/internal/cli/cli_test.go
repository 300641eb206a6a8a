package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
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

// want checks the exit code, and that the command has printed the texts.
func (r result) want(t testing.TB, code int, texts ...string) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("%q is missing in\n%s%s", text, r.stdout, r.stderr)
		}
	}
	return r
}

// Each failure is reported as one sentence on stderr with its exit code. Nothing on stdout looks
// like a result.
func TestFailures(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	const secret = "s3cr3t-p4ss"
	words := map[string]string{
		"PLAN": planned(t, ""), "COPIES": planned(t, "orders_standard"), "NONE": filepath.Join(t.TempDir(), "new.d"), "EMPTY": t.TempDir(),
		"GONE": "mongodb://user:" + secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=200&connectTimeoutMS=200",
		"SRV":  "mongodb+srv://user:" + secret + "-and-so-on-for-more-letters-than-a-line-has@h",
		"''":   "", // a shell expands "$NAME" to an empty argument if NAME is not set; the flag is not absent then
	}
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{"scan", failure.ExitUsage, "MONGODB_URI"},
		{"scan --uri http://user:SECRET@h", failure.ExitUsage, "connection string"},
		{"scan --uri mongodb://user:SECRET@h:x:y", failure.ExitUsage, "connection string"},
		{"scan --uri mongodb://u:SECRET@h/?w=zero&journal=x", failure.ExitUsage, "connection string"},
		{"scan --uri GONE", failure.ExitUnreachable, "cannot be reached"},
		{"apply PLAN --uri GONE --write", failure.ExitUnreachable, "cannot be reached"},
		{"plan x.d --db admin --uri GONE", failure.ExitUsage, "of the server itself"},
		{"apply PLAN --uri mongodb://u:SECRET@h/?w=0 --write", failure.ExitUsage, "w=0"},
		{"scan --output xml --uri GONE", failure.ExitUsage, "table, json, html"},
		{"scan --fail-on legacy,other --uri GONE", failure.ExitUsage, `"other" must be one of`},
		{"scan --sample 0 --uri GONE", failure.ExitUsage, "--sample"},
		{"verify PLAN --uri GONE", failure.ExitUnreachable, "cannot be reached"},
		{"undo PLAN --uri GONE", failure.ExitUnreachable, "cannot be reached"},
		{"undo NONE --uri GONE", failure.ExitUsage, "no such file"},
		{"plan NONE --uri GONE --db ''", failure.ExitUsage, "--db is empty"},
		{"apply PLAN --uri GONE --out ''", failure.ExitUsage, "--out is empty"},
		{"scan --uri ''", failure.ExitUsage, "--uri is empty"},
		{"scan --uri-file ''", failure.ExitUsage, "--uri-file is empty"},
		{"scan --uri GONE --db ''", failure.ExitUsage, "--db is empty"},
		{"scan --uri GONE --collection ''", failure.ExitUsage, "--collection is empty"},
		{"scan --uri-file x --uri GONE", failure.ExitUsage, "uri-file"},
		// Other tools take the connection string as an argument.
		{"scan GONE", failure.ExitUsage, "scan takes fewer arguments: bsonids scan;"},
		{"GONE", failure.ExitUsage, "unknown command"},
		{"scan --sample GONE", failure.ExitUsage, "--sample"},
		{"plan NONE --db GONE", failure.ExitUsage, "--db"},
		{"show GONE", failure.ExitUsage, "not a UUID"},
		{"show SRV", failure.ExitUsage, "not a UUID"},
		{"plan NONE --db a.b", failure.ExitUsage, "--db"},
		{"plan NONE --db d --collection system.users", failure.ExitUsage, "--collection"},
		{"show", failure.ExitUsage, "show needs more arguments: bsonids show VALUE|FILE;"},
		{"show nonsense", failure.ExitUsage, "nonsense"},
		{"frobnicate", failure.ExitUsage, "frobnicate"},
		{"scan --frobnicate", failure.ExitUsage, "frobnicate"},
		{"aply PLAN", failure.ExitUsage, `unknown command "aply"; did you mean apply?`},
		{"re", failure.ExitUsage, `unknown command "re"; did you mean release?`},
		{"apply", failure.ExitUsage, "apply needs more arguments: bsonids apply DIR;"},
		{"apply a b", failure.ExitUsage, "apply takes fewer arguments: bsonids apply DIR;"},
		{"apply PLAN --workers 0", failure.ExitUsage, "--workers"},
		{"apply PLAN --batch-timeout 1ms", failure.ExitUsage, "must be from 1s to 1h"},
		{"apply PLAN --collections-at-once 257", failure.ExitUsage, "must be from 1 to 256"},
		{"undo", failure.ExitUsage, "undo needs more arguments: bsonids undo DIR, or bsonids undo --db DATABASE ID;"},
		{"undo --db d a a", failure.ExitUsage, "undo takes fewer arguments"},
		{"undo --db a.b a", failure.ExitUsage, "--db: invalid database name"},
		{"undo p --batch-timeout 2h", failure.ExitUsage, "must be from 1s to 1h"},
		{"verify", failure.ExitUsage, "verify needs more arguments: bsonids verify DIR [DUMP CONVERTED];"},
		{"verify p a", failure.ExitUsage, "verify takes fewer arguments"},
		{"verify p --db d", failure.ExitUsage, "unknown flag"},
		{"verify p --retry-for -1s", failure.ExitUsage, "must be from 0s to 24h"},
		{"status", failure.ExitUsage, "--db"},
		{"status --db d s", failure.ExitUsage, "--db"},
		{"status --db a.b", failure.ExitUsage, "not a valid database name"},
		{"status EMPTY", failure.ExitUsage, "no such file"},
		{"release --db d a --batch-timeout 1s", failure.ExitUsage, "unknown flag"},
		{"cutover --db d a --roll-back --with-skipped a", failure.ExitUsage, "roll-back"},
		{"cutover --db d a --take-over", failure.ExitUsage, "unknown flag"},
		{"cutover --db d a --with-skipped b", failure.ExitUsage, "--with-skipped is for the directory"},
		{"cutover PLAN --allow-changed", failure.ExitUsage, "--allow-changed is for --roll-back"},
		{"SWITCH", failure.ExitUsage, "SWITCH needs more arguments: bsonids SWITCH DIR, or bsonids SWITCH --db DATABASE ID;"},
		{"SWITCH orders", failure.ExitUsage, "no such file"},
		{"SWITCH PLAN", failure.ExitUsage, "converts no collection into a new one"},
		{"SWITCH --db local a", failure.ExitUsage, "--db: invalid database name"},
		{"SWITCH --db d a b", failure.ExitUsage, "SWITCH takes fewer arguments"},
	} {
		for _, verb := range []string{"cutover", "release"} {
			args := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(tt.line, "SWITCH", verb), "SECRET", secret))
			for i, arg := range args {
				if word, ok := words[arg]; ok {
					args[i] = word
				}
			}
			r := command(t, args...)
			if r.code != tt.code || !strings.Contains(r.stderr, strings.ReplaceAll(tt.want, "SWITCH", verb)) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
				t.Errorf("%q: exit code %d, want %d with %q on one line\n%s%s", args, r.code, tt.code, tt.want, r.stdout, r.stderr)
			}
			if strings.Contains(r.stderr+r.stdout, secret) {
				t.Errorf("%q shows the password: %s", args, r.stderr)
			}
			if !strings.Contains(tt.line, "SWITCH") {
				break
			}
		}
	}
}

// The lines behind an error promise that the same command continues only if it can.
func TestCurable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&files.Error{What: "the list", Path: "s", Err: errors.New("it belongs to another conversion")}, false},
		{&record.Error{Text: "another run has taken over", Err: record.ErrTakenOver}, false},
		{&documents.Error{Reason: "the validator rejects it"}, false},
		{&files.Error{What: undolog.Name, Path: "u", Err: &fs.PathError{Op: "write", Path: "u", Err: syscall.ENOSPC}}, true},
		{failure.Usagef("a wrong flag"), false},
		{context.Canceled, true},
	} {
		if got := curable(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://user:hidden@h")
	for _, cmd := range append(NewCommand().Commands(), NewCommand()) {
		r := command(t, append(strings.Fields(cmd.CommandPath())[1:], "--help")...).want(t, failure.ExitOK)
		if !strings.Contains(r.stdout, "Example") || strings.Contains(r.stdout, "hidden") {
			t.Errorf("%s: %s", cmd.Name(), r.stdout)
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

// A plan that cannot be made leaves no directory that it has made, and one that was there.
func TestFailedPlanLeavesNothing(t *testing.T) {
	for _, there := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "d.d")
		if there {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r := command(t, "plan", dir, "--db", "d", "--uri", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=1", "--retry-for", "0s")
		if _, err := os.Stat(dir); r.code != failure.ExitUnreachable || (err == nil) != there {
			t.Errorf("there before %v: exit code %d, %v", there, r.code, err)
		}
	}
}
