package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// migrated is the directory of a plan that was applied: the collections a and b of the database d are converted from
// javaLegacy, and c has the copy c_new.
type migrated struct {
	*testing.T
	*messages
	s             *memory.Server
	dir           string
	before, after map[string][]bson.Raw
	o             Options
}

func apply(t *testing.T, part string) *migrated {
	t.Helper()
	m := &migrated{t, new(messages), memory.Start(t), filepath.Join(t.TempDir(), "d.d"), make(map[string][]bson.Raw), make(map[string][]bson.Raw), Options{Write: true, Batch: 3}}
	p := &plan.Plan{Database: "d", To: "standard", Part: part}
	for _, name := range []string{"a", "b", "c"} {
		c := plan.Collection{Name: name, Fields: []plan.Field{{Path: "v", Stored: kinds.Subtype3, Decision: plan.Convert("javaLegacy")}}}
		if name == "c" {
			c.Into = "c_new"
		}
		p.Collections = append(p.Collections, c)
	}
	state, err := plan.Create(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.WritePlan(p); err != nil {
		t.Fatal(err)
	}
	e, err := state.Edit(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range e.New {
		m.convert(state.Files(st), migration.IdentityOf("d", st), st)
	}
	if err := errors.Join(state.Adopt(p, e.Steps), state.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}

// convert makes the files of a step that is done, and its collection.
func (m *migrated) convert(f plan.Files, id convert.Identity, st plan.Step) {
	m.Helper()
	s, err := convert.OpenState(f.State, id)
	if err != nil {
		m.Fatal(err)
	}
	s.Decision, s.Done, s.Changed = &decide.Decision{From: st.From}, true, 5
	if st.Into == "" {
		l, err := convert.OpenUndoLog(f.UndoLog, id, "", 0)
		if err != nil {
			m.Fatal(err)
		}
		c := kindstest.Conversion(m.T, rule.NewConversion, st.From, st.To)
		for i := range 5 {
			doc, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(i)}, {Key: "v", Value: kindstest.Stored([16]byte{1, byte(i), 6: 0x40, 8: 0x80}, st.From)}})
			if err != nil {
				m.Fatal(err)
			}
			planned, err := c.Plan(doc)
			if err != nil {
				m.Fatal(err)
			}
			out, _, _, err := c.Rewrite(doc, rule.Tally{})
			if err := errors.Join(err, l.Append([]convert.Planned{{Plan: planned}}, c, func(convert.Planned) bool { return false })); err != nil {
				m.Fatal(err)
			}
			m.before[st.Collection], m.after[st.Collection] = append(m.before[st.Collection], doc), append(m.after[st.Collection], out)
		}
		s.UndoID, s.UndoSize, s.UndoLog = l.ID, l.Size(), f.UndoLog
		if err := l.Close(); err != nil {
			m.Fatal(err)
		}
	}
	if err := errors.Join(s.Save(), s.Close()); err != nil {
		m.Fatal(err)
	}
	m.s.Put(m.collection(st.Collection), m.after[st.Collection]...)
}

func (m *migrated) collection(name string) *mongo.Collection {
	return m.s.Client.Database("d").Collection(name)
}

// undo undoes the plan, and returns the state as it is then.
func (m *migrated) undo() (steps []report.UndoneStep, restored bool, err error) {
	m.Helper()
	state, err := plan.LockState(m.dir)
	if err != nil {
		m.Fatal(err)
	}
	s := &migration.Session{Client: m.s.Client, Messages: m.messages, Recording: migration.Recording{BatchTimeout: time.Minute, Halves: true}}
	steps, err = Plan(m.Context(), s, m.o, state)
	restored = state.Restored
	if err := state.Close(); err != nil {
		m.Fatal(err)
	}
	return steps, restored, err
}

// same fails the test unless a collection has the documents.
func (m *migrated) same(name string, want map[string][]bson.Raw) {
	m.Helper()
	if got := m.s.Documents(m.collection(name)); !slices.EqualFunc(got, want[name], func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		m.Errorf("%s: got %v\nwant %v", name, got, want[name])
	}
}

// insert inserts a document into the record.
func (m *migrated) insert(doc any) {
	m.Helper()
	if _, err := m.collection(record.Name).InsertOne(context.Background(), doc); err != nil {
		m.Fatal(err)
	}
}

// plans returns the plans in the record.
func (m *migrated) plans() []record.Plan {
	m.Helper()
	all, err := record.Plans(m.Context(), m.s.Client.Database("d"))
	if err != nil {
		m.Fatal(err)
	}
	return all
}

