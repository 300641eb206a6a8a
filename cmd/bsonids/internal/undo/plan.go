package undo

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Plan undoes all conversions of a plan, in the opposite order of the work. The state must be locked if
// the undo writes. putBack is called before anything is changed: it puts the collections back in whose
// places there are copies. The steps are valid with an error, too.
func Plan(ctx context.Context, s *migration.Session, o Options, state *plan.State, putBack func() error) (steps []report.UndoneStep, err error) {
	if o.Write {
		s.Pace = patience.Steered(plan.SteeringOf(state.Dir()), s.Warn)
	}
	o.Batch, _ = s.Gentle(ctx, 1, o.Batch, 1)
	denied, err := s.Allowed(ctx, migration.WorkOf(state.Plan, state.Steps()), o.Write, privilege.Undo)
	if err != nil {
		return nil, err
	}
	if err := s.Fits(ctx, state.Plan.Database, state); err != nil {
		return nil, err
	}
	if o.own, err = logsWhole(ctx, s, state); err != nil {
		return nil, err
	}
	if err := inOrder(ctx, s, state, o); err != nil {
		return nil, err
	}
	if err := putBack(); err != nil {
		return nil, err
	}
	if o.Write {
		if err := s.BeginPlan(ctx, state, nil); err != nil {
			return nil, err
		}
		if err := state.MarkUndone(time.Now()); err != nil {
			return nil, err
		}
	}
	all := true
	named := make(listed)
	for _, st := range slices.Backward(state.Steps()) {
		u, err := step(ctx, s, o, state, st)
		u.Result.Foreign = named.foreign(st, u.Result)
		steps = append(steps, u)
		if err != nil {
			return steps, &migration.CollectionError{Collection: st.Collection, Err: err}
		}
		all = all && (u.Result.Left == 0 || o.AllowChanged)
	}
	if !o.Write {
		return steps, denied
	}
	if all {
		return steps, state.MarkRestored()
	}
	return steps, nil
}

// pass is one of the conversions of an entry.
type pass struct {
	of plan.Entry
	n  int
}

// listed has the number of new values that are in the undo logs of conversions of listed values, by the conversion that listed them.
type listed map[pass]int64

// foreign returns how many of the new values that a step met are in no undo log. Later steps come first, and the one that listed
// the values counts for those that converted them.
func (l listed) foreign(st plan.Step, of convert.Undone) int64 {
	at := pass{st.Entry(), st.Pass}
	if !st.Listed {
		return max(0, of.Foreign-l[at])
	}
	l[pass{st.Entry(), st.Of}] += of.Standing + l[at]
	return 0
}

// step undoes one conversion of a plan. A conversion into a new collection has nothing to undo.
func step(ctx context.Context, s *migration.Session, o Options, state *plan.State, st plan.Step) (out report.UndoneStep, err error) {
	if of := state.Of(st); st.Into == "" {
		var what migration.Described
		if what, err = migration.Describe(state.Plan.Database, st.Task); err == nil {
			out, err = restore(ctx, s.Child(state.Plan.Namespace(st.Collection)), o, what, of, state.Files(st).UndoLog)
		}
		if !of.Begun() && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	out.Step = migration.StepOf(state, st).Step
	return out, err
}

// inOrder returns an error if a later conversion of another plan has to be undone before one of the conversions of this one.
func inOrder(ctx context.Context, s *migration.Session, state *plan.State, o Options) error {
	db := s.Client.Database(state.Plan.Database)
	for _, st := range state.Steps() {
		of := state.Of(st)
		if st.Into != "" || of.UndoID == "" {
			continue // nothing was changed, as far as the ledger tells
		}
		coll, log := db.Collection(st.Collection), record.Run{UndoID: of.UndoID}
		err := s.Do(ctx, func() error {
			spec, err := server.Specification(ctx, coll)
			if err != nil || spec.Name == "" { // the step says that it does not exist
				return err
			}
			return last(ctx, coll, spec.UUID, log, state.Files(st).UndoLog)
		})
		if err != nil {
			return &migration.CollectionError{Collection: st.Collection, Err: err}
		}
	}
	return nil
}

// logsWhole returns the ids of the undo logs of the plan, and an error that names each of them that is missing or
// lacks entries.
func logsWhole(ctx context.Context, s *migration.Session, state *plan.State) (ids []string, err error) {
	var broken []error
	for _, st := range state.Steps() {
		if st.Into != "" { // nothing was changed
			continue
		}
		l := migration.LogOf(st.Collection, state.Of(st))
		if l.ID != "" {
			ids = append(ids, l.ID)
		}
		err = s.Do(ctx, func() (err error) {
			l, err = l.InRecord(ctx, s.Client.Database(state.Plan.Database))
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := l.In(state.Files(st).UndoLog); err != nil {
			broken = append(broken, err)
		}
	}
	if len(broken) == 0 {
		return ids, nil
	}
	return nil, migration.IncompleteLogs("values would stay converted", broken...)
}
