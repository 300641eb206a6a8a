package migrate

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
)

// dumped is the plan of a dump, a BSON file with 20 documents in javaLegacy, and those that a test adds.
type dumped struct {
	*testing.T
	*messages
	path, dir, out string
	before, after  []byte
	stdout         bytes.Buffer
}

func newDumped(t *testing.T, edit func(p *plan.Plan), more ...bson.Raw) *dumped {
	t.Helper()
	top := t.TempDir()
	d := &dumped{T: t, messages: new(messages), path: filepath.Join(top, "a.bson"), dir: filepath.Join(top, "d"), out: filepath.Join(top, "out.bson"),
		before: bytes.Join(raws(append(stored(t, "a", 20, "javaLegacy"), more...)), nil), after: bytes.Join(raws(stored(t, "a", 20, "standard")), nil)}
	dumptest.Write(t, d.path, d.before)
	in, err := dump.Open(d.path, nil, dump.Collection{Database: "d", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	state, err := plan.Create(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := PlanDump(t.Context(), d, state, in, "d", "a")
	if err == nil {
		if edit != nil {
			edit(p)
		}
		err = errors.Join(state.WritePlan(p), state.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func raws(docs []bson.Raw) (all [][]byte) {
	for _, doc := range docs {
		all = append(all, doc)
	}
	return all
}

// look returns the directory.
func (d *dumped) look() *plan.State {
	d.Helper()
	state, err := plan.Look(d.dir)
	if err != nil {
		d.Fatal(err)
	}
	return state
}

func (d *dumped) apply(out string) (Applied, error) {
	d.Helper()
	return ApplyDump(d.Context(), d, DumpOptions{Plan: d.look().Plan, Dir: d.dir, Out: out, Stdout: &d.stdout})
}

// A dump is planned, converted and proven, to a file or to a pipe, and a dry run tells what a run changes.
func TestDump(t *testing.T) {
	d := newDumped(t, nil)
	want := func(r Applied, err error, written bool) {
		t.Helper()
		if err != nil || r.Written != written || r.Finished != written || r.Incomplete || len(r.Steps) != 1 || r.Steps[0].Values != 20 || r.Steps[0].Documents != 20 || (r.Steps[0].Status == Done) != written || r.Values > 0 != written {
			t.Errorf("%+v, %v", r, err)
		}
	}
	r, err := d.apply("")
	want(r, err, false)
	if s, err := StatusOfPlan(d.look()); err != nil || len(s) != 1 || s[0].Status != NotBegun || s[0].Conversion != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := VerifyDump(t.Context(), d, d.look(), "", "", nil); !isUsage(err) || !strings.Contains(err.Error(), "has not converted the dump") {
		t.Error(err)
	}
	r, err = d.apply("-")
	if want(r, err, true); !bytes.Equal(d.stdout.Bytes(), d.after) {
		t.Error("standard output is not the converted dump")
	}
	if _, err := VerifyDump(t.Context(), d, d.look(), "", "", nil); !isUsage(err) || !strings.Contains(err.Error(), "was a pipe") {
		t.Error(err)
	}
	if _, err := VerifyDump(t.Context(), d, d.look(), "-", "-", nil); !isUsage(err) {
		t.Error(err)
	}
	if p, err := VerifyDump(t.Context(), d, d.look(), d.path, "-", bytes.NewReader(d.after)); err != nil || !p.Proven {
		t.Errorf("%+v, %v", p, err)
	}
	r, err = d.apply(d.out)
	want(r, err, true)
	if b, err := os.ReadFile(d.out); err != nil || !bytes.Equal(b, d.after) {
		t.Error("the output is not the converted dump", err)
	}
	if s, err := StatusOfPlan(d.look()); err != nil || s[0].Status != Done || s[0].Changed != 20 {
		t.Errorf("%+v, %v", s, err)
	}
	if p, err := VerifyDump(t.Context(), d, d.look(), "", "", nil); err != nil || !p.Proven || p.Steps[0].Result.Proven != 20 || p.Dump.Out != d.out || p.Left() != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	other := bytes.Clone(d.after)
	other[len(other)-2] ^= 1
	if p, err := VerifyDump(t.Context(), d, d.look(), d.path, "-", bytes.NewReader(other)); err == nil && p.Proven {
		t.Errorf("%+v", p)
	}
	if p, err := VerifyDump(t.Context(), d, d.look(), d.path, "-", bytes.NewReader(d.after[:len(d.after)/20])); err != nil || p.Proven || p.Steps[0].Proven || p.Steps[0].Result.Missing != 19 {
		t.Errorf("%+v, %v", p, err)
	}
}

// What is left is listed beside the output.
func TestDumpLeft(t *testing.T) {
	d := newDumped(t, nil, undetermined(t, 30)[25])
	r, err := d.apply(d.out)
	if err != nil || !r.Incomplete || r.Steps[0].Skipped != 1 || r.Steps[0].SkipList != filepath.Join(d.dir, plan.SkipFile) || r.Dump.SkipList != r.Steps[0].SkipList {
		t.Errorf("%+v, %v", r, err)
	}
	if p, err := VerifyDump(t.Context(), d, d.look(), "", "", nil); err != nil || !p.Proven || p.Left() != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// failing is a writer on a full disk.
type failing struct{}

var errFull = errors.New("no space left")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A dump that is another one, a plan that was edited, and output that cannot be written leave no output, and say so.
func TestDumpRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		edit  func(p *plan.Plan)
		spoil func(d *dumped)
		want  string
	}{
		"left": {func(p *plan.Plan) { p.Collections[0].Fields[0].Decision = plan.Leave }, nil, "there is nothing to convert"},
		"another order": {func(p *plan.Plan) {
			f := &p.Collections[0].Fields[0]
			f.Decision, f.Trust = plan.Convert("csharpLegacy"), false
		}, nil, "nothing was converted"},
		"another dump":   {nil, func(d *dumped) { dumptest.Write(d, d.path, d.before[:len(d.before)/2+len(d.before)%2]) }, "out.bson was not written"},
		"no dump":        {nil, func(d *dumped) { _ = os.Remove(d.path) }, "a.bson"},
		"no evidence":    {nil, func(d *dumped) { _ = os.Remove(filepath.Join(d.dir, plan.EvidenceFile)) }, plan.EvidenceFile},
		"other evidence": {nil, func(d *dumped) { dumptest.Write(d, filepath.Join(d.dir, plan.EvidenceFile), []byte("{}")) }, plan.EvidenceFile},
		"an output":      {nil, func(d *dumped) { dumptest.Write(d, d.out, []byte("x")) }, "out.bson"},
		"a new field":    {func(p *plan.Plan) { p.Collections[0].Fields[0].Path = "w" }, nil, "does not fit its dump"},
		"in use": {nil, func(d *dumped) {
			state, err := plan.Lock(d.dir)
			if err != nil {
				d.Fatal(err)
			}
			d.Cleanup(func() { _ = state.Close() })
		}, "out.bson was not written"},
	} {
		d := newDumped(t, tt.edit)
		if tt.spoil != nil {
			tt.spoil(d)
		}
		was, _ := os.ReadFile(d.out)
		if r, err := d.apply(d.out); err == nil || !strings.Contains(err.Error(), tt.want) || r.Written {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if b, err := os.ReadFile(d.out); err != nil && !errors.Is(err, fs.ErrNotExist) || !bytes.Equal(b, was) {
			t.Errorf("%s: an output of %d bytes, %v", name, len(b), err)
		}
	}
	d := newDumped(t, nil)
	_, err := ApplyDump(t.Context(), d, DumpOptions{Plan: d.look().Plan, Dir: d.dir, Out: "-", Stdout: io.Writer(failing{})})
	if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "what was written to standard output has no valid end") {
		t.Error(err)
	}
	edited := d.look().Plan
	state, err := plan.Lock(d.dir)
	if err == nil {
		state.Plan.Collections[0].Fields[0].Trust = true
		err = errors.Join(state.WritePlan(state.Plan), state.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ApplyDump(t.Context(), d, DumpOptions{Plan: edited, Dir: d.dir, Out: d.out}); !isUsage(err) || !strings.Contains(err.Error(), "was edited while it was read") {
		t.Error(err)
	}
}

// The collections of a dump of a directory are its own, and other files are copied.
func TestDumpOfDirectory(t *testing.T) {
	top := t.TempDir()
	path := filepath.Join(top, "dump")
	var docs []any
	for _, doc := range stored(t, "a", 20, "javaLegacy") {
		docs = append(docs, doc)
	}
	dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "a", Metadata: `{"options":{},"indexes":[]}`, Documents: docs}, dumptest.Collection{Database: "e", Name: "b", Metadata: `{"options":{},"indexes":[]}`, Documents: docs[:1]})
	dumptest.Write(t, filepath.Join(path, "notes.txt"), []byte("notes"))
	in, err := dump.Open(path, nil, dump.Collection{})
	if err != nil {
		t.Fatal(err)
	}
	d := &dumped{T: t, messages: new(messages), path: path, dir: filepath.Join(top, "d"), out: filepath.Join(top, "out")}
	state, err := plan.Create(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PlanDump(t.Context(), d, state, in, "", "a"); !isUsage(err) {
		t.Error(err)
	}
	p, err := PlanDump(t.Context(), d, state, in, "d", "")
	if err := errors.Join(err, state.WritePlan(p), state.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := d.apply(d.out); err != nil || r.Values != 20 || !strings.Contains(strings.Join(d.warnings, "\n"), "notes.txt is not a file of mongodump") {
		t.Errorf("%+v, %v, %q", r, err, d.warnings)
	}
	if b, err := os.ReadFile(filepath.Join(d.out, "d", "a.bson")); err != nil || !bytes.Equal(b, bytes.Join(raws(stored(t, "a", 20, "standard")), nil)) {
		t.Error("the output is not converted", err)
	}
	if p, err := VerifyDump(t.Context(), d, d.look(), "", "", nil); err != nil || !p.Proven {
		t.Errorf("%+v, %v", p, err)
	}
}