// names returns the collections of steps in their order.
func names(steps []report.UndoneStep) (all []string) {
	for _, s := range steps {
		all = append(all, s.Step.Collection)
	}
	return all
}

// An undo restores the collections in the opposite order of the work, and leaves the copy. A dry one changes nothing anywhere. One that
// is carried out again finds that nothing is left to do.
func TestPlan(t *testing.T) {
	m := apply(t, "")
	for _, write := range []bool{false, true, true} {
		m.o.Write = write
		steps, restored, err := m.undo()
		if err != nil || restored != write || !slices.Equal(names(steps), []string{"c", "b", "a"}) || len(m.warnings) > 0 {
			t.Fatalf("%+v, %v, %v, %q", steps, restored, err, m.warnings)
		}
		for _, s := range steps {
			want := int64(5)
			if s.Step.Collection == "c" {
				want = 0
			}
			if s.Begun != (want > 0) || s.Result.Entries != want || s.Result.Left != 0 || s.Step.Documents != 5 || s.Step.From != "javaLegacy" {
				t.Errorf("%+v", s)
			}
		}
		now := m.after
		if write {
			now = m.before
		}
		m.same("a", now)
		m.same("b", now)
		if plans := m.plans(); (len(plans) > 0) != write {
			t.Errorf("%d plans in the record", len(plans))
		}
	}
}

// What other programs have changed is left, and the undo is not complete, until that is accepted.
func TestPlanLeft(t *testing.T) {
	m := apply(t, "")
	if _, err := m.collection("b").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: int32(3)}}, bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: "other"}}}}); err != nil {
		t.Fatal(err)
	}
	for _, accepted := range []bool{false, true} {
		m.o.AllowChanged = accepted
		steps, restored, err := m.undo()
		if err != nil || restored != accepted || len(steps) != 3 || steps[1].Result.Left != 1 || steps[2].Result.Left != 0 {
			t.Errorf("%+v, %v, %v", steps, restored, err)
		}
		m.same("a", m.before)
	}
}

// A failure ends the undo with an error that names the collection. What was restored until then is told, and the same command goes on.
func TestPlanFails(t *testing.T) {
	for _, failing := range []string{"a", "b", record.Name} {
		m := apply(t, "")
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup(name).StringValueOK(); of == failing && (name == "update" || name == "insert") {
				f.Code = 13
			}
			return f
		}
		steps, restored, err := m.undo()
		var of *migration.CollectionError
		switch {
		case err == nil || restored:
			t.Errorf("%s: %v, %v", failing, restored, err)
		case failing == record.Name && len(steps) > 0, failing != record.Name && (!errors.As(err, &of) || of.Collection != failing || steps[len(steps)-1].Step.Collection != failing):
			t.Errorf("%s: %q, %v", failing, names(steps), err)
		}
		m.s.Before = nil
		if plans := m.plans(); failing != record.Name && (len(plans) != 1 || plans[0].Outcome != record.Stopped) {
			t.Errorf("%s: %+v", failing, plans)
		}
		if _, restored, err := m.undo(); err != nil || !restored {
			t.Errorf("%s: %v", failing, err)
		}
		m.same("a", m.before)
		m.same("b", m.before)
	}
}

