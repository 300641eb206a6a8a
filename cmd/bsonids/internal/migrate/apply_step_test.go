package migrate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// result returns the step of a collection.
func result(t *testing.T, steps []AppliedStep, name string) AppliedStep {
	t.Helper()
	i := slices.IndexFunc(steps, func(s AppliedStep) bool { return s.Collection == name })
	if i < 0 {
		t.Fatalf("no step of %s in %+v", name, steps)
	}
	return steps[i]
}

// writes reports whether a command updates documents of a collection, as opposed to one that asks whether the user may.
func writes(command bson.Raw, name string) bool {
	of, _ := command.Lookup("update").StringValueOK()
	return of == name && command.Lookup("updates", "0", "q", "_id").Type != bson.TypeObjectID
}

// old fails the test unless each document is as it was, or as it is converted.
func (m *migrated) old() {
	m.Helper()
	for _, name := range []string{"a", "b", "c", "c_new"} {
		before, after := m.before[name], m.after[name]
		if name == "c_new" {
			before = after
		}
		for _, doc := range m.docs(name) {
			i := int(doc.Lookup("_id").Int32())
			if !bytes.Equal(doc, before[i]) && !bytes.Equal(doc, after[i]) {
				m.Errorf("%s: %v", name, doc)
			}
		}
	}
}

// Whichever command the server refuses, apply fails and each value is an old or a converted one; what is in the record and in the
// logs is what another apply goes on with, and what an undo restores.
func TestApplyAnyCommandFails(t *testing.T) {
	t.Parallel()
	refused := 0
	for at := 1; ; at++ {
		m := planned(t, 20, func(p *plan.Plan) {
			p.Collections = slices.DeleteFunc(p.Collections, func(c plan.Collection) bool { return c.Name == "b" })
			p.Only = []string{"a", "c"}
		})
		var sent atomic.Int64
		var last atomic.Value
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if name != "endSessions" && sent.Add(1) == int64(at) {
				of, _ := command.Lookup(name).StringValueOK()
				last.Store(strings.TrimSuffix(name+" of "+of, " of "))
				f.Code = 2
			}
			return f
		}
		_, err := m.apply()
		m.s.Before = nil
		name, is := last.Load().(string)
		if !is { // all commands were answered
			break
		}
		refused++
		// The log is announced in the record while earlier batches are in flight, and again before a batch if that failed.
		if tolerated := name == "buildInfo" || name == "connectionStatus" || name == "update of "+record.Name || name == "find of "+record.Name; err == nil && !tolerated {
			t.Errorf("%s, command %d: there is no error", name, at)
		}
		if m.old(); err == nil {
			m.same(map[string][]bson.Raw{"a": m.after["a"], "c": m.before["c"], "c_new": m.after["c_new"]})
		}
		if at%2 == 0 {
			if r, err := m.apply(); err != nil || !r.Finished {
				t.Errorf("after %s, command %d: %v", name, at, err)
			}
			m.same(map[string][]bson.Raw{"a": m.after["a"], "c": m.before["c"], "c_new": m.after["c_new"]})
		} else if _, err := m.undo(); err != nil && !isUsage(err) { // nothing was converted
			t.Errorf("undo after %s, command %d: %v", name, at, err)
		} else {
			m.same(map[string][]bson.Raw{"a": m.before["a"], "c": m.before["c"]})
		}
	}
	if refused < 30 {
		t.Errorf("%d commands", refused)
	}
}

