package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// DumpOptions describe the conversion of a dump by its plan.
type DumpOptions struct {
	Plan   *plan.Plan
	Dir    string // of the migration
	Out    string // path of the converted dump, "-" for Stdout, or empty for a dry run
	Stdin  io.Reader
	Stdout io.Writer
}

// ApplyDump converts the dump of a plan, or finds what it would change. The output has its name only when it is
// whole, and a pipe gets no valid end before.
func ApplyDump(ctx context.Context, m session.Messages, o DumpOptions) (r Applied, err error) {
	d, err := OpenDump(o.Dir, o.Plan)
	if err != nil {
		return r, err
	}
	if len(d.Steps) == 0 {
		return r, failure.Usagef("every field is left: there is nothing to convert")
	}
	for i, of := range d.Decisions {
		if err := mayWrite(of); err != nil {
			return r, &failure.CollectionError{Collection: d.Steps[i].Collection, Err: err}
		}
	}
	in, err := d.Input(o.Plan.Dump.Path, o.Stdin)
	if err != nil {
		return r, err
	}
	for _, path := range in.Others() {
		m.Warn("%s is not a file of mongodump: it is copied unchanged", path)
	}
	w := &writer{DumpOptions: o}
	temp := o.Dir
	if o.Out != "" {
		if o.Out != "-" {
			temp = filepath.Dir(o.Out)
		}
		defer func() { err = w.notWritten(errors.Join(err, w.close())) }()
		if err := w.open(in); err != nil {
			return r, err
		}
	}
	job, done := d.Job(m, in, temp, "converting")
	job.Output, job.SkipList = w.out, w.list
	res, err := offline.Convert(ctx, job)
	done()
	if err != nil {
		return r, err
	}
	w.whole = o.Out != ""
	r = Applied{Database: o.Plan.Database, Written: w.whole, Finished: w.whole, Dump: &AppliedDump{Path: o.Plan.Dump.Path, Out: o.Out, Constants: res.Constants}}
	r.Incomplete = !res.Complete()
	if w.list.Begun() {
		r.Dump.SkipList = w.skipFile()
	}
	for _, st := range d.Steps {
		a, did := Fresh(st), d.Of(res, st)
		a.Values, a.Documents, a.Skipped, a.SkippedFor = did.Values, did.Changed, did.Skipped, did.SkippedFor
		if w.whole {
			a.Status = Done
			r.Values, r.Documents = r.Values+did.Values, r.Documents+did.Changed
			if did.Skipped > 0 {
				a.SkipList = r.Dump.SkipList
			}
		}
		r.Steps = append(r.Steps, a)
	}
	if w.whole {
		err = w.save(r.Steps)
	}
	return r, err
}

// writer writes the converted dump.
type writer struct {
	DumpOptions
	out   *dump.Output
	list  *convert.SkipList
	state *plan.State
	whole bool
}

// open opens what is written.
func (w *writer) open(in *dump.Input) (err error) {
	if w.Out == "-" {
		w.out, err = dump.CreatePipe(w.Stdout, in)
	} else {
		w.out, err = dump.Create(w.Out, in)
	}
	if err != nil {
		return files.FileError(err)
	}
	if w.state, err = plan.Lock(w.Dir); err != nil {
		return files.FileError(err)
	}
	if w.state.Plan.Digest() != w.Plan.Digest() {
		return failure.Usagef("%s was edited while it was read: run the same command again", filepath.Join(w.Dir, plan.PlanFile))
	}
	w.list, err = convert.CreateSkipList(w.skipFile(), "")
	return files.FileError(err)
}

// skipFile returns the path of the list of the values that the last output has left.
func (w *writer) skipFile() string { return filepath.Join(w.Dir, plan.SkipFile) }

// save gives the list of the values that were left its name, and notes what was done. Until then,
// the directory tells of the output before.
func (w *writer) save(steps []AppliedStep) error {
	list := w.list
	w.list = nil
	if err := list.Close(); err != nil {
		return files.FileError(err)
	}
	c := &plan.Converted{Out: w.Out, Ended: time.Now().UTC().Format(time.RFC3339)}
	if c.Out != "-" {
		c.Out = files.Absolute(c.Out)
	}
	for _, a := range steps {
		c.Steps = append(c.Steps, plan.ConvertedStep(a.Changed))
	}
	return files.FileError(w.state.WriteConverted(c))
}

// close closes what open opened, and removes what is not whole.
func (w *writer) close() (err error) {
	if w.list != nil {
		err = w.list.Discard()
	}
	if w.out != nil {
		err = errors.Join(err, w.out.Close())
	}
	if w.state != nil {
		err = errors.Join(err, w.state.Close())
	}
	return err
}

// notWritten adds to an error that there is no output.
func (w *writer) notWritten(err error) error {
	if err == nil || w.whole || w.Out != "-" && files.Exists(w.Out) {
		return err
	}
	e, what := failure.Explain(err, ""), w.Out+" was not written"
	if w.Out == "-" {
		what = "what was written to standard output has no valid end"
	}
	return &failure.Error{Kind: e.Kind, Text: fmt.Sprintf("%s; %s", e.Text, what), Err: err}
}
