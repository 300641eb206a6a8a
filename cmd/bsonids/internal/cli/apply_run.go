package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// errStopped is the cause of the end of the conversions that run when another one has failed.
var errStopped = errors.New("another conversion has failed")

// ended is how one step ended.
type ended struct {
	report.AppliedStep
	values, documents int64 // changed in this run
	err               error
}

// convert carries out the plan, several collections at once, and prints what it did.
func (o *applyOptions) convert(ctx context.Context, client *mongo.Client, p *plan.Plan, works []work) error {
	db := client.Database(p.Database)
	if err := mayOpen(works); err != nil {
		return err
	}
	total, err := o.count(ctx, db, works)
	if err != nil {
		return err
	}
	mark, err := o.beginPlan(ctx, db, p, works)
	if err != nil {
		return err
	}
	// Once for all collections.
	if err := o.load.patience.Do(ctx, func() error { return o.limit(ctx, db, works[0].collection) }); err != nil {
		return err
	}
	bar := o.progress(total, "converting", p.Database)
	results := o.each(ctx, works, func(ctx context.Context, st *step) ended { return o.one(ctx, client, st, bar) })
	bar.Done()

	applied := report.Applied{Database: p.Database, Written: true}
	var failed error
	var values, docs int64
	incomplete, unverified, wrote := false, false, false
	for _, r := range results {
		applied.Steps = append(applied.Steps, r.AppliedStep)
		values, docs = values+r.values, docs+r.documents
		incomplete = incomplete || r.Skipped > 0
		unverified = unverified || r.Status == report.Unverified
		wrote = wrote || r.documents > 0 || r.Status == report.Stopped
		if r.err != nil && (failed == nil || errors.Is(failed, context.Canceled) || errors.Is(failed, errStopped)) {
			e := failure.Explain(nameFlag(r.err), o.connectionString())
			failed = &failure.Error{Kind: e.Kind, Text: quoted(r.Collection) + ": " + e.Text, Err: r.err}
			if errors.Is(r.err, context.Canceled) {
				failed = r.err
			}
		}
	}
	applied.Failed = failed != nil
	if failed != nil && wrote {
		o.wayOn = &wayOn{changed: fmt.Sprintf("%d values in %d documents in this run, and possibly documents of the batches in progress; no others", values, docs),
			again: curable(failed), back: commandLine(append([]string{"bsonids", "undo", o.file, "--state-dir", o.stateDir, "--write"}, o.serverArgs()...))}
	}
	err = errors.Join(o.print(applied), mark.end(failed))
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	case incomplete || unverified:
		return failure.ErrIncomplete
	}
	return nil
}

// mayOpen returns a usage error if a file of a step cannot be written. A file of the last collection that
// cannot is found before the first one is changed.
func mayOpen(works []work) error {
	for _, w := range works {
		for _, st := range w.steps {
			for _, path := range []string{st.options.undoLog, st.options.skipList} {
				if path == "" {
					continue
				}
				if err := convert.MayWrite(path); err != nil {
					return fileError(err, "--state-dir: %v", err)
				}
			}
		}
	}
	return nil
}

// count notes about how many documents each step reads, and returns the sum.
func (o *applyOptions) count(ctx context.Context, db *mongo.Database, works []work) (total int64, err error) {
	for _, w := range works {
		var n int64
		err := o.load.patience.Do(ctx, func() (err error) {
			n, err = db.Collection(w.collection).EstimatedDocumentCount(ctx)
			return err
		})
		if err != nil {
			return 0, err
		}
		for _, st := range w.steps {
			st.documents = n
			total += n
		}
	}
	return total, nil
}

