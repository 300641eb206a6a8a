package servertest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// guide runs the commands of one of the two parts of the guide as written, up to the name of the database and the
// server, but for the roll-back of a cutover that was stopped. It calls after behind each with the directory.
func guide(t *testing.T, s target, db *mongo.Database, part int, after func(command, dir string)) {
	t.Helper()
	page := text(t, "../../../docs/changing-representation.md")
	parts := strings.Split(page, "## Another way: switch at the cut-over")
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	dir := filepath.Join(t.TempDir(), "app.d")
	for line := range strings.Lines(parts[part]) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "bsonids ")
		if !ok || strings.Contains(line, "--roll-back") {
			continue
		}
		args := strings.Fields(strings.Replace(strings.Replace(line, "--db app", "--db "+db.Name(), 1), "app.d", dir, 1))
		at := slices.Index(args, "--uri")
		if at < 0 {
			t.Fatalf("no server: %v", args)
		}
		command(t, s, slices.Delete(args, at, at+2)...).want(t, failure.ExitOK)
		after(args[0], dir)
	}
}

// The commands of the first part of the guide convert in place behind a guard.
func TestGuardGuide(t *testing.T) {
	g := startGuarded(t)
	rename(t, g.db, "c", "orders")
	g.coll = g.db.Collection("orders")
	var levels []string
	guide(t, g.s, g.db, 0, func(command, dir string) {
		if command == "plan" {
			edit(t, filepath.Join(dir, "plan.yaml"), "guard: none", "guard: strict")
		}
		levels = append(levels, command+" "+g.settings()[1]+strings.Repeat(" guarded", int(g.recorded())))
	})
	if want := []string{"scan strict", "plan strict", "apply strict", "apply strict guarded", "verify strict guarded", "release strict"}; !slices.Equal(levels, want) {
		t.Errorf("levels %q, want %q", levels, want)
	}
}

// Those of its second part switch at the cutover, and undo it.
func TestCutoverGuide(t *testing.T) {
	c := startCut(t, 0)
	for i := range 40 {
		c.put("customers", cutDoc(i, i))
		c.put("orders", cutDoc(i, i))
	}
	n := 0
	guide(t, c.s, c.db, 1, func(string, string) { n++ })
	if got := c.collections(); n != 6 || got != "customers customers_standard orders orders_standard" {
		t.Errorf("%d commands, collections %s", n, got)
	}
}
