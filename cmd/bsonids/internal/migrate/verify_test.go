package migrate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// converted returns a migration that was applied.
func converted(t *testing.T) *migrated {
	t.Helper()
	m := planned(t, 20, nil)
	if r, err := m.apply(); err != nil || !r.Finished {
		t.Fatalf("%+v, %v", r, err)
	}
	return m
}

// proof returns the proof of the conversion of a collection.
func proof(t *testing.T, p Proof, name string) StepProof {
	t.Helper()
	i := slices.IndexFunc(p.Steps, func(s StepProof) bool { return s.Collection == name })
	if i < 0 {
		t.Fatalf("no step of %s in %+v", name, p)
	}
	return p.Steps[i]
}

// found returns what was found about the document with an _id.
func found(v convert.Verified, id int32) (reasons []string) {
	for _, s := range v.Skips {
		if s.ID.Equal(bson.RawValue{Type: bson.TypeInt32, Value: marshalID(id)}) {
			reasons = append(reasons, s.Reason)
		}
	}
	return reasons
}

func marshalID(id int32) []byte {
	return []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
}

// Each line of a log is judged by what its document has now, as "verify" of the issue lists it, and nothing at a decided path is left but
// what is listed. allowed tells whether the proof holds if changes are allowed.
func TestVerify(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil            func(m *migrated)
		proven, allowed  bool
		want             convert.Verified // of those that the test names
		reason           string           // of the document 3
		verified, listed bool
	}{
		"converted": {func(*migrated) {}, true, true, convert.Verified{Read: 20, New: 20, Proven: 20}, "", true, false},
		"still old": {func(m *migrated) { m.set("a", int32(3), "v", m.before["a"][3].Lookup("v")) }, false, false, convert.Verified{Read: 20, New: 19, Proven: 19, Old: 1, Wrong: 1}, "not converted", false, true},
		"in another order": {func(m *migrated) {
			other := m.before["a"][3].Lookup("v")
			_, b := other.Binary()
			m.set("a", int32(3), "v", bson.Binary{Subtype: 4, Data: b}) // as pythonLegacy
		}, false, false, convert.Verified{Read: 20, New: 20, Proven: 19, Wrong: 1, Foreign: 1}, "another byte order", false, true},
		"something else": {func(m *migrated) { m.set("a", int32(3), "v", kindstest.Value("standard")) }, false, true, convert.Verified{Read: 20, New: 20, Proven: 19, Changed: 1, Foreign: 1}, "v: ", true, true},
		"text":           {func(m *migrated) { m.set("a", int32(3), "v", "text") }, false, true, convert.Verified{Read: 20, New: 19, Proven: 19, Changed: 1}, "v: ", true, true},
		"deleted": {func(m *migrated) { m.put("a", slices.Delete(m.docs("a"), 3, 4)...) }, false, true,
			convert.Verified{Read: 19, New: 19, Proven: 19, Gone: 1}, "", true, false},
		"an old one that was written since": {func(m *migrated) {
			m.set("a", int32(3), "w", 1)
			m.put("a", append(m.docs("a"), stored(m, "a", 30, "javaLegacy")[25])...)
		},
			false, false, convert.Verified{Read: 21, New: 20, Proven: 20, Old: 1}, "", false, false},
		"a new one that was written since": {func(m *migrated) { m.put("a", append(m.docs("a"), stored(m, "a", 30, "standard")[25])...) },
			true, true, convert.Verified{Read: 21, New: 21, Proven: 20, Foreign: 1}, "", true, false},
		"one that is left": {func(m *migrated) { m.put("a", append(m.docs("a"), undetermined(m, 30)[25])...) },
			true, true, convert.Verified{Read: 21, New: 20, Proven: 20, Left: 1}, "", true, false},
	} {
		m := converted(t)
		tt.spoil(m)
		for _, allowed := range []bool{false, true} {
			p, err := m.verify(allowed)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := tt.proven
			if allowed {
				want = tt.allowed
			}
			a := proof(t, p, "a")
			is := a.Result
			if a.Proven != want || p.Proven != want || !proof(t, p, "b").Proven || !proof(t, p, "c").Proven || a.Basis != RestsOnUndoLog || !*is.Finished || a.Status != Done {
				t.Errorf("%s, allowed %v: %+v", name, allowed, a)
			}
			got := convert.Verified{Read: is.Read, New: is.New, Proven: is.Proven, Old: is.Old, Wrong: is.Wrong, Changed: is.Changed, Gone: is.Gone, Foreign: is.Foreign, Left: is.Left}
			if w := tt.want; got.Read != w.Read || got.New != w.New || got.Proven != w.Proven || got.Old != w.Old || got.Wrong != w.Wrong || got.Changed != w.Changed || got.Gone != w.Gone || got.Foreign != w.Foreign || got.Left != w.Left {
				t.Errorf("%s: %+v, want %+v", name, got, w)
			}
			reasons := found(is, 3)
			if (len(reasons) > 0) != tt.listed || tt.listed && !strings.Contains(strings.Join(reasons, "\n"), tt.reason) {
				t.Errorf("%s: %q", name, reasons)
			}
			s, err := m.status()
			if err != nil || s.Steps[0].Verified == nil || *s.Steps[0].Verified != want {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		}
	}
}