// If files of a step are missing, damaged or others, all are named, and nothing is written.
func TestPlanWithoutFiles(t *testing.T) {
	remove := func(t *testing.T, name string) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for what, spoil := range map[string]func(t *testing.T, name string){
		"removed": remove,
		"cut off": func(t *testing.T, name string) {
			info, err := os.Stat(name)
			if err == nil {
				err = os.Truncate(name, info.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"of another collection": func(t *testing.T, name string) {
			remove(t, name)
			l, err := convert.OpenUndoLog(name, convert.Identity{Database: "d", Collection: "x", From: "javaLegacy", To: "standard"}, "", 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, of := range []string{"a", "b", "ab", "state of a"} {
			if of == "state of a" && what != "removed" {
				continue
			}
			m := apply(t, "")
			state, err := plan.ReadState(m.dir)
			if err != nil {
				t.Fatal(err)
			}
			var spoilt []string
			for _, st := range state.Steps() {
				switch f := state.Files(st); {
				case of == "state of a" && st.Collection == "a":
					spoilt = append(spoilt, f.State)
				case of != "state of a" && st.Into == "" && strings.Contains(of, st.Collection):
					spoilt = append(spoilt, f.UndoLog)
				}
			}
			for _, name := range spoilt {
				spoil(t, name)
			}
			for _, m.o.Write = range []bool{false, true} {
				steps, restored, err := m.undo()
				if err == nil || restored || len(steps) > 0 || slices.ContainsFunc(spoilt, func(name string) bool { return !strings.Contains(err.Error(), name) }) {
					t.Errorf("%s of %s: %+v, %v", what, of, steps, err)
				}
			}
			m.same("a", m.after)
			m.same("b", m.after)
			if len(m.plans()) > 0 {
				t.Errorf("%s of %s: it is recorded", what, of)
			}
		}
	}
}

// A copy that a cutover has put in place, or may put there, forbids the undo, and the error names what is to be done first. One that was
// rolled back does not, nor one whose old collection was dropped, of which the undo warns.
func TestPlanOfCutover(t *testing.T) {
	for _, tt := range []struct {
		state, into string
		kept        bool
		want        string // of the error
		warned      bool
	}{
		{record.Switching, "c_new", true, `end it first with the command that has begun it, or with bsonids cutover --db d c --roll-back --write`, false},
		{record.Switched, "c_new", true, `release it with bsonids release --db d c --write, and then put the old collection back with bsonids undo --db d c --write`, false},
		{record.Releasing, "c_new", true, `release it with bsonids release --db d c --write, and then put the old collection back with bsonids undo --db d c --write`, false},
		{record.Released, "c_new", true, `put the old collection back first with bsonids undo --db d c --write`, false},
		{record.Switched, "c_new", false, `release it with bsonids release --db d c --write`, false},
		{record.Released, "c_new", false, "", true},
		{record.RolledBack, "c_new", true, "", false},
		{record.Released, "c_other", true, "", false},
	} {
		m := apply(t, "")
		m.insert(record.Cutover{ID: "c/cutover", Format: 1, Kind: "cutover", State: tt.state, Begun: time.Now(), Updated: time.Now(),
			Collections: []record.Exchange{{Name: "x", New: "x_new", Kept: "x_kept"}, {Name: "c", New: tt.into, Kept: "c_kept"}}[1:]})
		if tt.kept {
			m.s.Put(m.collection("c_kept"))
		}
		steps, restored, err := m.undo()
		if tt.want == "" {
			if err != nil || !restored || len(steps) != 3 || (len(m.warnings) == 1 && strings.Contains(m.warnings[0], "was dropped")) != tt.warned {
				t.Errorf("%s: %v, %v, %q", tt.state, restored, err, m.warnings)
			}
			m.same("a", m.before)
			continue
		}
		if !isUsage(err) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.state) || len(steps) > 0 {
			t.Errorf("%s: %v", tt.state, err)
		}
		m.same("a", m.after)
	}
}

// The undo of a part warns of the other parts that have converted values in place.
func TestPlanOfPart(t *testing.T) {
	m := apply(t, "1/3")
	ended := time.Now().Add(-time.Hour)
	epochs := make(map[string]int64)
	run := func(of string, change func(*record.Run)) {
		epochs[of]++
		id := fmt.Sprintf("%s/%d", of, epochs[of])
		r := record.Run{ID: id, Format: 1, Kind: record.Convert, Collection: of, Part: "2/3", Epoch: epochs[of], Conversion: id, Started: ended, Updated: ended, Ended: &ended,
			Outcome: record.Done, From: "javaLegacy", To: "standard", FromSubtype: 3, ToSubtype: 4, Progress: record.Progress{Changed: 2}}
		change(&r)
		m.insert(r)
	}
	run("b", func(*record.Run) {})
	run("b", func(r *record.Run) { r.Part, r.Progress.Changed, r.UndoSize = "3/3", 0, 1 })
	run("b", func(r *record.Run) { r.Part = "1/3" })
	run("a", func(r *record.Run) { r.Progress.Changed = 0 })
	run("a", func(r *record.Run) { r.Undone = &record.Undone{At: ended, Complete: true} })
	run("a", func(r *record.Run) { r.Into = "a_new" })
	run("a", func(r *record.Run) { r.Kind = record.Undo })
	run("c", func(*record.Run) {})
	if _, restored, err := m.undo(); err != nil || !restored {
		t.Fatal(err)
	}
	if want := `"b": only part 1/3 is restored; part 2/3, 3/3 is converted, and is restored by bsonids undo with its own directory`; !slices.Equal(m.warnings, []string{want}) {
		t.Errorf("%q", m.warnings)
	}
}
