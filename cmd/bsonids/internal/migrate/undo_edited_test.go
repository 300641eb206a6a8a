package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// An undo goes by the record. If the plan does not have a collection any more whose copy a cutover has exchanged, or is about to,
// nothing is undone, dry or not: the plan does not tell with which others it is to be put back, or stays converted.
func TestUndoOfEdited(t *testing.T) {
	without := func(m *migrated, into string) {
		m.edit(func(p *plan.Plan) {
			if into != "" {
				m.entry(p, "c").Into = into
				return
			}
			p.Collections = slices.DeleteFunc(p.Collections, func(c plan.Collection) bool { return c.Name == "c" })
		})
	}
	for _, state := range []string{record.Comparing, record.Switched, record.Releasing, record.Released} {
		for _, into := range []string{"", "other"} {
			m := applied(t, 6)
			m.cutover(state, m.plan.Conversion(m.plan.Steps()[2].Task))
			m.edit(func(p *plan.Plan) { p.References = []plan.Reference{{Between: [2]string{"a", "c"}}} })
			without(m, into)
			for _, write := range []bool{false, true} {
				m.o.Write, m.o.WithoutReleased = write, true
				if _, err := m.undo(); !isUsage(err) || !strings.Contains(err.Error(), `"c"`) {
					t.Errorf("%s, into %q, write %v: %v", state, into, write, err)
				}
			}
			m.same(m.after)
		}
	}
	m := applied(t, 6) // no cutover has the copy
	m.cutover(record.RolledBack, m.plan.Conversion(m.plan.Steps()[2].Task))
	without(m, "")
	if _, err := m.undo(); err != nil {
		t.Error(err)
	}
	m.same(m.before)
}

// A cutover of another migration has fenced a collection that is to be restored. Nothing is undone, dry or not, and no collection is
// put back.
func TestUndoOfFenced(t *testing.T) {
	m := applied(t, 6)
	m.putBack = func() error { t.Error("collections are put back"); return nil }
	m.insert(record.Cutover{Saved: record.Saved{ID: "y/cutover", Kind: "cutover", State: record.Switched},
		Collections: []record.Exchange{{Name: "b", New: "b_new", Kept: "b_kept", Maker: "other/b"}}})
	for _, write := range []bool{false, true} {
		m.o.Write = write
		if _, err := m.undo(); !isUsage(err) || !strings.Contains(err.Error(), "d.b is fenced by a cutover of b") {
			t.Errorf("write %v: %v", write, err)
		}
	}
	m.same(m.after)
}
