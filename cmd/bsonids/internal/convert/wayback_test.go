package convert

import (
	"path/filepath"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Each value is restored for itself: a value that another program changed does not keep the others
// of its document converted.
func TestWayBackByValue(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	old, fresh, other := value(t, "javaLegacy"), value(t, "standard"), bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}
	p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "b", Value: bson.A{old, "x"}}, {Key: "c", Value: bson.D{{Key: "d", Value: old}}}}))
	if err != nil || len(p.Changes) != 3 {
		t.Fatalf("%+v, %v", p, err)
	}
	e := Entry{ID: p.ID, Changes: p.Changes, from: c.From.Subtype, to: c.To.Subtype}
	for _, tt := range []struct {
		a, b, d    any
		back, lost []string
	}{
		{fresh, fresh, fresh, []string{"a", "b.0", "c.d"}, nil},
		{other, fresh, fresh, []string{"b.0", "c.d"}, []string{"a"}},
		{other, "y", fresh, []string{"c.d"}, []string{"a", "b.0"}},
		{other, "y", nil, nil, []string{"a", "b.0", "c.d"}},
		{old, other, fresh, []string{"c.d"}, []string{"b.0"}},
		{fresh, old, other, []string{"a"}, []string{"c.d"}},
	} {
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: tt.a}, {Key: "b", Value: bson.A{tt.b, "x"}}, {Key: "c", Value: bson.D{{Key: "d", Value: tt.d}}}})
		back, lost, err := e.wayBack(doc)
		if err != nil || !slices.Equal(pathsOf(back.Changes), tt.back) || !slices.Equal(pathsOf(lost), tt.lost) {
			t.Errorf("%v: %v, lost %v, %v; want %v, lost %v", doc, pathsOf(back.Changes), pathsOf(lost), err, tt.back, tt.lost)
		}
	}
}

func pathsOf(changes []Change) (paths []string) {
	for _, ch := range changes {
		paths = append(paths, ch.Path)
	}
	slices.Sort(paths)
	return paths
}

// A value that an entry does not find is not missed if a later entry is about its path.
func TestStillUnmet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy", "standard")
	l, err := OpenUndoLog(path, identity(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(plans(t, c, "a", "b", "a", "c"), c, func(Plan) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
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
