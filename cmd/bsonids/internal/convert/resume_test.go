package convert

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// files are the state file and the undo log of a conversion, opened for one run after another.
type files struct {
	state, undo string
	id          Identity
}

func newFiles(t *testing.T, c Conversion) files {
	dir := t.TempDir()
	return files{filepath.Join(dir, "state"), filepath.Join(dir, "undo"), Identity{Database: "d", Collection: "c", From: c.From.Name, To: c.To.Name}}
}

// with opens both for f. A state that f leaves is saved, as far as it was when a process was killed.
func (f files) with(t *testing.T, do func(*StateFile, *UndoLog)) {
	t.Helper()
	s, err := OpenState(f.state, f.id)
	if err != nil {
		t.Fatal(err)
	}
	u, err := OpenUndoLog(f.undo, f.id)
	if err != nil {
		t.Fatal(err)
	}
	do(s, u)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process is killed after the server changed a document and before the state says so. Until the same command is given
// again, another program writes a further value to the document. All values go back.
func TestUndoAfterKillAndWriter(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		for _, writes := range []string{"b", "a"} {
			t.Run(to+"/"+writes, func(t *testing.T) {
				coll := collection(t)
				c := conversion(t, "javaLegacy", to)
				old, other := value(t, "javaLegacy"), bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}
				if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "z", Value: old}}); err != nil {
					t.Fatal(err)
				}
				f := newFiles(t, c)
				run := func(s *StateFile, u *UndoLog) Result {
					t.Helper()
					res, err := InPlace(t.Context(), coll, Options{Conversion: c, Write: true, Workers: 1, State: s, Undo: u})
					if err != nil {
						t.Fatal(err)
					}
					return res
				}
				f.with(t, func(s *StateFile, u *UndoLog) {
					begun := State{Format: s.Format, Identity: s.Identity, UndoID: u.ID, UndoOffset: u.Size()}
					run(s, u)
					s.State = begun
					if err := s.Save(); err != nil {
						t.Fatal(err)
					}
				})
				if _, err := coll.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: writes, Value: other}}}}); err != nil {
					t.Fatal(err)
				}
				var res Result
				f.with(t, func(s *StateFile, u *UndoLog) { res = run(s, u) })
				if c.SameSubtype() != (res.Skipped == 1) {
					t.Errorf("%+v", res)
				}

				u, err := ReadUndoLog(f.undo)
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				undone, err := Undo(t.Context(), coll, u, true, 10, func(int) {})
				if err != nil {
					t.Fatal(err)
				}
				want := bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}, {Key: "z", Value: old}}
				if writes == "a" {
					want[1].Value = other
				} else {
					want = append(want, bson.E{Key: "b", Value: other})
				}
				got, err := coll.FindOne(t.Context(), bson.D{}).Raw()
				if err != nil {
					t.Fatal(err)
				}
				if c.SameSubtype() && writes == "a" {
					// Whose a is, nothing tells: the document is left as it is, and reported.
					if undone.Changed != 1 {
						t.Errorf("%+v", undone)
					}
					return
				}
				if !bytes.Equal(got, marshal(t, want)) || undone.Changed != 0 {
					t.Errorf("got %v, want %v; %+v", got, want, undone)
				}
			})
		}
	}
}

// Where a converted value looks like one that isn't, nobody can go over the collection a second time: a new state file
// beside the undo log of a run would have every value converted twice.
func TestSecondStateFile(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "csharpLegacy")
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value(t, "javaLegacy")}}); err != nil {
		t.Fatal(err)
	}
	f := newFiles(t, c)
	convert := func() (err error) {
		f.with(t, func(s *StateFile, u *UndoLog) {
			_, err = InPlace(t.Context(), coll, Options{Conversion: c, Write: true, Workers: 1, State: s, Undo: u})
		})
		return err
	}
	if err := convert(); err != nil {
		t.Fatal(err)
	}
	f.state += "2"
	for range 2 { // a file that the refused run left is no state to go on from
		if err := convert(); err == nil {
			t.Error("converted again")
		}
	}
	got, err := coll.FindOne(t.Context(), bson.D{}).Raw()
	if want := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value(t, "csharpLegacy")}}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v, %v", got, want, err)
	}
}

// Converted, put back and converted again with the same undo log: two lines about a document, and one way back.
func TestUndoOfTwoRuns(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	before := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value(t, "javaLegacy")}})
	if _, err := coll.InsertOne(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	f := newFiles(t, c)
	for _, already := range []int64{0, 1} {
		f.with(t, func(s *StateFile, u *UndoLog) {
			if _, err := InPlace(t.Context(), coll, Options{Conversion: c, Write: true, Workers: 1, State: s, Undo: u}); err != nil {
				t.Fatal(err)
			}
		})
		u, err := ReadUndoLog(f.undo)
		if err != nil {
			t.Fatal(err)
		}
		res, err := Undo(t.Context(), coll, u, true, 10, func(int) {})
		u.Close()
		if err != nil || res.Restored != 1 || res.Already != already || res.Changed != 0 {
			t.Errorf("%+v, %v", res, err)
		}
		got, err := coll.FindOne(t.Context(), bson.D{}).Raw()
		if err != nil || !bytes.Equal(got, before) {
			t.Errorf("got %v, want %v, %v", got, before, err)
		}
		f.state += "2"
	}
}

