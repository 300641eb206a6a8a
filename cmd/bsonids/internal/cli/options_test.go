package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// parsed runs a command line of which run is replaced, and returns its options. There is no server.
func parsed[O any](t *testing.T, newCommand func(*console, func(*O, context.Context) error) *cobra.Command, line string) (got *O, err error) {
	t.Helper()
	cmd := newCommand(newConsole(io.Discard, io.Discard), func(o *O, _ context.Context) error {
		got = o
		return nil
	})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(strings.Fields(line))
	return got, cmd.ExecuteContext(t.Context())
}

// refused checks that each command line ends with an error that has the words, before its work begins.
func refused[O any](t *testing.T, newCommand func(*console, func(*O, context.Context) error) *cobra.Command, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		o, err := parsed(t, newCommand, line)
		if o != nil || err == nil {
			t.Errorf("%q is accepted", line)
			continue
		}
		var ran commandError
		e := &failure.Error{Kind: failure.Usage, Text: err.Error()}
		if errors.As(err, &ran) {
			e = newConsole(io.Discard, io.Discard).explain(ran.err)
		}
		if e.Kind != failure.Usage || !strings.Contains(e.Text, want) {
			t.Errorf("%q: %s, want %q", line, e.Text, want)
		}
	}
}

func equalTo(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestUndoFlags(t *testing.T) {
	o, err := parsed(t, newUndoCommand, "p --write --allow-changed --batch 9")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "plan", []any{o.dir, o.work.Write, o.work.AllowChanged, o.work.Batch}, []any{"p", true, true, 9})
	if o, err = parsed(t, newUndoCommand, "--db d a b --batch-timeout 5m"); err != nil {
		t.Fatal(err)
	}
	equalTo(t, "names", []any{o.database, o.names, o.BatchTimeout}, []any{"d", []string{"a", "b"}, 5 * time.Minute})
	refused(t, newUndoCommand, map[string]string{
		"":                         "arg",
		"a b":                      "name one directory",
		"--db d a a":               "named twice",
		"--db a.b a":               "--db: invalid database name",
		"--db d --allow-changed a": "allow-changed",
		"p --batch-timeout 2h":     "--batch-timeout must be",
	})
}

// planned returns a directory with a plan that may be applied.
func planned(t *testing.T, into string) string {
	t.Helper()
	dir := t.TempDir()
	p := &plan.Plan{Database: "shop", To: "standard", Collections: []plan.Collection{{Name: "orders", Into: into,
		Fields: []plan.Field{{Path: "id", Stored: kinds.Subtype3, Decision: plan.Convert("javaLegacy"), Trust: true,
			Evidence: []plan.Evidence{{Order: "javaLegacy", By: decide.None}}}}}}}
	var b bytes.Buffer
	if err := plan.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, plan.PlanFile), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestApplyFlags(t *testing.T) {
	dir := planned(t, "")
	o, err := parsed(t, newApplyCommand, dir)
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "defaults", []any{o.work.Write, o.work.Dir, o.work.Workers, o.work.AtOnce, o.work.Batch}, []any{false, dir, 1, 4, 1000})
	if o, err = parsed(t, newApplyCommand, dir+" --write --workers 2 --collections-at-once 3 --batch 5"); err != nil {
		t.Fatal(err)
	}
	equalTo(t, "flags", []any{o.work.Write, o.work.Dir, o.work.Workers, o.work.AtOnce, o.work.Batch},
		[]any{true, dir, 2, 3, 5})
	refused(t, newApplyCommand, map[string]string{
		"":                                 "arg",
		dir + " --batch-timeout 1ms":       "--batch-timeout must be",
		dir + " --collections-at-once 257": "must be from 1 to 256",
	})
}

func TestVerifyFlags(t *testing.T) {
	o, err := parsed(t, newVerifyCommand, "p --allow-changed")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "plan", []any{o.dir, len(o.paths), o.allowChanged}, []any{"p", 0, true})
	if o, err = parsed(t, newVerifyCommand, "p a b"); err != nil || o.dir != "p" || !slices.Equal(o.paths, []string{"a", "b"}) {
		t.Errorf("%v, %+v", err, o)
	}
	refused(t, newVerifyCommand, map[string]string{
		"":                  "give the directory",
		"p a":               "give the directory",
		"p --db d":          "unknown flag",
		"p --retry-for -1s": "--retry-for must be",
	})
}

func TestSwitchFlags(t *testing.T) {
	o, err := parsed(t, newCutoverCommand, "--db d a b --write --with-skipped a")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "flags", o.work, exchange.Options{Database: "d", Write: true, Skipped: []string{"a"}})
	equalTo(t, "groups", o.groups, []exchange.Group{{Names: []string{"a", "b"}}})
	equalTo(t, "timeout", o.BatchTimeout, 20*time.Second)
	dir := planned(t, "orders_standard")
	for _, newCommand := range []func(*console, func(*switchOptions, context.Context) error) *cobra.Command{newCutoverCommand, newReleaseCommand} {
		if o, err = parsed(t, newCommand, dir); err != nil {
			t.Fatal(err)
		}
		equalTo(t, "plan", []any{o.work.Database, o.work.Planned, o.groups}, []any{"shop", true, []exchange.Group{{Names: []string{"orders"}, Copies: []string{"orders_standard"}}}})
		refused(t, newCommand, map[string]string{
			"":                          "name the collections",
			"a b":                       "--db is required",
			"orders":                    "to name a collection, give --db",
			planned(t, ""):              "converts no collection into a new one",
			"--db local a":              "--db: invalid database name",
			"--db d bsonids.migrations": "invalid collection name",
			"--db d a a":                "named twice",
		})
	}
	if o, err = parsed(t, newReleaseCommand, "--db d a b --guards --write"); err != nil || !o.guards || !o.work.Write {
		t.Errorf("%v, %+v", err, o)
	}
	equalTo(t, "guards", o.groups, []exchange.Group{{Names: []string{"a", "b"}}})
	refused(t, newReleaseCommand, map[string]string{planned(t, "") + " --guards": "guards no collection", "--db d a --batch-timeout 1s": "unknown flag"})
	refused(t, newCutoverCommand, map[string]string{
		"--db d a --guards":                     "unknown flag",
		"--db d a --roll-back --with-skipped a": "roll-back",
		"--db d a --take-over":                  "unknown flag",
		"--db d a --with-skipped b":             "--with-skipped b",
	})
}

func TestStatusFlags(t *testing.T) {
	if o, err := parsed(t, newStatusCommand, "--db d"); err != nil || o.database != "d" || o.state != nil {
		t.Errorf("%v, %+v", err, o)
	}
	refused(t, newStatusCommand, map[string]string{
		"":          "--db",
		"--db d s":  "--db",
		"--db a.b":  "not a valid database name",
		t.TempDir(): "no such file",
	})
}

// Every verb whose options are tested here has a run function that tests replace.
func TestVerbsOfOptions(t *testing.T) {
	var names []string
	for _, c := range newRootCommand(newConsole(io.Discard, io.Discard)).Commands() {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	equalTo(t, "verbs", names, []string{"apply", "cutover", "plan", "release", "scan", "show", "status", "undo", "verify"})
}
