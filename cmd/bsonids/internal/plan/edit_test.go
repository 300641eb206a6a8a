package plan

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// two returns a plan of two collections, of which one is copied.
func two() *Plan {
	left, late := java("late"), java("late")
	left.Decision, late.Decision = Leave, Leave
	return &Plan{Database: "shop", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "a", Fields: []Field{java("x"), left}}, {Name: "b", Into: "b2", Fields: []Field{java("_id"), late}},
	}}
}

// stepNames returns the names of the steps, and which values they convert.
func stepNames(steps []Step) (out []string) {
	for _, st := range steps {
		s := st.Name() + " " + strings.Join(FieldsOf(st.Pairs), ",")
		if st.Listed {
			s += " listed"
		}
		if st.Again {
			s += " again"
		}
		out = append(out, s)
	}
	return out
}

// Whatever is edited before something is converted takes effect. Another step has another name, and what the ledger
// has of the old one is gone.
func TestEditBeforeBegin(t *testing.T) {
	dir := migrated(t, two())
	s, e, err := lock(t, dir, two())
	if err != nil || len(e.Changes) > 0 {
		t.Fatal(e, err)
	}
	seal(t, s, e, two())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p := two()
	p.Collections[0].Fields[1].Decision = Convert("javaLegacy")
	p.Collections[1].Into = "b3"
	s, e, err = lock(t, dir, p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stepNames(e.New), []string{"a.2 late,x", "b.2 _id"}; !reflect.DeepEqual(got, want) || len(e.Steps) != 2 {
		t.Errorf("%q", got)
	}
	if want := []string{`the collection "a": the field "late" (subtype 3): decision was leave and is convert from javaLegacy`, `the collection "b": into was "b2" and is "b3"`}; !reflect.DeepEqual(e.Changes, want) {
		t.Errorf("%q", e.Changes)
	}
	seal(t, s, e, p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := recordedSteps(t, dir), []string{"a.2", "b.2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// The edit is taken back: the first names are free again.
	s, e, err = lock(t, dir, two())
	if got, want := stepNames(e.New), []string{"a x", "b _id"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What was converted is not edited. What was left may be converted later, and what is trusted later is
// converted as it was listed.
func TestEditAfterBegin(t *testing.T) {
	dir := migrated(t, two())
	s, e, err := lock(t, dir, two())
	if err != nil {
		t.Fatal(err)
	}
	seal(t, s, e, two())
	for _, st := range e.Steps {
		saved(t, s, st, func(of *convert.State) { of.Created, of.UndoSize = st.Into != "", 1 })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		edit   func(p *Plan)
		want   []string // new steps
		frozen string
	}{
		{"nothing", func(p *Plan) { p.Made = time.Now(); p.Collections[0].Comment = []string{"x"} }, nil, ""},
		{"another field", func(p *Plan) { p.Collections[0].Fields[1].Decision = Convert("javaLegacy") }, []string{"a.2 late"}, ""},
		{"another field of a copy", func(p *Plan) { p.Collections[1].Fields[1].Decision = Convert("javaLegacy") }, []string{"b.2 _id,late again"}, ""},
		{"trust", func(p *Plan) { p.Collections[0].Fields[0].Trust = true }, []string{"a.2 x listed"}, ""},
		{"trust of a copy", func(p *Plan) { p.Collections[1].Fields[0].Trust = true }, []string{"b.2 _id again"}, ""},
		{"both", func(p *Plan) {
			p.Collections[0].Fields[0].Trust, p.Collections[0].Fields[1].Decision = true, Convert("javaLegacy")
		}, []string{"a.2 x listed", "a.3 late"}, ""},
		{"another collection", func(p *Plan) {
			p.Collections = append(p.Collections, Collection{Name: "c", Fields: []Field{java("x")}})
		}, []string{"c x"}, ""},
		{"the order", func(p *Plan) { p.Collections[0], p.Collections[1] = p.Collections[1], p.Collections[0] }, nil, ""},
		{"leave", func(p *Plan) { p.Collections[0].Fields[0].Decision = Leave }, nil, `the collection "a": the field "x" (subtype 3): decision was convert from javaLegacy and is leave`},
		{"another order", func(p *Plan) { p.Collections[0].Fields[0].Decision = Convert("csharpLegacy") }, nil, `is convert from csharpLegacy`},
		{"evidence", func(p *Plan) { p.Collections[0].Fields[0].Evidence[0].Versions = []int{1} }, nil, `the field "x" (subtype 3): evidence was [`},
		{"without the field", func(p *Plan) { p.Collections[0].Fields = p.Collections[0].Fields[1:] }, nil, `the field "x" (subtype 3) was removed`},
		{"without the collection", func(p *Plan) { p.Collections = p.Collections[1:] }, nil, `the collection "a" was removed`},
		{"database", func(p *Plan) { p.Database = "other" }, nil, `database was "shop" and is "other"`},
		{"uuid", func(p *Plan) { p.Collections[0].UUID = "00" }, nil, `uuid was none and is "00"`},
		{"a copy in place", func(p *Plan) { p.Collections[1].Into = "" }, nil, `into was "b2" and is none`},
		{"another copy", func(p *Plan) { p.Collections[1].Into = "b3" }, nil, `into was "b2" and is "b3"`},
		{"into _id", func(p *Plan) {
			f := java("_id.x")
			p.Collections[1].Fields = append(p.Collections[1].Fields, f)
		}, nil, `the field "_id.x" is in _id`},
	} {
		p := two()
		tt.edit(p)
		s, e, err := lock(t, dir, p)
		var frozen *FrozenError
		switch {
		case tt.frozen != "" && (!errors.As(err, &frozen) || !strings.Contains(err.Error(), tt.frozen)):
			t.Errorf("%s: %v", tt.name, err)
		case tt.frozen == "" && (err != nil || !reflect.DeepEqual(stepNames(e.New), tt.want)):
			t.Errorf("%s: %q, %v", tt.name, stepNames(e.New), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A step that has begun and that the ledger does not know is an error: its undo log would be overlooked.
func TestUnknownStep(t *testing.T) {
	dir := migrated(t, two())
	s, e, err := lock(t, dir, two())
	if err != nil {
		t.Fatal(err)
	}
	seal(t, s, e, two())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	st := e.Steps[0]
	for name, changes := range map[string]struct {
		size  int
		known bool // by the ledger
	}{"a.5.undo": {1, false}, "a.undo": {1, false}, "c.undo": {0, true}, "a.5.skipped.jsonl": {1, false}, "a.skipped.jsonl": {1, false}, "c.skipped.jsonl": {0, true}, "text": {1, true}, ".undo": {1, false}} {
		path := filepath.Join(dir, name)
		put(t, path, make([]byte, changes.size))
		_, err := ReadState(dir)
		if (err == nil) != changes.known || err != nil && !strings.Contains(err.Error(), path+" is of a conversion that") {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := Lock(dir); (err == nil) != changes.known {
			t.Errorf("%s: it is locked, or not: %v", name, err)
		} else if err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	// The ledger has the id of an undo log before there is one: a process that is killed at any moment leaves no stranger.
	if s, err = Lock(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Of(st).BeginUndoLog(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.undo", "a.skipped.jsonl"} {
		if _, err := ReadState(dir); err != nil {
			t.Error(err)
		}
		put(t, filepath.Join(dir, name), []byte("x"))
	}
	if _, err := ReadState(dir); err != nil {
		t.Error(err)
	}
}

// After an undo, a plan is applied with new files, and those of before are kept. An undo that has not ended
// is ended first.
func TestEditAfterUndo(t *testing.T) {
	dir := migrated(t, two())
	s, e, err := lock(t, dir, two())
	if err != nil {
		t.Fatal(err)
	}
	seal(t, s, e, two())
	saved(t, s, e.Steps[0], begun)
	if err := errors.Join(s.MarkUndone(time.Now()), s.Close()); err != nil {
		t.Fatal(err)
	}
	s, _, err = lock(t, dir, two())
	if err == nil || !strings.Contains(err.Error(), "the undo has not ended") {
		t.Fatal(err)
	}
	if err := errors.Join(s.MarkRestored(), s.Close()); err != nil {
		t.Fatal(err)
	}
	p := two()
	p.Collections[0].Fields[0].Decision, p.Collections[0].Fields[1].Decision = Leave, Convert("javaLegacy")
	s, e, err = lock(t, dir, p)
	if got, want := stepNames(e.New), []string{"a.2 late", "b.2 _id"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	seal(t, s, e, p)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = ReadState(dir); err != nil || s.Undone != "" || s.Restored || len(s.Steps()) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	// That of the first one of b, which had not begun, is gone.
	if got, want := recordedSteps(t, dir), []string{"a", "a.2", "b.2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// recordedSteps returns the names of the steps of which the ledger has facts.
func recordedSteps(t *testing.T, dir string) []string {
	t.Helper()
	l, err := ledger.ReadFile(filepath.Join(dir, LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for fact := range l.Facts(ofConversion) {
		name, _, _ := strings.Cut(fact, "/")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
