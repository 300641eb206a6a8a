package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
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

// The status of a conversion is that of its runs in the order in which they began, as the record has them.
func TestStatusOfRuns(t *testing.T) {
	now := time.Now().UTC()
	ended := now.Add(-time.Minute)
	done := func(r *record.Run) { r.Ended, r.Outcome = &ended, record.Done }
	stopped := func(r *record.Run) { r.Ended, r.Outcome, r.Reason = &ended, record.Stopped, "an error" }
	alive := func(r *record.Run) { r.Updated = now.Add(time.Minute) }
	killed := func(r *record.Run) { r.Updated = now.Add(-time.Hour) }
	undone := func(complete bool) func(r *record.Run) {
		return func(r *record.Run) { done(r); r.Undone = &record.Undone{Complete: complete} }
	}
	undo := func(f func(r *record.Run)) func(r *record.Run) {
		return func(r *record.Run) { r.Kind = record.Undo; f(r) }
	}
	for name, tt := range map[string]struct {
		runs    []func(r *record.Run)
		want    StepStatus
		applied StepStatus // as of the results of the verbs; that of want if empty
		reason  string
		changed int64
	}{
		"none":                  {nil, NotBegun, "", "", 0},
		"running":               {[]func(*record.Run){alive}, Running, "", "", 5},
		"killed":                {[]func(*record.Run){killed}, Stopped, "", "the run was killed", 5},
		"stopped":               {[]func(*record.Run){stopped}, Stopped, "", "an error", 5},
		"done":                  {[]func(*record.Run){done}, Done, "", "", 5},
		"stopped, done":         {[]func(*record.Run){stopped, done}, Done, "", "", 10},
		"done, running":         {[]func(*record.Run){done, alive}, Running, "", "", 10},
		"differs":               {[]func(*record.Run){func(r *record.Run) { done(r); r.Differs = true }}, Unverified, "", "", 5},
		"being undone":          {[]func(*record.Run){done, undo(alive)}, BeingUndone, Done, "", 5},
		"undo was killed":       {[]func(*record.Run){undone(false), undo(killed)}, Stopped, "", "the undo was killed", 5},
		"undo stopped":          {[]func(*record.Run){undone(false), undo(stopped)}, Stopped, "", "an error", 5},
		"undo is not complete":  {[]func(*record.Run){undone(false)}, Stopped, "", "the undo is not complete", 5},
		"undone":                {[]func(*record.Run){undone(true), undo(done)}, WasUndone, "", "", 0},
		"undone, by one of two": {[]func(*record.Run){undone(true), undone(true), undo(killed), undo(done)}, WasUndone, "", "", 0},
		"undone, and converted": {[]func(*record.Run){undone(true), undo(done), done}, Done, "", "", 5},
		"undone, and being so":  {[]func(*record.Run){undone(true), undo(alive)}, BeingUndone, WasUndone, "", 0},
		"undone, and killed":    {[]func(*record.Run){undone(true), undo(done), killed}, Stopped, "", "the run was killed", 5},
	} {
		m := planned(t, 20, nil)
		st := m.plan.Steps()[0]
		for i, f := range tt.runs {
			began := now.Add(time.Duration(i-100) * time.Second)
			r := record.Run{ID: fmt.Sprint("a/", i+1), Kind: record.Convert, Task: st.Task, Epoch: int64(i + 1), Conversion: m.plan.Conversion(st.Task), Migration: m.plan.Migration, Started: began, Updated: began, Directory: m.dir,
				By: record.Who{User: "u", Host: "h", PID: i, Token: fmt.Sprint(i)}, Progress: record.Progress{Documents: 40, Read: 10, Changed: 5}}
			f(&r)
			m.insert(r)
		}
		s, err := m.status()
		if err != nil {
			t.Fatal(err)
		}
		is := s.Steps[0]
		if is.Status != tt.want || is.Reason != tt.reason || is.Changed != tt.changed || len(s.Steps) != 3 {
			t.Errorf("%s: %+v", name, is)
		}
		if n := len(tt.runs); n > 0 && is.By != fmt.Sprintf("u@h, process %d", n-1) {
			t.Errorf("%s: by %s", name, is.By)
		}
		if (s.PerSecond > 0) != (tt.want == Running) || (is.SecondsLeft > 0) != (tt.want == Running) || s.SecondsLeft > 0 != (tt.want == Running) {
			t.Errorf("%s: %v a second, %d and %d s left", name, s.PerSecond, is.SecondsLeft, s.SecondsLeft)
		}
		recorded, err := ReadRecord(t.Context(), m.session(), "d")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := recorded.Step(m.plan.Conversion(st.Task), st.Task).Status, cmp.Or(tt.applied, tt.want); got != want {
			t.Errorf("%s: the verbs say %s, want %s", name, got, want)
		}
	}
}