// A failure names its collection, and ends those that run at once. The result says what was changed.
func TestApplyFails(t *testing.T) {
	m := planned(t, 20, nil)
	m.deny(13, "update", "b")
	r, err := m.apply()
	var of *failure.CollectionError
	if !errors.As(err, &of) || of.Collection != "b" || r.Finished || r.Values != 20 || !r.Wrote ||
		result(t, r.Steps, "a").Status != Done || result(t, r.Steps, "b").Status != NotBegun || result(t, r.Steps, "c").Status != NotBegun {
		t.Errorf("%+v, %v", r, err)
	}
	m.s.Before = nil
	if r, err := m.apply(); err != nil || r.Values != 40 || !r.Finished {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(m.after)
}

// apply that is interrupted finishes the batch that it has sent, begins none, and records that it stopped.
func TestApplyInterrupted(t *testing.T) {
	m := planned(t, 20, nil)
	m.a.Batch = 2 // of which several are written to the log at once
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if writes(command, "a") {
			cancel()
		}
		return f
	}
	r, err := m.applyWith(ctx)
	if !errors.Is(err, context.Canceled) || result(t, r.Steps, "a").Status != Stopped || r.Values == 0 || r.Values == 20 {
		t.Errorf("%+v, %v", r, err)
	}
	m.s.Before = nil
	m.old()
	if runs := m.runs(); len(runs) != 1 || runs[0].Outcome != record.Stopped || runs[0].Ended == nil || runs[0].Progress.Values != r.Values {
		t.Errorf("%+v", runs)
	}
	if s := m.statuses()["a"]; s != Stopped {
		t.Error(s)
	}
	if r, err := m.apply(); err != nil || !r.Finished {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(m.after)
}

// Services that write old values all the time keep apply from its end, which it says with their number. When they have stopped, the
// same command converts the rest.
func TestApplyLate(t *testing.T) {
	m := planned(t, 20, nil)
	old := stored(t, "a", 40, "javaLegacy")
	n := 20
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if writes(command, "a") && n < 30 {
			m.put("a", append(m.docs("a"), old[n])...)
			n++
		}
		return f
	}
	r, err := m.apply()
	if a := result(t, r.Steps, "a"); err != nil || a.Late != 1 || a.Status != Stopped || !r.Incomplete || !r.Wrote {
		t.Errorf("%+v, %v", r, err)
	}
	if run := m.runs()[0]; run.Outcome != record.Stopped || !strings.Contains(run.Reason, "services write old values all the time") {
		t.Errorf("%+v", run)
	}
	m.s.Before = nil
	m.before["a"], m.after["a"] = old, stored(t, "a", n, "standard")
	r, err = m.apply()
	if a := result(t, r.Steps, "a"); err != nil || a.Late != 0 || a.Status != Done || r.Incomplete {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(m.after)
	if p, err := m.verify(false); err != nil || !p.Proven {
		t.Errorf("%+v, %v", p, err)
	}
}

// Values that do not tell their order are left and listed, until a person trusts the field.
func TestApplyLeft(t *testing.T) {
	m := planned(t, 20, nil)
	mixed := append(slices.Clone(m.before["a"]), marshal(t, bson.D{{Key: "_id", Value: int32(99)}, {Key: "v", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}))
	m.put("a", mixed...)
	for _, trusted := range []bool{false, true} {
		if trusted {
			m.edit(func(p *plan.Plan) { m.entry(p, "a").Fields[0].Trust = true })
		}
		r, err := m.apply()
		a := result(t, r.Steps, "a")
		if err != nil || r.Incomplete == trusted || a.Skipped > 0 == trusted || (a.SkipList == "") != trusted || len(a.SkippedFor) > 0 == trusted {
			t.Errorf("trusted %v: %+v, %v", trusted, r, err)
		}
		p, err := m.verify(false)
		if err != nil || !p.Proven || p.Left() > 0 == trusted {
			t.Errorf("trusted %v: %+v, %v", trusted, p, err)
		}
		if trusted {
			break
		}
		b, err := os.ReadFile(a.SkipList)
		if err != nil || bytes.Count(b, []byte("\n")) != 1 || !bytes.Contains(b, []byte(`"collection":"d.a","_id":{"$numberInt":"99"},"path":"v"`)) {
			t.Errorf("%s, %v", b, err)
		}
	}
	if _, err := m.undo(); err != nil {
		t.Fatal(err)
	}
	m.same(map[string][]bson.Raw{"a": mixed, "b": m.before["b"]})
}

// An edit of what has converted values is refused until the undo. What was left may be converted later, and what the record has decided
// is not judged again.
func TestApplyOfEdited(t *testing.T) {
	m := planned(t, 20, func(p *plan.Plan) {
		for i := range p.Collections {
			if p.Collections[i].Name == "b" {
				p.Collections[i].Fields[0].Decision = plan.Leave
			}
		}
	})
	if r, err := m.apply(); err != nil || len(r.Steps) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	m.same(map[string][]bson.Raw{"b": m.before["b"]})
	for name, edit := range map[string]func(c *plan.Collection){
		"decision": func(c *plan.Collection) {
			c.Fields[0].Decision, c.Fields[0].Trust = plan.Convert("csharpLegacy"), true
			c.Fields[0].Evidence[0].Order = "csharpLegacy"
		},
		"left":   func(c *plan.Collection) { c.Fields[0].Decision = plan.Leave },
		"filter": func(c *plan.Collection) { c.Filter = `{"x":{"$numberInt":"1"}}` },
		"into":   func(c *plan.Collection) { c.Into = "a_new" },
	} {
		was := slices.Clone(m.entry(m.plan, "a").Fields)
		was[0].Evidence = slices.Clone(was[0].Evidence)
		m.edit(func(p *plan.Plan) { edit(m.entry(p, "a")) })
		if _, err := m.apply(); !isUsage(err) || !strings.Contains(err.Error(), filepath.Join(m.dir, plan.PlanFile)) {
			t.Errorf("%s: %v", name, err)
		}
		m.edit(func(p *plan.Plan) {
			*m.entry(p, "a") = plan.Collection{Name: "a", UUID: m.entry(p, "a").UUID, Fields: was}
		})
	}
	m.edit(func(p *plan.Plan) { m.entry(p, "b").Fields[0].Decision = plan.Convert("javaLegacy") })
	if r, err := m.apply(); err != nil || !r.Finished || r.Values != 20 || result(t, r.Steps, "a").Values != 20 {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(m.after)
	m.put("a", undetermined(t, 1)...) // nothing speaks against the decision
	if r, err := m.apply(); err != nil || !r.Incomplete {
		t.Errorf("%+v, %v", r, err)
	}
}

// The lock of another run, and that of the directory, keep apply from writing.
func TestApplyHeld(t *testing.T) {
	m := planned(t, 20, nil)
	r := m.other()
	r.Updated, r.Ended, r.Outcome, r.Pairs, r.Log = time.Now().Add(time.Hour), nil, "", m.plan.Steps()[0].Pairs, record.Log{}
	m.insert(r)
	m.a.Write = false
	if _, err := m.apply(); err != nil {
		t.Error(err)
	}
	m.a.Write = true
	var held *record.Error
	if _, err := m.apply(); !errors.As(err, &held) || !errors.Is(err, record.ErrHeld) {
		t.Error(err)
	}
	m.s.Drop(m.collection(record.Name))
	state, err := plan.Lock(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.apply(); !isUsage(err) {
		t.Error(err)
	}
	if err := state.Close(); err != nil {
		t.Fatal(err)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": m.before["b"], "c": m.before["c"], "c_new": nil})
}

// A file that cannot be written is found before the first collection is changed.
func TestApplyFiles(t *testing.T) {
	m := planned(t, 20, nil)
	if err := os.Mkdir(m.plan.Steps()[2].SkipList(m.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := m.apply(); err == nil || !strings.Contains(err.Error(), filepath.Base(m.plan.Steps()[2].SkipList(m.dir))) {
		t.Error(err)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": m.before["b"], "c_new": nil})
}

// The way forward needs no log: what is wrong with one is a warning that names it, and the end of a rehearsal.
func TestApplyWithoutLogs(t *testing.T) {
	for what, spoil := range map[string]func(path string, b []byte) error{
		"missing": func(path string, _ []byte) error { return os.Remove(path) },
		"cut off": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o600) },
		"no log":  func(path string, _ []byte) error { return os.WriteFile(path, []byte("text\n"), 0o600) },
	} {
		m := planned(t, 20, nil)
		if _, err := m.apply(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(m.dir, m.runs()[0].By.Token+".undo")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(path, b); err != nil {
			t.Fatal(err)
		}
		m.put("a", m.before["a"]...)
		for _, m.a.Write = range []bool{false, true} {
			r, err := m.apply()
			if err != nil || (r.Denied == nil) != m.a.Write || !slices.ContainsFunc(m.warnings, func(w string) bool {
				return strings.Contains(w, path) && strings.Contains(w, "what it had cannot be undone")
			}) {
				t.Errorf("%s: %v, %v, %q", what, err, r.Denied, m.warnings)
			}
		}
		m.same(m.after)
		if s, err := m.status(); err != nil || len(s.Faults) != 1 || !strings.Contains(s.Faults[0], path) {
			t.Errorf("%s: %q, %v", what, s.Faults, err)
		}
		if _, err := m.verify(false); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Without the record, apply decides anew, after a batch can be in flight no more of the runs that only logs know. A user who may not
// read the record is told by a rehearsal what there is to do.
func TestApplyWithoutRecord(t *testing.T) {
	m := planned(t, 20, nil)
	m.limit = 100 * time.Millisecond
	if _, err := m.apply(); err != nil {
		t.Fatal(err)
	}
	m.deny(13, "find", record.Name)
	m.a.Write = false
	if r, err := m.apply(); !isUsage(err) { // it does not know that the copy is its own
		t.Errorf("%+v, %v", r, err)
	}
	m.s.Before = nil
	m.s.Drop(m.collection(record.Name))
	m.s.Drop(m.collection("c_new"))
	m.put("a", append(slices.Clone(m.after["a"][:10]), m.before["a"][10:]...)...)
	m.a.Write = true
	if r, err := m.apply(); err != nil || !r.Finished || r.Values != 30 || !strings.Contains(strings.Join(m.warnings, "\n"), "waiting for 100ms") {
		t.Errorf("%+v, %v, %q", r, err, m.warnings)
	}
	m.same(m.after)
	m.o.WithoutRecord = true // of the first runs
	if _, err := m.undo(); err != nil {
		t.Error(err)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"], "b": m.before["b"]})
}

// If the server gives no UUIDs of collections, nothing tells a copy that was begun from another collection of its name: neither is
// written. One that is done is not looked at.
func TestApplyWithoutUUIDs(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		m := planned(t, 20, nil)
		m.s.NoUUIDs, m.a.Batch = true, 5
		if err := os.RemoveAll(m.dir); err != nil {
			t.Fatal(err)
		}
		m.replan(func(p *plan.Plan) { m.entry(p, "c").Into = "c_new" })
		inserts := 0
		m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup(name).StringValueOK(); of == "c_new" && name == "insert" {
				if inserts++; inserts == 3 {
					f.Code = 2
				}
			}
			return f
		}
		if _, err := m.apply(); err == nil || len(m.docs("c_new")) != 10 {
			t.Fatal(len(m.docs("c_new")), err)
		}
		m.s.Before = nil
		if replaced {
			m.s.Drop(m.collection("c_new"))
			m.put("c_new", marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "v", Value: "of another program"}}))
		}
		was := m.docs("c_new")
		if _, err := m.apply(); err == nil || !strings.Contains(err.Error(), "the server gives no UUIDs of collections") {
			t.Errorf("replaced %v: %v", replaced, err)
		}
		m.same(map[string][]bson.Raw{"c_new": was})
		m.s.Drop(m.collection("c_new"))
		for range 2 {
			if r, err := m.apply(); err != nil || result(t, r.Steps, "c").Status != Done {
				t.Errorf("replaced %v: %+v, %v", replaced, r, err)
			}
		}
		m.same(m.after)
	}
}

// A copy that was dropped is made again, which a dry run says. One that was replaced is never written.
func TestApplyOfDroppedCopy(t *testing.T) {
	m := planned(t, 20, nil)
	if _, err := m.apply(); err != nil {
		t.Fatal(err)
	}
	m.s.Drop(m.collection("c_new"))
	if s, err := m.status(); err != nil || s.Steps[2].Status != Stopped || !strings.Contains(s.Steps[2].Reason, "is not there any more") {
		t.Errorf("%+v, %v", s, err)
	}
	for _, m.a.Write = range []bool{false, true} {
		r, err := m.apply()
		if err != nil || result(t, r.Steps, "c").Status == Done != m.a.Write || !strings.Contains(strings.Join(m.warnings, "\n"), "d.c_new is not there any more") {
			t.Errorf("%+v, %v, %q", r, err, m.warnings)
		}
	}
	m.same(m.after)
	foreign := marshal(t, bson.D{{Key: "_id", Value: "foreign"}})
	m.s.Drop(m.collection("c_new"))
	m.put("c_new", foreign)
	if _, err := m.apply(); err == nil || !strings.Contains(err.Error(), "the copy that was begun was dropped or renamed: collection c_new is not empty") {
		t.Error(err)
	}
	m.same(map[string][]bson.Raw{"c_new": {foreign}})
}

// A copy that has documents of its own is not verified, and names them. The same command brings it up to date when they are gone.
func TestApplyOfDifferingCopy(t *testing.T) {
	m := planned(t, 20, nil)
	var inserted atomic.Bool
	twin := marshal(t, bson.D{{Key: "_id", Value: "twin"}})
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); of == "c_new" && name == "insert" && !inserted.Swap(true) {
			m.put("c_new", twin)
		}
		return f
	}
	r, err := m.apply()
	if c := result(t, r.Steps, "c"); err != nil || !r.Incomplete || c.Status != Unverified || len(c.Findings) != 1 || c.Findings[0].ID.StringValue() != "twin" {
		t.Fatalf("%+v, %v", r, err)
	}
	m.s.Before = nil
	if s := m.statuses()["c"]; s != Unverified {
		t.Error(s)
	}
	if p, err := m.verify(false); err != nil || p.Proven || p.Steps[2].Result.Extra != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := m.collection("c_new").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "twin"}}); err != nil {
		t.Fatal(err)
	}
	if r, err := m.apply(); err != nil || r.Incomplete || result(t, r.Steps, "c").Status != Done {
		t.Errorf("%+v, %v", r, err)
	}
	m.same(m.after)
}

