package servertest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// The commands of the guide work as written, in the order of the guide, up to the name of the
// database and the server.
func TestGuardGuide(t *testing.T) {
	page, err := os.ReadFile("../../../docs/changing-representation.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]string
	for line := range strings.Lines(string(page)) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "bsonids "); ok {
			commands = append(commands, strings.Fields(line))
		}
	}
	g := startGuarded(t)
	g.rename("orders")
	dir := t.TempDir()
	var levels []string
	for _, args := range commands {
		for i, arg := range args {
			switch {
			case arg == "app" && args[i-1] == "--db":
				args[i] = g.db.Name()
			case strings.HasPrefix(arg, "orders."):
				args[i] = filepath.Join(dir, arg)
			}
		}
		at := slices.Index(args, "--uri")
		if at < 0 {
			t.Fatalf("no server: %v", args)
		}
		args = slices.Delete(args, at, at+2)
		if args[0] == "guard" && !slices.Contains(args, "--remove") {
			args = append(args, "--confirm-unordered") // the second server does not order binary values as MongoDB does
		}
		command(t, g.s, args...).want(t, failure.ExitOK)
		if args[0] == "guard" {
			levels = append(levels, g.settings()[1]+strings.Repeat(" guarded", int(g.recorded())))
		}
	}
	if want := []string{"strict", "moderate guarded", "strict guarded", "strict"}; !slices.Equal(levels, want) {
		t.Errorf("levels %q, want %q", levels, want)
	}
}
