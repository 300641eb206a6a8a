package privilege

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of the documentation is this one.
func TestDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/command.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the guide is not part of the module")
	} else if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Privileges\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want []string
	for _, r := range table {
		var actions []string
		for _, a := range r.actions {
			actions = append(actions, "`"+strings.ReplaceAll(a, "|", "` or `")+"`")
		}
		verb := "`" + string(r.verb) + "`"
		if r.verb == PutBack {
			verb = "`" + string(Undo) + "` of a cutover"
		}
		line := "| " + verb + " | " + string(r.on) + " | " + strings.Join(actions, ", ") + " |"
		if i := len(want) - 1; i >= 0 && strings.HasPrefix(want[i], "| "+verb+" | "+string(r.on)+" |") {
			want[i] = strings.TrimSuffix(want[i], " |") + ", " + strings.Join(actions, ", ") + " |"
			continue
		}
		want = append(want, line)
	}
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/command.md has\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestNeeds(t *testing.T) {
	for v, want := range map[Verb]string{
		Status: "find on bsonids.migrations",
		Apply: "listCollections on the database; find and update on a collection that is converted in place; find and listIndexes on a collection that is copied; " +
			"find, insert, update, remove and createIndex on its copy; find, insert and update on bsonids.migrations",
		Cutover: "listCollections, changeStream, find and renameCollectionSameDB on the database; find, collMod, insert, update, listIndexes and bypassDocumentValidation on " +
			"a collection that is copied; find, collMod, insert, update, remove, listIndexes and bypassDocumentValidation on its copy; find, collMod, insert, remove and bypassDocumentValidation on the name under which it is kept; createCollection or insert and dropCollection on bsonids.probe.*; find, insert and update on bsonids.migrations",
	} {
		if got := Needs(v); got != want {
			t.Errorf("%s: got %q, want %q", v, got, want)
		}
	}
}
