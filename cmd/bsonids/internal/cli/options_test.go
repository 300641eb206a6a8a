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

func TestConvertFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	base := "--db d --collection c --from javaLegacy "
	o, err := parsed(t, newConvertCommand, base)
	if err != nil {
		t.Fatal(err)
	}
	w := o.work
	equalTo(t, "target", w.ID.To, "standard")
	equalTo(t, "sizes", []int{w.Batch, w.Workers, w.Examples, w.References}, []int{1000, 1, 3, 10_000})
	equalTo(t, "files", []string{w.State, w.UndoLog, w.SkipList}, []string{"", "", ""})
	equalTo(t, "writes", []bool{w.Write, o.TakeOver}, []bool{false, false})
	equalTo(t, "retry-for", o.load.retryFor, 5*time.Minute)
	o, err = parsed(t, newConvertCommand, base+"--to csharpLegacy --field b,a.*.x --write --state s --undo-log u --batch 7 --workers 3 --trust b --query {\"y\":1} --part 2/8 "+
		"--batch-timeout 5m --take-over --decide-anew --references 0 --examples -1 --rate 9")
	if err != nil {
		t.Fatal(err)
	}
	w = o.work
	equalTo(t, "conversion", []string{w.ID.To, strings.Join(w.ID.Fields, " "), w.ID.Part, w.ID.Query}, []string{"csharpLegacy", "a.*.x b", "2/8", `{"y":{"$numberInt":"1"}}`})
	equalTo(t, "sizes", []int{w.Batch, w.Workers, w.Examples, w.References, o.load.rate.value}, []int{7, 3, -1, 0, 9})
	equalTo(t, "files", []string{w.State, w.UndoLog, w.SkipList}, []string{"s", "u", "s.skipped.jsonl"})
	equalTo(t, "switches", []bool{w.Write, w.DecideAnew, o.TakeOver}, []bool{true, true, true})
	equalTo(t, "timeout", o.BatchTimeout, 5*time.Minute)
	equalTo(t, "trust", w.Trust, []string{"b"})
	for to, anew := range map[string]bool{"standard": true, "csharpLegacy": false} { // the ledger is beside the undo log
		o, err = parsed(t, newConvertCommand, base+"--to "+to+" --write --undo-log x/u")
		if err != nil {
			t.Fatal(err)
		}
		equalTo(t, "beside the undo log", []any{o.work.State, o.work.SkipList, o.work.Anew}, []any{"x/u.ledger", "x/u.skipped.jsonl", anew})
	}
	if o, err = parsed(t, newConvertCommand, base+"--write --into n"); err != nil || o.work.SkipList != "d.c.skipped.jsonl" {
		t.Errorf("%v, %+v", err, o)
	}
	if err := os.WriteFile("d.c.skipped.jsonl", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o, err = parsed(t, newConvertCommand, base+"--write --into n"); err != nil || o.work.SkipList != "d.c.skipped-2.jsonl" {
		t.Errorf("%v, %+v", err, o)
	}
	if o, err = parsed(t, newConvertCommand, base+"--write --retry x.jsonl --undo-log u"); err != nil || o.work.SkipList != "x-2.jsonl" {
		t.Errorf("%v, %+v", err, o)
	}
	refused(t, newConvertCommand, map[string]string{
		"--db d --collection c":                                 "from",
		base + "--from generic":                                 "--field: from generic",
		base + "--to goStruct":                                  "to",
		base + "--into c":                                       "--into must be another",
		base + "--into n --undo-log u":                          "--undo-log cannot",
		base + "--retry l --into n":                             "--retry cannot",
		base + "--query {} --into n":                            "--query cannot",
		base + "--query null":                                   "--query: must be a filter",
		base + "--to csharpLegacy --write --state s":            "--undo-log is required",
		base + "--write":                                        "--undo-log is required",
		base + "--to csharpLegacy --retry l --write":            "--undo-log is required",
		base + "--collection bsonids.migrations":                "the record of conversions",
		base + "--part 9/8":                                     "--part: invalid part",
		base + "--batch-timeout 1ms":                            "--batch-timeout must be",
		base + "--retry-for -1s":                                "--retry-for must be",
		base + "--state x --undo-log x":                         "--state and --undo-log name the same file",
		base + "--state x --undo-log x.skipped.jsonl --write":   "name the same file",
		base + "--batch 0":                                      "must be from 1",
		"--db admin --collection c --from javaLegacy":           "of the server itself",
		"--db d --collection system.users --from javaLegacy":    "invalid collection name",
		"--db d --collection c --from text --field a --to text": "the same",
	})
}

func TestUndoFlags(t *testing.T) {
	o, err := parsed(t, newUndoCommand, "u --write --allow-changed --batch 9")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "log", []any{o.log, o.work.Write, o.work.AllowChanged, o.work.Batch}, []any{"u", true, true, 9})
	if o, err = parsed(t, newUndoCommand, "--db d a b --batch-timeout 5m"); err != nil {
		t.Fatal(err)
	}
	equalTo(t, "names", []any{o.database, o.names, o.BatchTimeout}, []any{"d", []string{"a", "b"}, 5 * time.Minute})
	refused(t, newUndoCommand, map[string]string{
		"":                         "arg",
		"a b":                      "name one directory or undo log",
		"--db d a a":               "named twice",
		"--db a.b a":               "--db: invalid database name",
		"--db d --allow-changed a": "allow-changed",
		"u --batch-timeout 2h":     "--batch-timeout must be",
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
	base := "--db d --collection c --from javaLegacy "
	o, err := parsed(t, newVerifyCommand, base+"--undo-log u --state s --allow-changed --query {\"a\":1}")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "flags", []any{o.work.UndoLog, o.work.State, o.work.AllowChanged, o.work.ID.To, o.work.Query != nil}, []any{"u", "s", true, "standard", true})
	if o, err = parsed(t, newVerifyCommand, "p --allow-changed"); err != nil {
		t.Fatal(err)
	}
	equalTo(t, "plan", []any{o.dir, o.work.AllowChanged}, []any{"p", true})
	refused(t, newVerifyCommand, map[string]string{
		"p --db d":                     "--db cannot be used with a directory",
		base + "--into n --undo-log u": "undo-log",
		base + "--into n --query {}":   "query",
		base + "--from generic":        "--field",
	})
}

func TestSwitchFlags(t *testing.T) {
	o, err := parsed(t, newCutoverCommand, "--db d a b --write --copy x,y --with-skipped a --batch 4")
	if err != nil {
		t.Fatal(err)
	}
	equalTo(t, "flags", o.work, exchange.Options{Database: "d", Write: true, Copies: []string{"x", "y"}, Skipped: []string{"a"}, Batch: 4})
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
	refused(t, newReleaseCommand, map[string]string{planned(t, "") + " --guards": "guards no collection"})
	refused(t, newCutoverCommand, map[string]string{
		"--db d a --guards":             "unknown flag",
		"--db d a --roll-back --copy x": "roll-back",
		"--db d a --with-skipped b":     "--with-skipped b",
		dir + " --copy x":               "--copy cannot be used with a directory",
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
	equalTo(t, "verbs", names, []string{"apply", "convert", "cutover", "plan", "release", "scan", "show", "status", "undo", "verify"})
}
