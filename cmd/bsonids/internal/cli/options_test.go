package cli

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// planned returns a directory with a plan that may be applied.
func planned(t *testing.T, into string) string {
	t.Helper()
	dir := t.TempDir()
	p := &plan.Plan{Database: "shop", Migration: "0123456789abcdef", Collections: []plan.Collection{{Name: "orders", Into: into,
		Fields: []plan.Field{{Path: "id", Stored: kinds.Subtype3, Decision: plan.Convert("javaLegacy"), Trust: true,
			Evidence: []plan.Evidence{{Order: "javaLegacy", By: decide.None}}}}}}}
	if err := os.WriteFile(filepath.Join(dir, plan.PlanFile), p.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// parsed returns a verb whose fields are set by a command line, and which is not run.
func parsed[V verb](t *testing.T, v func(*console) V, line string) V {
	t.Helper()
	c := &console{out: io.Discard, err: io.Discard}
	of := v(c)
	cmd := of.define()
	c.cmd = cmd
	if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
		t.Fatal(line, err)
	}
	c.args = cmd.Flags().Args()
	if err := of.complete(); err != nil {
		t.Fatal(line, err)
	}
	return of
}

// Flags and arguments become fields.
func TestOptions(t *testing.T) {
	equal := func(line string, got []any, want ...any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
	dir, copied := planned(t, ""), planned(t, "orders_standard")
	undo := func(c *console) *undoVerb { return &undoVerb{console: c} }
	u := parsed(t, undo, "p --write --allow-changed --batch 9")
	equal("undo", []any{u.args[0], u.work.Write, u.work.AllowChanged, u.work.Batch}, "p", true, true, 9)
	u = parsed(t, undo, "--db d 7f3b --batch-timeout 5m --take-over")
	equal("undo --db", []any{u.database, u.args, u.recording.BatchTimeout, u.recording.TakeOver}, "d", []string{"7f3b"}, 5*time.Minute, true)

	apply := func(c *console) *applyVerb { return &applyVerb{console: c} }
	for line, want := range map[string][]any{
		"": {false, dir, 1, 4, 1000, 5 * time.Minute, "table"},
		" --write --workers 2 --collections-at-once 3 --batch 5 --retry-for 0 -o json": {true, dir, 2, 3, 5, time.Duration(0), "json"},
	} {
		a := parsed(t, apply, dir+line)
		equal("apply"+line, []any{a.work.Write, a.work.Dir, a.work.Workers, a.work.AtOnce, a.work.Batch, a.retryFor, a.output}, want...)
	}
	verify := func(c *console) *verifyVerb { return &verifyVerb{console: c} }
	v := parsed(t, verify, "p --allow-changed")
	equal("verify", []any{v.args, v.allowChanged}, []string{"p"}, true)
	v = parsed(t, verify, "p a b")
	equal("verify of paths", []any{v.args}, []string{"p", "a", "b"})

	exchange := func(c *console) *switchVerb { return &switchVerb{console: c} }
	release := func(c *console) *switchVerb { return &switchVerb{console: c, release: true} }
	s := parsed(t, exchange, "--db d 7f3b --write --roll-back --allow-changed --batch-timeout 9s")
	equal("cutover", []any{s.work, s.groups, s.recording.BatchTimeout}, cutover.Options{Database: "d", Write: true, RollBack: true, Accept: true}, []cutover.Group{{ID: "7f3b"}}, 9*time.Second)
	s = parsed(t, exchange, copied+" --with-skipped orders")
	equal("cutover --with-skipped", []any{s.work.Skipped}, []string{"orders"})
	for _, verb := range []func(*console) *switchVerb{exchange, release} {
		s = parsed(t, verb, copied)
		equal("the plan", []any{s.work.Database, s.state != nil, s.groups}, "shop", true, []cutover.Group{{Names: []string{"orders"}, Copies: []string{"orders_standard"}}})
	}
	s = parsed(t, release, "--db d 7f3b --write --allow-changed")
	equal("release", []any{s.work.Write, s.work.Accept, s.groups}, true, true, []cutover.Group{{ID: "7f3b"}})

	st := parsed(t, func(c *console) *statusVerb { return &statusVerb{console: c} }, "--db d")
	equal("status", []any{st.database, st.state == nil}, "d", true)
	var names []string
	for _, c := range NewCommand().Commands() {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	equal("the verbs", []any{names}, []string{"apply", "cutover", "plan", "release", "scan", "show", "status", "undo", "verify"})
}
