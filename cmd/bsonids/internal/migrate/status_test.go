package migrate

import (
	"testing"
)

// statuses returns the status of each conversion, by the name of its collection.
func (m *migrated) statuses() map[string]StepStatus {
	m.Helper()
	s, err := m.status()
	if err != nil {
		m.Fatal(err)
	}
	all := make(map[string]StepStatus)
	for _, st := range s.Steps {
		all[st.Collection] = st.Status
	}
	return all
}

// Each verb leaves a status that says what it has done, also if it found nothing to do before the next one.
func TestStatusOfVerbs(t *testing.T) {
	m := planned(t, 20, nil)
	want := func(status StepStatus) {
		t.Helper()
		for name, is := range m.statuses() {
			if is != status {
				t.Errorf("%s is %s, want %s", name, is, status)
			}
		}
	}
	want(NotBegun)
	for range 2 {
		if _, err := m.apply(); err != nil {
			t.Fatal(err)
		}
		want(Done)
	}
	if _, err := m.undo(); err != nil {
		t.Fatal(err)
	}
	want(WasUndone)
	if p, err := m.verify(false); err != nil || p.Proven {
		t.Errorf("what was undone is proven: %+v, %v", p, err)
	}
	if _, err := m.apply(); err == nil { // the copy is left to the user
		t.Error("a copy is made of one that was left")
	}
	m.s.Drop(m.collection("c_new"))
	if _, err := m.apply(); err != nil {
		t.Fatal(err)
	}
	want(Done)
}
