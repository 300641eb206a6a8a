package cli

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const internal = "github.com/bsonids/bsonids/cmd/bsonids/internal/"

// eachImport calls f for each import of a file of the rooms.
func eachImport(t *testing.T, f func(path, room, imported string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			f(path, filepath.Base(filepath.Dir(path)), name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Only this package and the generator of the manual know flags, only package terminal draws on a terminal, and only this
// package uses reports.
func TestWorkKnowsNoFlags(t *testing.T) {
	above := map[string][]string{
		"github.com/spf13/cobra":            {"cli", "manual"},
		"github.com/spf13/pflag":            {"cli", "manual"},
		"golang.org/x/term":                 {"cli", "terminal"},
		"github.com/schollz/progressbar/v3": {"terminal"},
		internal + "cli":                    {"manual"},
		internal + "report":                 {"cli"},
	}
	found := make(map[string]bool)
	eachImport(t, func(path, room, imported string) {
		if rooms, limited := above[imported]; limited {
			found[imported] = true
			if !slices.Contains(rooms, room) {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	})
	if len(found) != len(above) {
		t.Errorf("only %v are imported", found)
	}
}

// Every room is in the map of CONTRIBUTING.md, and imports only rooms of lower floors. Rooms of floor 0 may
// use each other.
func TestRooms(t *testing.T) {
	text, err := os.ReadFile("../../../../CONTRIBUTING.md")
	if err != nil {
		t.Skip(err) // the module alone
	}
	_, after, _ := strings.Cut(string(text), "### The rooms of the command")
	rooms, _, _ := strings.Cut(after, "\n## ")
	floors := make(map[string]int)
	for line := range strings.Lines(rooms) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if floor, err := strconv.Atoi(strings.TrimSpace(cells[1])); err == nil {
			for name := range strings.SplitSeq(cells[2], ",") {
				floors[strings.Trim(name, " `")] = floor
			}
		}
	}
	if len(floors) < 30 {
		t.Errorf("%d rooms", len(floors))
	}
	seen := make(map[string]bool)
	eachImport(t, func(path, room, imported string) {
		seen[room] = true
		if name, ok := strings.CutPrefix(imported, internal); ok && !strings.HasSuffix(path, "_test.go") && floors[room] > 0 && floors[name] >= floors[room] {
			t.Errorf("%s, on floor %d, imports %s, on floor %d", path, floors[room], name, floors[name])
		}
	})
	for room := range seen {
		if !strings.Contains(rooms, "`"+room+"`") && room != "dumptest" && room != "kindstest" {
			t.Errorf("%s is in no room of the map", room)
		}
	}
}
