package plan

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// two returns a plan of two collections, of which one is copied.
func two() *Plan {
	left, late := java("late"), java("late")
	left.Decision, late.Decision = Leave, Leave
	return &Plan{Database: "shop", To: "standard", Made: time.Unix(0, 0).UTC(), Collections: []Collection{
		{Name: "a", Fields: []Field{java("x"), left}}, {Name: "b", Into: "b2", Fields: []Field{java("_id"), late}},
	}}
}

// names returns the files of the steps, and which values they convert.
func stepNames(steps []Step) (out []string) {
	for _, st := range steps {
		s := strings.TrimSuffix(st.Files("").State, ".state") + " " + strings.Join(FieldsOf(st.Pairs), ",")
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

// Whatever is edited before something is converted takes effect. The files of another step are new, and the
// old ones are removed after that.
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
	files, err := filepath.Glob(filepath.Join(dir, "*.state"))
	if err != nil || len(files) != 2 || !strings.HasSuffix(files[0], "a.2.state") {
		t.Errorf("%q, %v", files, err)
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
		stateFile(t, dir, two(), st, func(f *convert.StateFile) { f.Done = true })
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
		{"to text", func(p *Plan) { p.Collections[0].Fields[0].Decision += toText }, nil, `is convert from javaLegacy to text`},
		{"evidence", func(p *Plan) { p.Collections[0].Fields[0].Evidence[0].Versions = []int{1} }, nil, `the field "x" (subtype 3): evidence was [`},
		{"without the field", func(p *Plan) { p.Collections[0].Fields = p.Collections[0].Fields[1:] }, nil, `the field "x" (subtype 3) was removed`},
		{"without the collection", func(p *Plan) { p.Collections = p.Collections[1:] }, nil, `the collection "a" was removed`},
		{"target", func(p *Plan) { p.To = "pythonLegacy" }, nil, `to was standard and is pythonLegacy`},
		{"database", func(p *Plan) { p.Database = "other" }, nil, `database was "shop" and is "other"`},
		{"uuid", func(p *Plan) { p.Collections[0].UUID = "00" }, nil, `uuid was none and is "00"`},
		{"a guard", func(p *Plan) { p.Collections[0].Guard = "moderate" }, nil, ""},
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
	// A state file that is missing does not make its step one that has not begun.
	if err := os.Remove(e.Steps[0].Files(dir).State); err != nil {
		t.Fatal(err)
	}
	s, _, err = lock(t, dir, two())
	if err == nil || !strings.Contains(err.Error(), "put the file back") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
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
	st.Pass = 4
	stateFile(t, dir, two(), st, idle)
	if _, err := ReadState(dir); err != nil {
		t.Error(err)
	}
	for _, damage := range []func(){
		func() { stateFile(t, dir, two(), st, begun) },
		func() {
			stateFile(t, dir, two(), st, func(f *convert.StateFile) { f.UndoID = "" })
			if err := os.WriteFile(st.Files(dir).SkipList, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		damage()
		if _, err := ReadState(dir); err == nil || !strings.Contains(err.Error(), "is of a conversion that") {
			t.Error(err)
		}
		if _, err := Lock(dir); err == nil {
			t.Error("it is locked")
		}
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
	stateFile(t, dir, two(), e.Steps[0], begun)
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
	files, err := filepath.Glob(filepath.Join(dir, "*.state"))
	if err != nil || len(files) != 3 { // that of the first one of b, which had not begun, is gone
		t.Errorf("%q, %v", files, err)
	}
}