// While a cutover is under way, its collections are not written, and the others of its plan neither, dry or not. After its release there
// is nothing to convert any more: what is left of the plan goes on.
func TestApplyBesideCutover(t *testing.T) {
	at := "d.c was released at 2026-07-01 12:00:00 UTC"
	for name, tt := range map[string]struct {
		state     string
		edit      func(m *migrated, p *plan.Plan)
		want      string
		released  bool // which a warning says
		converted bool // what a service has written to a
	}{
		"fenced":           {record.Fencing, nil, `d.c is fenced by a cutover of c, in the state "fencing"`, false, false},
		"switched":         {record.Switched, nil, `in the state "switched"`, false, false},
		"rolled back":      {record.RolledBack, nil, "", false, true},
		"released":         {record.Released, nil, "", true, true},
		"all are released": {record.Released, nil, at, false, false},
		"a new field": {record.Released, func(m *migrated, p *plan.Plan) {
			f := m.entry(p, "c").Fields[0]
			f.Path = "w"
			m.entry(p, "c").Fields = append(m.entry(p, "c").Fields, f)
		}, `"c": a cutover has put its copy in its place, and was released: make a plan in a new directory for what is left`, false, false},
	} {
		m := planned(t, 20, func(p *plan.Plan) {
			if name == "all are released" {
				p.Collections = slices.DeleteFunc(p.Collections, func(c plan.Collection) bool { return c.Into == "" })
				p.Only = []string{"c"}
			}
		})
		if _, err := m.apply(); err != nil {
			t.Fatal(err)
		}
		steps := m.plan.Steps()
		m.cutover(tt.state, m.plan.Conversion(steps[len(steps)-1].Task))
		if tt.edit != nil {
			m.edit(func(p *plan.Plan) { tt.edit(m, p) })
		}
		late := stored(t, "a", 30, "javaLegacy")[25]
		m.put("a", append(m.docs("a"), late)...)
		for _, m.a.Write = range []bool{false, true} {
			r, err := m.apply()
			if (err == nil) != (tt.want == "") || err != nil && (!isUsage(err) || !strings.Contains(err.Error(), tt.want)) || strings.Contains(strings.Join(m.warnings, "\n"), at) != tt.released {
				t.Errorf("%s, write %v: %+v, %v, %q", name, m.a.Write, r, err, m.warnings)
			}
		}
		if docs := m.docs("a"); bytes.Equal(docs[20], late) == tt.converted {
			t.Errorf("%s: %v", name, docs[20])
		}
	}
}