// A path that JSON cannot hold would not lead back to its value.
func TestUndoLogPath(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "caf\xe9", Value: value(t, "javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	f := newFiles(t, c)
	f.with(t, func(s *StateFile, u *UndoLog) {
		r := &runner{Options: Options{Conversion: c, Write: true, Undo: u, Progress: func(int) {}}, coll: coll, tracker: newTracker(),
			result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
		r.tracker.begin(0, p.ID)
		if err := r.process(t.Context(), t.Context(), batch{plans: []Plan{p}, read: 1}); err != nil {
			t.Fatal(err)
		}
		if r.result.Skipped != 1 || len(readAll(t, f.undo)) != 0 {
			t.Errorf("%+v, %v", r.result, readAll(t, f.undo))
		}
	})
}

// An _id may hold values of both kinds, and each _id in the copy has the sources that become it.
func TestSources(t *testing.T) {
	old, fresh := value(t, "javaLegacy"), value(t, "standard")
	id := func(vs ...any) bson.RawValue {
		var d bson.D
		for i, v := range vs {
			d = append(d, bson.E{Key: string(rune('a' + i)), Value: v})
		}
		return marshal(t, bson.D{{Key: "_id", Value: d}}).Lookup("_id")
	}
	for _, tt := range []struct {
		of   bson.RawValue
		want []bson.RawValue
	}{
		{id(1, "x"), []bson.RawValue{id(1, "x")}},
		{id(fresh, 1), []bson.RawValue{id(fresh, 1), id(old, 1)}},
		{id(fresh, fresh), []bson.RawValue{id(fresh, fresh), id(old, fresh), id(fresh, old), id(old, old)}},
		{id(old), nil}, // no copy has this
		{id(fresh, fresh, fresh, fresh, fresh, fresh, fresh), []bson.RawValue{
			id(fresh, fresh, fresh, fresh, fresh, fresh, fresh), id(old, old, old, old, old, old, old)}},
	} {
		got, err := conversion(t, "javaLegacy", "standard").sources(tt.of)
		if err != nil || !slices.EqualFunc(got, tt.want, bson.RawValue.Equal) {
			t.Errorf("%v: %v, want %v, %v", tt.of, got, tt.want, err)
		}
	}
	// With one subtype, a value in the copy has one source.
	got, err := conversion(t, "javaLegacy", "pythonLegacy").sources(id(value(t, "pythonLegacy")))
	if err != nil || len(got) != 1 || !got[0].Equal(id(old)) {
		t.Errorf("%v, %v", got, err)
	}
}

// A document that is deleted in the source meanwhile is the only one too many, also where _ids hold values of both kinds.
func TestExtraOfMixedIDs(t *testing.T) {
	coll := collection(t)
	target := coll.Database().Collection("t")
	c := conversion(t, "javaLegacy", "standard")
	var docs []any
	for i := range 4 {
		docs = append(docs, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: int32(i)}, {Key: "a", Value: value(t, "standard")}, {Key: "b", Value: value(t, "javaLegacy")}}}})
	}
	if _, err := coll.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if _, err := Into(t.Context(), coll, target, Options{Conversion: c, Write: true, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.DeleteOne(t.Context(), docs[0]); err != nil {
		t.Fatal(err)
	}
	v, err := VerifyInto(t.Context(), coll, target, c, func(int) {})
	if err != nil || v.Proven != 3 || v.Extra != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// A document that no update can hold is left out and reported, and doesn't keep the others from being converted.
func TestTooManyValues(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	small, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: "small"}, {Key: "a", Value: value(t, "javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "small"}, {Key: "a", Value: value(t, "javaLegacy")}}); err != nil {
		t.Fatal(err)
	}
	list := make(bson.A, 200_000)
	for i := range list {
		list[i] = value(t, "javaLegacy")
	}
	doc := marshal(t, bson.D{{Key: "_id", Value: "big"}, {Key: "l", Value: list}})
	big, err := c.Plan(doc)
	if err != nil || len(doc) > 16<<20 || len(big.Changes) != len(list) {
		t.Fatalf("%d octets, %d changes, %v", len(doc), len(big.Changes), err)
	}
	for _, p := range []Plan{small, big} {
		m := p.model(3, 4)
		if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n > p.size() || p.size() > n+100 {
			t.Errorf("%d octets, said to be %d", n, p.size())
		}
	}
	r := &runner{Options: Options{Conversion: c, Write: true, Progress: func(int) {}}, coll: coll, tracker: newTracker(),
		result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
	r.tracker.begin(0, big.ID)
	if err := r.process(t.Context(), t.Context(), batch{plans: []Plan{small, big}, read: 2}); err != nil {
		t.Fatal(err)
	}
	if r.result.Documents != 1 || r.result.Skipped != 1 || r.result.Skips[0].ID.StringValue() != "big" {
		t.Errorf("%+v", r.result)
	}
}

// A page of large documents ends before its memory is used up, and the next one goes on from there.
func TestPagesOfLargeDocuments(t *testing.T) {
	coll := collection(t)
	for i := range 5 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: i}, {Key: "x", Value: make([]byte, 1000)}}); err != nil {
			t.Fatal(err)
		}
	}
	p := &pages{coll: coll, size: 1000, octets: 3500}
	var got []int
	for {
		docs, err := p.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(docs) == 0 {
			break
		}
		got = append(got, len(docs))
	}
	if !slices.Equal(got, []int{4, 1}) {
		t.Errorf("pages of %v documents", got)
	}
}

