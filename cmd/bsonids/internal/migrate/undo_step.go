package migrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// restoration restores the old values of one conversion.
type restoration struct {
	*session.Session
	UndoOptions
	state    *plan.State
	recorded *Recorded
	old      *Old
	// unanswered are as of [Recorded.Unanswered].
	unanswered map[string]time.Duration
	coll       *mongo.Collection
	spec       *mongo.CollectionSpecification
}

// restore restores the old values of a conversion, or finds what it would restore. The result, which lacks the step, is
// valid with an error, too.
func restore(ctx context.Context, s *session.Session, o UndoOptions, state *plan.State, recorded *Recorded, old *Old) (u UndoneStep, err error) {
	what, err := Describe(state.Plan.Database, old.Task)
	if err != nil {
		return u, err
	}
	namespace := state.Plan.Namespace(old.Task.Collection)
	s.About(namespace)
	unanswered, err := recorded.Unanswered(state, cmp.Or(s.BatchTimeout, bulk.Timeout))
	if err != nil {
		return u, err
	}
	w := &restoration{unanswered: unanswered, Session: s, UndoOptions: o, state: state, recorded: recorded, old: old, coll: s.Client.Database(what.Database).Collection(what.Task.Collection)}
	err = w.Do(ctx, func() (err error) {
		w.spec, err = server.FindCollection(ctx, w.coll)
		return err
	})
	if err != nil {
		return u, err
	}
	of := convert.Options{Selection: what.Selection, Batch: w.Batch, Pace: w.Pace, Patience: w.Patience, UUID: w.spec.UUID}
	var run *session.Claim
	if w.Write {
		if run, err = w.begin(ctx); err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, run.End(err)) }()
		of.Check = run.Check
	}
	u.Begun = true
	bar := w.Progress(-1, "restoring", namespace)
	of.Progress, of.BatchTimeout, of.Halves = bar.Add, w.BatchTimeout, w.Halves
	u.Result, err = convert.Undo(ctx, w.coll, old.Logs, of, w.Write)
	bar.Done()
	if err == nil && u.Result.Gone > 0 && old.Replaced(w.spec) {
		err = ReplacedError(namespace)
	}
	if err == nil && u.Result.Foreign > 0 {
		w.beside()
	}
	u.Result.Accepted = w.AllowChanged
	if !w.Write {
		return u, err
	}
	run.Progress(func(p *record.Progress) { p.Changed, p.Skipped = u.Result.Restored, u.Result.Unrestored })
	if err != nil {
		return u, err
	}
	return u, w.end(ctx, run, u.Result.Left == 0 || w.AllowChanged)
}

// beside warns about other migrations, which may have written the values that the logs do not have.
func (w *restoration) beside() {
	var told []string
	for _, r := range w.recorded.Runs {
		if r.Stands() && r.Collection == w.coll.Name() && r.Migration != w.state.Plan.Migration && !slices.Contains(told, r.Directory) {
			told = append(told, r.Directory)
			w.Warn("another migration has converted values of the collection, and was not undone: its directory is %s", r.Directory)
		}
	}
}

// runs returns the random ids of the runs whose values are restored, and of those whose logs are lost, wholly or in part.
func (w *restoration) runs() (ids, lost []string) {
	for _, u := range w.old.Logs {
		if !slices.Contains(w.old.LostRuns, u.Run) {
			ids = append(ids, u.Run)
		}
	}
	for _, r := range slices.Concat(w.old.Runs, w.recorded.Of(w.state.Plan.Conversion(w.old.Task))) {
		switch id := r.By.Token; {
		case slices.Contains(w.old.LostRuns, id):
			if !slices.Contains(lost, id) {
				lost = append(lost, id)
			}
		case !slices.Contains(ids, id): // which has changed nothing that a log has
			ids = append(ids, id)
		}
	}
	return ids, lost
}

// begin begins the undo in the record, and records there that the conversion is no longer in effect.
func (w *restoration) begin(ctx context.Context) (*session.Claim, error) {
	run := record.Run{Kind: record.Undo, Task: w.old.Task, UUID: w.spec.UUID, Conversion: w.state.Plan.Conversion(w.old.Task)}
	var c *session.Claim
	err := w.Do(ctx, func() (err error) {
		if err = w.Limit(ctx, w.coll.Database(), w.coll.Name()); err != nil {
			return err
		}
		c, err = w.Claim(ctx, w.coll.Database(), record.Request{Run: run})
		return err
	})
	if err != nil {
		return nil, err
	}
	var now *Recorded
	if err = await(ctx, w.Session, w.unanswered[w.coll.Name()]); err == nil {
		now, err = ReadRecord(ctx, w.Session, w.state.Plan.Database) // no other run can write any more
	}
	if err == nil {
		err = now.notFenced(w.state.Plan.Database, w.old.Task)
	}
	if err == nil {
		err = w.old.Since(now, w.state.Plan.Migration)
	}
	if err == nil {
		w.recorded = now
		err = w.mark(ctx, c, false)
	}
	if err != nil {
		return nil, errors.Join(err, c.End(err))
	}
	return c, nil
}

// end records that the values are restored, if all are, first in the record, and then in each log that has lost nothing. The
// others stay as they are.
func (w *restoration) end(ctx context.Context, run *session.Claim, all bool) error {
	if err := w.mark(ctx, run, all); err != nil || !all {
		return err
	}
	note := undolog.Undone{By: run.Run(), At: run.Started()}
	for _, u := range w.old.Logs {
		if slices.Contains(w.old.LostRuns, u.Run) {
			continue
		}
		switch err := undolog.MarkUndone(u.Path(), note); {
		case errors.Is(err, journal.ErrDamaged):
			w.Warn("%v: it stays as it is, and does not say that its values are restored", err)
		case err != nil:
			return files.FileError(err)
		}
	}
	return nil
}

// mark records how far the values are restored.
func (w *restoration) mark(ctx context.Context, run *session.Claim, complete bool) error {
	ids, lost := w.runs()
	return w.Do(ctx, func() error {
		if err := run.MarkUndone(ctx, ids, record.Undone{Complete: complete}); err != nil {
			return err
		}
		return run.MarkUndone(ctx, lost, record.Undone{Complete: complete, Lost: complete})
	})
}
