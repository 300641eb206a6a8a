package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// from changes the decision about the field v of a collection, and trusts it.
func (m *migrated) from(p *plan.Plan, name, kind string) {
	m.Helper()
	c := m.entry(p, name)
	for i := range c.Fields {
		if c.Fields[i].Path == "v" && c.Fields[i].Stored == kinds.Subtype3 {
			c.Fields[i].Decision, c.Fields[i].Trust = plan.Convert(kind), true
		}
	}
}

// trusted has only the collection a, with values in the field v of which nothing tells the order. The plan says javaLegacy.
func trusted(t *testing.T) *migrated {
	t.Helper()
	m := planned(t, 6, nil)
	m.put("a", undetermined(t, 6)...)
	m.s.Drop(m.collection("b"))
	m.s.Drop(m.collection("c"))
	if err := os.RemoveAll(m.dir); err != nil {
		t.Fatal(err)
	}
	m.replan(func(p *plan.Plan) { m.from(p, "a", "javaLegacy") })
	return m
}

// elsewhere makes a plan in another directory, and goes on with that.
func (m *migrated) elsewhere(edit func(p *plan.Plan)) {
	m.Helper()
	m.dir = filepath.Join(m.TempDir(), "other.d")
	m.a.Dir = m.dir
	m.replan(edit)
}

// An undo without the undo log of a run leaves its values converted: their field is not converted from another kind, by the same
// directory or another one, before the log is found and the undo was given again.
func TestClashWithLost(t *testing.T) {
	m := trusted(t)
	if _, err := m.apply(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(m.dir, "*"+undolog.Ext))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	away := t.TempDir()
	move := func(from, to string) {
		t.Helper()
		for _, path := range logs {
			name := filepath.Base(path)
			if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	move(m.dir, away)
	m.o.WithoutLost = true
	if _, err := m.undo(); err != nil {
		t.Fatal(err)
	}
	m.put("a", append(m.docs("a"), undetermined(t, 8)[6:]...)...) // which a service has written since
	was := m.docs("a")
	csharp := func(p *plan.Plan) { m.from(p, "a", "csharpLegacy") }
	clashes := func() {
		t.Helper()
		if _, err := m.apply(); !isUsage(err) || !strings.Contains(err.Error(), "went without its undo log") {
			t.Error(err)
		}
		for i, doc := range m.docs("a") {
			if string(doc) != string(was[i]) {
				t.Errorf("%v was changed", doc)
			}
		}
	}
	m.edit(csharp)
	clashes()
	first := m.dir
	m.elsewhere(csharp)
	clashes()
	m.dir, m.a.Dir, m.o.WithoutLost = first, first, false
	move(away, first)
	if _, err := m.undo(); err != nil {
		t.Fatal(err)
	}
	m.same(map[string][]bson.Raw{"a": undetermined(t, 8)})
	if _, err := m.apply(); err != nil {
		t.Error(err)
	}
}

// A collection that was renamed after a part of it was converted is the same one, and another one that has its name is not.
func TestClashOfRenamed(t *testing.T) {
	m := trusted(t)
	if _, err := m.apply(); err != nil {
		t.Fatal(err)
	}
	m.s.Rename(m.collection("a"), "x")
	m.put("x", append(m.docs("x"), undetermined(t, 8)[6:]...)...)
	was := m.docs("x")
	m.put("a", undetermined(t, 12)[9:]...)
	m.elsewhere(func(p *plan.Plan) {
		m.from(p, "a", "csharpLegacy")
		m.from(p, "x", "csharpLegacy")
	})
	if _, err := m.apply(); !isUsage(err) || !strings.Contains(err.Error(), `"x": the field "v"`) {
		t.Error(err)
	}
	m.edit(func(p *plan.Plan) { m.from(p, "x", "javaLegacy") })
	if r, err := m.apply(); err != nil || r.Values != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(map[string][]bson.Raw{"x": append(was[:6:6], m.docs("x")[6:]...)})
}