// each carries out the steps of several collections at once, in the order of the work. The steps of
// one collection are carried out one after the other. After an error, no step is begun, and those in
// progress are stopped.
func (o *applyOptions) each(ctx context.Context, works []work, carryOut func(context.Context, *step) ended) []ended {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([][]ended, len(works))
	next := make(chan int)
	var running sync.WaitGroup
	for range min(o.atOnce.value, len(works)) {
		running.Go(func() {
			for i := range next {
				for _, st := range works[i].steps {
					if ctx.Err() != nil {
						results[i] = append(results[i], ended{AppliedStep: fresh(st.Step), err: ctx.Err()})
						continue
					}
					r := carryOut(ctx, st)
					results[i] = append(results[i], r)
					if r.err != nil {
						stop(errStopped)
					}
				}
			}
		})
	}
	for i := range works {
		next <- i
	}
	close(next)
	running.Wait()
	var out []ended
	for _, r := range results {
		out = append(out, r...)
	}
	return out
}

// fresh returns a step that was not begun.
func fresh(st plan.Step) report.AppliedStep {
	return report.AppliedStep{Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields, Status: report.NotBegun}
}

// one carries out one step.
func (o *applyOptions) one(ctx context.Context, client *mongo.Client, st *step, bar *terminal.Progress) ended {
	st.options.load, st.options.batch, st.options.workers, st.options.advance = o.load, o.batch, o.workers, bar.Add
	st.options.recordFlags = o.recordFlags
	out, err := st.options.convert(ctx, client, st.job)
	r := ended{AppliedStep: fresh(st.Step), err: err}
	r.Values, r.Documents, r.Skipped = out.all.Values, out.all.Changed, out.all.Skipped
	switch {
	case out.finished:
		r.Status = report.DoneStep
	case out.inPlace != nil:
		r.Status, r.values, r.documents = report.DoneStep, out.inPlace.Values, out.inPlace.Documents
	case out.copied != nil:
		r.Status, r.values, r.documents = report.DoneStep, out.copied.Values, out.copied.Documents
		if err == nil && !out.copied.Verified {
			r.Status = report.Unverified
		}
	}
	if err != nil && (out.inPlace != nil || out.copied != nil) {
		r.Status = report.Stopped
	}
	if out.about.SkipList.Begun() {
		r.SkipList = out.about.SkipList.Path()
	}
	return r
}

// print writes what was applied, or would be.
func (o *applyOptions) print(a report.Applied) error {
	if o.output.value == formatJSON {
		return report.AppliedJSON(o.out, a)
	}
	report.Apply(o.out, a, o.file, o.stateDir)
	return nil
}

// marked is the document of the plan in the record of the database.
type marked struct {
	o  *applyOptions
	db *mongo.Database
	id string
}

// beginPlan notes in the record that the plan is under way, for bsonids status on other machines.
func (o *applyOptions) beginPlan(ctx context.Context, db *mongo.Database, p *plan.Plan, works []work) (*marked, error) {
	if o.noRecord {
		return &marked{}, nil
	}
	dir, err := filepath.Abs(o.stateDir)
	if err != nil {
		return nil, err
	}
	v, _ := build()
	m := &marked{o: o, db: db}
	note := record.Plan{Digest: p.Digest(), To: p.To, StateDir: dir}
	for _, w := range works {
		for _, st := range w.steps {
			note.Steps = append(note.Steps, record.PlanStep{Collection: w.collection, From: st.From, To: st.To, Into: st.Into, Conversion: conversionOf(st), Documents: st.documents})
		}
	}
	err = o.load.patience.Do(ctx, func() (err error) {
		m.id, err = record.BeginPlan(ctx, db, note, v)
		return err
	})
	return m, nameRecord(err)
}

// end notes that the command has ended with the error failed, or nil.
func (m *marked) end(failed error) error {
	if m.o == nil {
		return nil
	}
	return m.o.load.patience.Do(context.Background(), func() error { return record.EndPlan(m.db, m.id, failed) })
}

// conversionOf returns the name of the conversion in the record, from its state file.
func conversionOf(st *step) string {
	s, err := convert.ReadState(st.options.state)
	if err != nil {
		return ""
	}
	return s.Conversion
}
