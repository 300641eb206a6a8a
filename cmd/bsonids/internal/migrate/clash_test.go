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

// from changes the decision about the field v of the collection a, and trusts it.
func (m *migrated) from(p *plan.Plan, kind string) {
	m.Helper()
	c := m.entry(p, "a")
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
	m.replan(func(p *plan.Plan) { m.from(p, "javaLegacy") })
	return m
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
	csharp := func(p *plan.Plan) { m.from(p, "csharpLegacy") }
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
	m.dir = filepath.Join(t.TempDir(), "other.d")
	m.a.Dir = m.dir
	m.replan(csharp)
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
