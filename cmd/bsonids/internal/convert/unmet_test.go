package convert

import (
	"path/filepath"
	"slices"
	"testing"
)

// A value that an entry does not find is not missed if a later entry is about its path.
func TestStillUnmet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy")
	l := newLog(t, path)
	if err := l.Append(plans(t, c, "a", "b", "a", "c"), func(Planned) bool { return false }); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	u, err := ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var left []unmet
	for {
		e, err := u.Next()
		if err != nil {
			break
		}
		left = append(left, unmet{id: e.ID, path: e.Changes[0].Path, offset: e.offset}, unmet{id: e.ID, path: "other", offset: e.offset})
	}
	left, err = stillUnmet(u, left)
	var got []string
	for _, m := range left {
		if m.path != "other" {
			got = append(got, m.id.StringValue())
		}
	}
	if err != nil || len(left) != 7 || !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("%d values, %q, %v", len(left), got, err)
	}
}