// Without a directory, status has all migrations of the record, and the cutovers that have not ended. With one, it has what its plan
// converts, and what it had converted.
func TestStatusOfDatabase(t *testing.T) {
	m := converted(t)
	m.insert(func() record.Run { r := m.other(); r.ID, r.Epoch = "a/9", 9; return r }())
	for _, state := range []string{record.Comparing, record.Switched, record.Releasing, record.Released, record.RolledBack} {
		at := time.Now()
		m.insert(record.Cutover{Saved: record.Saved{ID: state + "/cutover", Kind: "cutover", State: state, Begun: at}, Collections: []record.Exchange{{Name: "x", New: "x_new", Kept: "x_kept", Maker: "other"}}})
	}
	s, err := StatusOfRecord(t.Context(), m.session(), "d", nil, false)
	if err != nil || len(s.Steps) != 4 || len(s.Migrations) != 2 || s.Migrations[0].ID != m.plan.Migration || s.Migrations[0].Directory != m.dir || s.Migrations[1].Directory != "/other" || len(s.Faults) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	var waits []string
	for _, c := range s.Cutovers {
		if waits = append(waits, fmt.Sprint(c.ID, " ", c.Waits)); !slices.Equal(c.Collections, []string{"x"}) {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"comparing false", "switched true", "releasing true"}; !slices.Equal(waits, want) {
		t.Errorf("%q, want %q", waits, want)
	}
	m.edit(func(p *plan.Plan) { p.Collections = slices.Delete(p.Collections, 1, 2) })
	if s, err := m.status(); err != nil || len(s.Steps) != 3 || s.Steps[2].Collection != "b" || s.Steps[2].Status != Done {
		t.Errorf("%+v, %v", s, err)
	}
	for _, of := range []string{record.Name, ""} {
		name := map[string]string{record.Name: "find", "": "listCollections"}[of]
		m.deny(2, name, of)
		if _, err := m.status(); err == nil {
			t.Errorf("%s was refused", name)
		}
	}
	m.s.Before = nil
	if err := os.WriteFile(filepath.Join(m.dir, m.runs()[0].By.Token+".undo"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := m.status(); err != nil || len(s.Faults) != 1 || len(s.Steps) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// status compares the sizes of undo logs with the record, and what they have only if it is told to. A log of which the record knows
// nothing is read, because it alone tells whether it is undone.
func TestStatusOfLogs(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil            func(m *migrated, path string, b []byte) error
		sizes, checksums string // the fault
	}{
		"whole": {func(*migrated, string, []byte) error { return nil }, "", ""},
		"flipped": {func(_ *migrated, path string, b []byte) error {
			b[len(b)*3/4] ^= 1
			return os.WriteFile(path, b, 0o600)
		}, "", "damaged"},
		"cut":     {func(_ *migrated, path string, b []byte) error { return os.Truncate(path, int64(len(b)-1)) }, "cut off", "cut off"},
		"missing": {func(_ *migrated, path string, _ []byte) error { return os.Remove(path) }, "is missing", "is missing"},
		"another": {func(_ *migrated, path string, _ []byte) error { return os.WriteFile(path, []byte("x"), 0o600) }, "not an undo log", "not an undo log"},
		"longer":  {func(_ *migrated, path string, b []byte) error { return os.WriteFile(path, append(b, 1), 0o600) }, "", ""},
		"unknown": {func(m *migrated, path string, _ []byte) error {
			_, err := m.collection(record.Name).DeleteMany(m.Context(), bson.D{{Key: "_id", Value: "a/1"}})
			return err
		}, "of a run that the record lacks", "of a run that the record lacks"},
		"unknown, and undone": {func(m *migrated, path string, _ []byte) error {
			_, err := m.collection(record.Name).DeleteMany(m.Context(), bson.D{{Key: "_id", Value: "a/1"}})
			return errors.Join(err, undolog.MarkUndone(path, undolog.Undone{By: "x"}))
		}, "", ""},
	} {
		m := applied(t, 20)
		path := m.logs["a"][0]
		b, err := os.ReadFile(path)
		if err == nil {
			err = tt.spoil(m, path, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m.checksums = range []bool{false, true} {
			want := tt.sizes
			if m.checksums {
				want = tt.checksums
			}
			s, err := m.status()
			if faults := strings.Join(s.Faults, "\n"); err != nil || len(s.Faults) > 1 || (want == "") != (faults == "") || !strings.Contains(faults, want) {
				t.Errorf("%s, checksums %v: %q, %v", name, m.checksums, s.Faults, err)
			}
		}
	}
}