// The user who lacks privileges is told before anything is changed; a rehearsal ends with what it would end with.
func TestApplyDenied(t *testing.T) {
	m := planned(t, 20, nil)
	m.s.AuthInfo = bson.D{{Key: "authenticatedUsers", Value: bson.A{bson.D{{Key: "user", Value: "u"}}}}, {Key: "authenticatedUserPrivileges", Value: bson.A{
		bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: "d"}, {Key: "collection", Value: ""}}}, {Key: "actions", Value: bson.A{"find", "listCollections", "listIndexes", "collMod"}}}}}}
	m.deny(13, "delete", "bsonids.absent")
	for _, m.a.Write = range []bool{false, true} {
		r, err := m.apply()
		denied := r.Denied
		if m.a.Write {
			denied = err
		}
		var failed *failure.Error
		if !errors.As(denied, &failed) || failed.Kind != failure.Denied || !strings.Contains(failed.Text, "bsonids apply --write: update on") {
			t.Errorf("%v, %v", r.Denied, err)
		}
	}
	if err := Lacks(t.Context(), m.session(), m.plan); err != nil || len(m.warnings) == 0 {
		t.Errorf("%v, %q", err, m.warnings)
	}
	m.same(map[string][]bson.Raw{"a": m.before["a"]})
}