// A copy equals its converted source, byte for byte.
func TestVerifyCopy(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(m *migrated)
		want  convert.Verified
	}{
		"equal":        {func(*migrated) {}, convert.Verified{Proven: 20}},
		"missing":      {func(m *migrated) { m.put("c_new", m.docs("c_new")[1:]...) }, convert.Verified{Proven: 19, Missing: 1}},
		"extra":        {func(m *migrated) { m.put("c", m.docs("c")[1:]...) }, convert.Verified{Proven: 19, Extra: 1}},
		"wrong":        {func(m *migrated) { m.set("c_new", int32(3), "x", 1) }, convert.Verified{Proven: 19, Wrong: 1}},
		"changed":      {func(m *migrated) { m.set("c", int32(3), "x", 1) }, convert.Verified{Proven: 19, Wrong: 1}},
		"not the same": {func(m *migrated) { m.set("c_new", int32(3), "v", kindstest.Value("standard")) }, convert.Verified{Proven: 19, Wrong: 1}},
	} {
		m := converted(t)
		tt.spoil(m)
		p, err := m.verify(true)
		c := proof(t, p, "c")
		if is, w := c.Result, tt.want; err != nil || p.Proven != (name == "equal") || c.Proven != p.Proven || c.Basis != RestsOnSource || is.Proven != w.Proven || is.Missing != w.Missing || is.Extra != w.Extra || is.Wrong != w.Wrong {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	m := converted(t)
	m.s.Drop(m.collection("c_new"))
	if _, err := m.verify(true); !isUsage(err) || !strings.Contains(err.Error(), "d.c_new does not exist") {
		t.Error(err)
	}
}

// After a cutover, the copy is in the place of its source. What differs after the release was changed since, and a source that was
// dropped proves nothing.
func TestVerifyAfterCutover(t *testing.T) {
	for state, tt := range map[string]struct {
		err, warning string
		proven       bool // although a document was changed, if that is allowed
	}{
		record.Comparing: {"", "", true}, record.Fencing: {"", "", true}, record.RolledBack: {"", "", true},
		record.Switching: {"finish it before the proof", "", false}, record.RollingBack: {"finish it before the proof", "", false},
		record.Switched: {"", "", false}, record.Releasing: {"", "", true}, record.Released: {"", "", true}, "dropped": {"", "c_kept, the old collection, was dropped after the cutover", false},
		"another": {"", "was dropped after the cutover", false},
	} {
		m := converted(t)
		is := state
		if state == "dropped" || state == "another" {
			is = record.Released
		}
		m.cutover(is, m.plan.Conversion(m.plan.Steps()[2].Task))
		if is != record.Comparing && is != record.Fencing && is != record.RolledBack {
			m.s.Rename(m.collection("c"), "c_kept")
			m.s.Rename(m.collection("c_new"), "c")
			m.set("c", int32(3), "x", 1)
			m.put("c", append(m.docs("c")[1:], marshal(m, bson.D{{Key: "_id", Value: "fresh"}}))...)
		}
		switch state {
		case "dropped":
			m.s.Drop(m.collection("c_kept"))
		case "another":
			c := record.Cutover{Saved: record.Saved{ID: "y/cutover", Kind: "cutover", State: record.Released, Begun: time.Now()}, Collections: []record.Exchange{{Name: "c", New: "c_other", Kept: "c_kept", Maker: "other"}}}
			m.insert(c)
		}
		p, err := m.verify(true)
		if (err != nil) != (tt.err != "") || err != nil && (!isUsage(err) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %v", state, err)
		}
		if err != nil {
			continue
		}
		c := proof(t, p, "c")
		if c.Proven != tt.proven || tt.warning != "" && !strings.Contains(strings.Join(m.warnings, "\n"), tt.warning) {
			t.Errorf("%s: %+v, %q", state, c, m.warnings)
		}
		if state == record.Released {
			if v := c.Result; v.Changed != 2 || v.Gone != 1 || v.Proven != 18 || !strings.Contains(strings.Join(found(v, 3), ""), "it was changed since") || !strings.Contains(strings.Join(found(v, 0), ""), "it was deleted since") {
				t.Errorf("%+v", v)
			}
			if p, err := m.verify(false); err != nil || p.Proven {
				t.Errorf("%+v, %v", p, err)
			}
		}
	}
}

// What has not begun, has not ended, or was undone is not proven, and so is nothing without the logs that the record names.
func TestVerifyUnfinished(t *testing.T) {
	m := planned(t, 20, nil)
	if p, err := m.verify(false); err != nil || p.Proven || proof(t, p, "a").Status != NotBegun || proof(t, p, "a").Basis != "" {
		t.Errorf("%+v, %v", p, err)
	}
	m = converted(t)
	m.setRuns("a", "outcome", record.Stopped)
	m.setRuns("a", "reason", "an error")
	if p, err := m.verify(false); err != nil || p.Proven || *proof(t, p, "a").Result.Finished || proof(t, p, "a").Reason != "an error" || !proof(t, p, "b").Proven {
		t.Errorf("%+v, %v", p, err)
	}
	m.setRuns("a", "outcome", record.Done)
	m.setRuns("a", "undone", record.Undone{})
	if _, err := m.verify(false); !isUsage(err) || !strings.Contains(err.Error(), `an undo of "a" began`) {
		t.Error(err)
	}
	m = converted(t)
	m.edit(func(p *plan.Plan) { m.entry(p, "a").Fields[0].Decision = plan.Leave }) // the record tells what was converted
	if p, err := m.verify(false); err != nil || !p.Proven || len(p.Steps) != 3 || proof(t, p, "a").Result.Proven != 20 {
		t.Errorf("%+v, %v", p, err)
	}
	m.s.Drop(m.collection("a"))
	if _, err := m.verify(true); !isUsage(err) {
		t.Error(err)
	}
	m.put("a", m.after["a"][1:]...)
	if _, err := m.verify(true); err == nil || !strings.Contains(err.Error(), "is another collection than the one that was converted") {
		t.Error(err)
	}
}

// Logs that lack something prove nothing, and are named. Those of runs that the record lacks prove what they have, with a warning.
func TestVerifyLogs(t *testing.T) {
	m := converted(t)
	path := filepath.Join(m.dir, m.runs()[0].By.Token+".undo")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoilt := range map[string][]byte{"cut off": b[:len(b)-1], "without a header": b[:10], "empty": nil, "flipped": append(slices.Clone(b[:len(b)/2]), append([]byte{b[len(b)/2] ^ 1}, b[len(b)/2+1:]...)...)} {
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := m.verify(true); err == nil || p.Proven || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nothing is proven without what is missing") {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m.deny(13, "find", record.Name)
	p, err := m.verify(false)
	if err != nil || !proof(t, p, "a").Proven || !strings.Contains(strings.Join(m.warnings, "\n"), path) || !strings.Contains(strings.Join(m.warnings, "\n"), "values that its end had are not proven") {
		t.Errorf("%+v, %v, %q", p, err, m.warnings)
	}
	stray := filepath.Join(m.dir, "0123456789abcdef.undo")
	if err := os.WriteFile(stray, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.verify(true); err == nil || !strings.Contains(err.Error(), stray) {
		t.Error(err)
	}
}

// Whichever command the server refuses, nothing is called proven, but for those without which a proof is the same.
func TestVerifyAnyCommandFails(t *testing.T) {
	m := converted(t)
	for at := 1; ; at++ {
		var last string
		n := 0
		m.s.Before = func(name string, c bson.Raw) (f memory.Fault) {
			if name != "endSessions" {
				if n++; n == at {
					of, _ := c.Lookup(name).StringValueOK()
					last, f.Code = name+" "+of, 2
				}
			}
			return f
		}
		p, err := m.verify(false)
		m.s.Before = nil
		if last == "" {
			if at < 15 {
				t.Errorf("%d commands", at)
			}
			return
		}
		if tolerated := last == "update "+record.Name; (err == nil) != tolerated || p.Proven && err == nil != tolerated {
			t.Errorf("%s, command %d: %v", last, at, err)
		}
	}
}
