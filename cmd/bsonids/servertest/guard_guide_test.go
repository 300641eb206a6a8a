package servertest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// otherWay is the heading of the second part of the guide.
const otherWay = "## Another way: switch at the cut-over"

// commandsOf returns the commands of a page without the name of the command.
func commandsOf(page string) (commands [][]string) {
	for line := range strings.Lines(page) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "bsonids "); ok {
			commands = append(commands, strings.Fields(line))
		}
	}
	return commands
}

// The commands of the guide work as written, in the order of the guide, up to the name of the
// database and the server.
func TestGuardGuide(t *testing.T) {
	page := text(t, "../../../docs/changing-representation.md")
	inPlace, _, _ := strings.Cut(string(page), otherWay)
	commands := commandsOf(inPlace)
	g := startGuarded(t)
	g.rename("orders")
	dir := filepath.Join(t.TempDir(), "app.d")
	var levels []string
	for _, args := range commands {
		for i, arg := range args {
			switch {
			case arg == "app" && args[i-1] == "--db":
				args[i] = g.db.Name()
			case arg == "app.d":
				args[i] = dir
			}
		}
		at := slices.Index(args, "--uri")
		if at < 0 {
			t.Fatalf("no server: %v", args)
		}
		command(t, g.s, slices.Delete(args, at, at+2)...).want(t, failure.ExitOK)
		if args[0] == "plan" {
			edit(t, filepath.Join(dir, "plan.yaml"), "guard: none", "guard: strict")
		}
		levels = append(levels, args[0]+" "+g.settings()[1]+strings.Repeat(" guarded", int(g.recorded())))
	}
	if want := []string{"scan strict", "plan strict", "apply strict", "apply strict guarded", "verify strict guarded", "release strict"}; !slices.Equal(levels, want) {
		t.Errorf("levels %q, want %q", levels, want)
	}
}

// So do those of its second part.
func TestCutoverGuide(t *testing.T) {
	page := text(t, "../../../docs/changing-representation.md")
	_, switching, ok := strings.Cut(string(page), otherWay)
	c := startCut(t, 0)
	for _, name := range []string{"customers", "orders"} {
		var docs []any
		for i := range 40 {
			docs = append(docs, cutDoc(i, i))
		}
		insert(t, c.db.Collection(name), docs)
	}
	n, dir := 0, filepath.Join(t.TempDir(), "app.d")
	for _, args := range commandsOf(switching) {
		for i, arg := range args {
			switch {
			case arg == "app" && args[i-1] == "--db":
				args[i] = c.db.Name()
			case arg == "app.d":
				args[i] = dir
			}
		}
		at := slices.Index(args, "--uri")
		if at < 0 {
			t.Fatalf("no server: %v", args)
		}
		if slices.Contains(args, "--roll-back") {
			continue // of a cutover that was stopped
		}
		command(t, c.s, slices.Delete(args, at, at+2)...).want(t, failure.ExitOK)
		n++
	}
	if got := c.collections(); !ok || n != 6 || got != "customers customers_standard orders orders_standard" {
		t.Errorf("%d commands, collections %s", n, got)
	}
}