// A rehearsal names the documents of which one would get a unique value that another one has.
func TestApplyDuplicates(t *testing.T) {
	m := planned(t, 20, nil)
	m.s.Describe(m.collection("a"), "", nil, bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "v", Value: int32(1)}}}, {Key: "name", Value: "v_1"}, {Key: "unique", Value: true}})
	twin := marshal(t, bson.D{{Key: "_id", Value: int32(50)}, {Key: "v", Value: m.after["a"][3].Lookup("v")}})
	m.put("a", append(slices.Clone(m.before["a"]), twin)...)
	m.a.Write = false
	r, err := m.apply()
	if err != nil || !r.Incomplete || !r.Duplicates.Any() {
		t.Errorf("%+v, %v", r.Duplicates, err)
	}
	if b, err := os.ReadFile(filepath.Join(m.dir, plan.DuplicatesFile)); err != nil || bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("%s, %v", b, err)
	}
	sv, err := Survey(t.Context(), m.session(), m.s.Client.Database("d"), surveyed, m.plan)
	if err == nil {
		m.warnings = nil
		err = PlanDuplicates(t.Context(), m.session(), sv, m.dir, m.plan)
	}
	if err != nil || len(m.warnings) == 0 {
		t.Errorf("%v, %q", err, m.warnings)
	}
}

