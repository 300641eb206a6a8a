package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// DumpOptions describe the conversion of a dump by its plan.
type DumpOptions struct {
	Plan   *plan.Plan
	Dir    string // of the migration
	Out    string // path of the converted dump, "-" for Stdout, or empty for a dry run
	Stdin  io.Reader
	Stdout io.Writer
}

// Dump converts the dump of a plan, or finds what it would change. The output has its name only when it is
// whole, and a pipe gets no valid end before.
func Dump(ctx context.Context, m migration.Messages, o DumpOptions) (r Result, err error) {
	d, err := migration.OpenDump(o.Dir, o.Plan)
	if err != nil {
		return r, err
	}
	if len(d.Steps) == 0 {
		return r, failure.Usagef("every field is left: there is nothing to convert")
	}
	for i, of := range d.Decisions {
		if err := mayWrite(&of); err != nil {
			return r, &migration.CollectionError{Collection: d.Steps[i].Collection, Err: err}
		}
	}
	in, err := d.Input(o.Plan.Dump.Path, o.Stdin)
	if err != nil {
		return r, err
	}
	for _, path := range in.Others() {
		m.Warn("%s is not a file of mongodump: it is copied unchanged", path)
	}
	w := &writer{DumpOptions: o, of: d, in: in}
	defer func() { err = w.notWritten(errors.Join(err, w.close())) }()
	if err := w.open(); err != nil {
		return r, err
	}
	temp := o.Dir
	if o.Out != "" && o.Out != "-" {
		temp = filepath.Dir(o.Out)
	}
	job, done := d.Job(m, in, temp, "converting")
	job.Output, job.SkipList = w.out, w.list
	res, err := offline.Convert(ctx, job)
	done()
	if err != nil {
		return r, migration.DumpError(err)
	}
	r = w.result(res)
	return r, w.save(r)
}

// writer writes the converted dump.
type writer struct {
	DumpOptions
	of      *migration.Dumped
	in      *dump.Input
	release func() // of the name of the output
	out     *dump.Output
	list    *convert.SkipList
	state   *plan.State
	whole   bool
}

// open opens what is written: nothing in a dry run.
func (w *writer) open() (err error) {
	if w.Out == "" {
		return nil
	}
	if w.Out == "-" {
		if w.out, err = dump.CreatePipe(w.Stdout, w.in); err != nil {
			return failure.Usagef("%v", err)
		}
	} else {
		if w.release, err = dump.Claim(w.Out); err != nil {
			return failure.Usagef("%v", err)
		}
		w.out, err = dump.Create(w.Out, w.in)
		if migration.IsPath(err) || errors.Is(err, dump.ErrExists) || errors.Is(err, dump.ErrSame) || errors.Is(err, dump.ErrInside) || errors.Is(err, dump.ErrSuffix) {
			return failure.Usagef("%v", err)
		}
		if err != nil {
			return err
		}
	}
	var now *plan.Plan
	if w.state, now, err = plan.Lock(w.Dir); err != nil {
		return migration.FileError(err)
	}
	if now.Digest() != w.Plan.Digest() {
		return failure.Usagef("%s was edited while it was read: run the same command again", filepath.Join(w.Dir, plan.PlanFile))
	}
	if !w.state.Sealed() || w.state.Plan.Digest() != now.Digest() { // otherwise an earlier output stays the one that is known
		if err := w.state.AdoptDump(now, nil); err != nil {
			return err
		}
	}
	path := w.skipFile() + ".tmp"
	if err := remove(path); err != nil { // of a run that was killed
		return err
	}
	if w.list, err = convert.OpenSkipList(path, "", nil); err != nil {
		return migration.FileError(err)
	}
	return nil
}

// skipFile returns the path of the list of the values that the last output has left.
func (w *writer) skipFile() string { return filepath.Join(w.Dir, plan.SkipFile) }

// remove removes the file at path if there is one.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// close closes what open opened, and removes what is not whole.
func (w *writer) close() (err error) {
	if w.list != nil {
		err = errors.Join(w.list.Close(), remove(w.list.Path()))
	}
	if w.out != nil {
		err = errors.Join(err, w.out.Abort())
	}
	if w.state != nil {
		err = errors.Join(err, w.state.Close())
	}
	if w.release != nil {
		w.release()
	}
	return err
}

// notWritten adds to an error that there is no output.
func (w *writer) notWritten(err error) error {
	if err == nil || w.Out == "" || w.whole || w.Out != "-" && migration.Exists(w.Out) {
		return err
	}
	e, what := failure.Explain(err, ""), w.Out+" was not written"
	if w.Out == "-" {
		what = "what was written to standard output has no valid end"
	}
	return &failure.Error{Kind: e.Kind, Text: fmt.Sprintf("%s; %s", e.Text, what), Err: err}
}

// result returns what was done.
func (w *writer) result(res offline.Result) (r Result) {
	w.whole = w.Out != ""
	r.Applied = report.Applied{Database: w.Plan.Database, Written: w.whole, Finished: w.whole, Dump: &report.AppliedDump{Path: w.Plan.Dump.Path, Out: w.Out, Constants: res.Constants}}
	r.Incomplete = w.whole && !res.Complete()
	if w.list.Begun() {
		r.Dump.SkipList = w.skipFile()
	}
	next := make(map[string]int)
	for _, st := range w.of.Steps {
		name := w.Plan.Namespace(st.Collection)
		a := migration.Fresh(st)
		did := res.Of(name, w.of.Count(name))[next[name]]
		next[name]++
		a.Values, a.Documents, a.Skipped, a.SkippedFor = did.Values, did.Documents, did.Skipped, did.SkippedFor
		if w.whole {
			a.Status = report.DoneStep
			r.Values, r.Documents = r.Values+did.Values, r.Documents+did.Documents
			if did.Skipped > 0 {
				a.SkipList = r.Dump.SkipList
			}
		}
		r.Steps = append(r.Steps, a)
	}
	return r
}

// save gives the list of the values that were left its name, and writes to the ledger what was done.
func (w *writer) save(r Result) error {
	if w.state == nil {
		return nil
	}
	list := w.list
	w.list = nil
	err := list.Close()
	switch {
	case err != nil:
	case list.Begun():
		err = os.Rename(list.Path(), w.skipFile())
	default:
		err = remove(w.skipFile())
	}
	if err != nil {
		return migration.FileError(err)
	}
	c := &plan.Converted{Out: w.Out, Ended: time.Now().UTC().Format(time.RFC3339)}
	if c.Out != "-" {
		c.Out = migration.Absolute(c.Out)
	}
	for _, a := range r.Steps {
		c.Steps = append(c.Steps, plan.Done{Values: a.Values, Documents: a.Documents, Skipped: a.Skipped})
	}
	return w.state.AdoptDump(w.Plan, c)
}