// Lines of the undo log about documents that are not read again, done before or deleted since, are not kept for the next
// start: it would have to hold all that follows them.
func TestPassedEntries(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	for i := range 3 {
		if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: value(t, []string{"standard", "javaLegacy", "javaLegacy"}[i])}}); err != nil {
			t.Fatal(err)
		}
	}
	f := newFiles(t, c)
	f.with(t, func(s *StateFile, u *UndoLog) {
		s.UndoID, s.UndoOffset = u.ID, u.Size()
		s.Position = newPosition(marshal(t, bson.D{{Key: "v", Value: int32(0)}}).Lookup("v"))
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(plans(t, c, int32(0), int32(7), int32(2)), c, func(Plan) bool { return false }); err != nil {
			t.Fatal(err)
		}
	})
	f.with(t, func(s *StateFile, u *UndoLog) {
		if _, err := InPlace(t.Context(), coll, Options{Conversion: c, Write: true, Workers: 1, Batch: 1, State: s, Undo: u}); err != nil {
			t.Fatal(err)
		}
		if s.UndoOffset != u.Size() {
			t.Errorf("the next start reads the undo log from %d on, of %d", s.UndoOffset, u.Size())
		}
	})
	if got := readAll(t, f.undo); len(got) != 5 || got[3].Again || !got[4].Again {
		t.Errorf("%+v", got)
	}
}

// Filter and document together are no larger than what a server takes for one update, however large the document is.
func TestReplacedFits(t *testing.T) {
	for _, size := range []int{10, 7 << 20, 15 << 20} {
		d := bson.D{{Key: "_id", Value: 1}}
		for i := range 5 {
			d = append(d, bson.E{Key: string(rune('a' + i)), Value: make([]byte, size/5)})
		}
		doc := marshal(t, d)
		filter := replaced(doc, maxUpdate-len(doc))
		if n := len(marshal(t, filter)) + len(doc); n > maxUpdate {
			t.Errorf("%d octets for a document of %d", n, len(doc))
		}
		if size < 8<<20 && len(filter) != len(d) {
			t.Errorf("a document of %d octets is looked for by %d of its %d values", len(doc), len(filter), len(d))
		}
	}
}

// What is wrong with a line is said with its number in the file, from wherever one began to read.
func TestLineNumber(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "undo")
	l, err := OpenUndoLog(path, identity())
	if err != nil {
		t.Fatal(err)
	}
	var offsets []int64
	for i := range 4 { // lines 2 to 5
		offset, err := l.Append(plans(t, c, int32(i)), c, func(Plan) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, offset)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[offsets[3]:], "xx")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, offsets[1], offsets[3]} {
		u, err := ReadUndoLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Rewind(from); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = u.Next()
		}
		if !strings.HasPrefix(err.Error(), "line 5:") {
			t.Errorf("from %d: %v", from, err)
		}
		if err := u.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A link to a file is the file: a process that comes by the other name is kept out, and what is saved is the file.
func TestLinkedFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", "undo"} {
		if err := os.Symlink(filepath.Join(dir, name), filepath.Join(dir, name+"-link")); err != nil {
			t.Skip(err) // Windows asks for a privilege
		}
	}
	for _, first := range []string{"", "-link"} { // the link is there before its file
		s, err := OpenState(filepath.Join(dir, "state"+first), identity())
		if err != nil {
			t.Fatal(err)
		}
		u, err := OpenUndoLog(filepath.Join(dir, "undo"+first), identity())
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"", "-link"} {
			if _, err := OpenState(filepath.Join(dir, "state"+other), identity()); err == nil {
				t.Errorf("two processes have the state: %q and %q", first, other)
			}
			if _, err := OpenUndoLog(filepath.Join(dir, "undo"+other), identity()); err == nil {
				t.Errorf("two processes have the undo log: %q and %q", first, other)
			}
			if _, err := ReadUndoLogAlone(filepath.Join(dir, "undo"+other)); err == nil {
				t.Errorf("an undo log is undone that is written: %q and %q", first, other)
			}
		}
		s.Changed += 7
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Close(), u.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"state", "state-link"} {
		s, err := OpenState(filepath.Join(dir, name), identity())
		if err != nil {
			t.Fatal(err)
		}
		if s.Changed != 14 {
			t.Errorf("%s: %d", name, s.Changed)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
