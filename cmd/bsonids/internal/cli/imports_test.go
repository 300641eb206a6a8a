package cli

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Nothing but this package and the generator of the manual knows flags, and nothing but package terminal
// draws on one.
func TestWorkKnowsNoFlags(t *testing.T) {
	above := map[string][]string{
		"github.com/spf13/cobra":                              {"cli", "manual"},
		"github.com/spf13/pflag":                              {"cli", "manual"},
		"golang.org/x/term":                                   {"cli", "terminal"},
		"github.com/schollz/progressbar/v3":                   {"terminal"},
		"github.com/bsonids/bsonids/cmd/bsonids/internal/cli": {"manual"},
	}
	files, found := 0, make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		room := filepath.Base(filepath.Dir(path))
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			rooms, limited := above[name]
			if !limited {
				continue
			}
			found[name] = true
			if !strings.Contains(" "+strings.Join(rooms, " ")+" ", " "+room+" ") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 || len(found) != len(above) {
		t.Errorf("%d files, which import %v", files, found)
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
		floor, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			floors[strings.Trim(name, " `")] = floor
		}
	}
	const above = "github.com/bsonids/bsonids/cmd/bsonids/internal/"
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		room := filepath.Base(filepath.Dir(path))
		floor, ok := floors[room]
		if !ok && !strings.Contains(rooms, "`"+room+"`") && room != "dumptest" && room != "kindstest" {
			t.Errorf("%s is in no room of the map", path)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if name, ok := strings.CutPrefix(name, above); ok && floors[room] > 0 && floors[name] >= floor {
				t.Errorf("%s, on floor %d, imports %s, on floor %d", path, floor, name, floors[name])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(floors) < 30 {
		t.Errorf("%d rooms", len(floors))
	}
}