// The documents that no filter selects are told of whenever the plan is made, applied and proven. A filter that matches nothing any more
// proves nothing, also if deleted documents are accepted.
func TestApplyFilters(t *testing.T) {
	m := planned(t, 20, func(p *plan.Plan) {
		for i := range p.Collections {
			if p.Collections[i].Name == "a" {
				p.Collections[i].Filter = `{"_id":{"$in":[{"$numberInt":"0"},{"$numberInt":"1"}]}}`
				p.Collections[i].Fields[0].Trust = true
			}
		}
	})
	told := func(what string) {
		t.Helper()
		if !strings.Contains(strings.Join(m.warnings, "\n"), "a: 18 documents match no filter of the plan") {
			t.Errorf("%s: %q", what, m.warnings)
		}
		m.warnings = nil
	}
	if _, err := Survey(t.Context(), m.session(), m.s.Client.Database("d"), surveyed, m.plan); err != nil {
		t.Error(err)
	}
	told("plan")
	for _, m.a.Write = range []bool{false, true} {
		r, err := m.apply()
		if err != nil || result(t, r.Steps, "a").Values != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		told("apply")
	}
	m.same(map[string][]bson.Raw{"a": append(slices.Clone(m.after["a"][:2]), m.before["a"][2:]...)})
	if p, err := m.verify(false); err != nil || !p.Proven {
		t.Errorf("%+v, %v", p, err)
	}
	told("verify")
	m.put("a", m.before["a"][2:]...)
	for _, allowed := range []bool{false, true} {
		if _, err := m.verify(allowed); !isUsage(err) || !strings.Contains(err.Error(), "no document matches the filter") {
			t.Error(err)
		}
	}
}
