package migrate

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A dry run changes nothing and finds what a run then changes. A second run finds nothing left, a dry one too, and an undo restores
// everything, but for the copy.
func TestApply(t *testing.T) {
	m := planned(t, 20, nil)
	m.a.Write = false
	dry, err := m.apply()
	if err != nil || dry.Written || dry.Finished || dry.Incomplete || dry.Denied != nil || len(m.runs()) > 0 || len(m.warnings) > 0 {
		t.Fatalf("%+v, %v, %q", dry, err, m.warnings)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": m.before["b"], "c": m.before["c"], "c_new": nil})
	for _, m.a.Write = range []bool{true, true, false} {
		r, err := m.apply()
		if err != nil || r.Finished != m.a.Write || r.Incomplete || len(r.Steps) != 3 || len(m.warnings) > 0 {
			t.Fatalf("%+v, %v, %q", r, err, m.warnings)
		}
		for i, st := range r.Steps {
			if st.Collection != dry.Steps[i].Collection || st.Values != dry.Steps[i].Values || st.Values != 20 || st.Documents != 20 || st.Skipped != 0 || st.Status != Done {
				t.Errorf("%+v, and dry %+v", st, dry.Steps[i])
			}
		}
		m.same(m.after)
	}
	if steps, err := m.undo(); err != nil || !m.complete() {
		t.Errorf("%+v, %v", steps, err)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": m.before["b"], "c": m.before["c"]})
}

// Several collections at once, by several workers, in small batches, end as one after the other.
func TestApplyAtOnce(t *testing.T) {
	m := planned(t, 50, nil)
	m.a.AtOnce, m.a.Workers, m.a.Batch = 3, 2, 7
	if r, err := m.apply(); err != nil || r.Values != 150 || r.Documents != 150 || !r.Wrote || !r.Finished {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(map[string][]bson.Raw{"a": m.after["a"], "b": m.after["b"], "c": m.after["c"]})
	if len(m.docs("c_new")) != 50 {
		t.Error(len(m.docs("c_new")))
	}
}
