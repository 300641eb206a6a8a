package undo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Plan undoes all conversions of a plan, in the opposite order of the work. The state must be locked if
// the undo writes. The steps are valid with an error, too.
func Plan(ctx context.Context, s *migration.Session, o Options, state *plan.State) (steps []report.UndoneStep, err error) {
	o.Batch, _ = s.Gentle(ctx, 1, o.Batch, 1)
	if err := logsWhole(ctx, s, state); err != nil {
		return nil, err
	}
	if err := copiesAway(ctx, s, state); err != nil {
		return nil, err
	}
	if o.Write {
		if err := state.MarkUndone(time.Now()); err != nil {
			return nil, err
		}
	}
	for _, st := range slices.Backward(state.Plan.Steps()) {
		u, err := step(ctx, s, o, state, st)
		steps = append(steps, u)
		if err != nil {
			return steps, &migration.CollectionError{Collection: st.Collection, Err: err}
		}
	}
	return steps, nil
}

// step undoes one conversion of a plan. A conversion into a new collection has nothing to undo.
func step(ctx context.Context, s *migration.Session, o Options, state *plan.State, st plan.Step) (report.UndoneStep, error) {
	of, err := migration.StepOf(state, st)
	out := report.UndoneStep{Step: of}
	if st.Into != "" {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	path := state.Files(st).UndoLog
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	u, err := Log(ctx, s.Child(state.Plan.Database+"."+st.Collection), o, path)
	out.Begun, out.Result = u.Begun, u.Result
	return out, err
}

// copiesAway returns a usage error if a copy of the plan is in the place of its collection, or may come there:
// without its old collection, the undo would not be complete. It reads the record also if the undo is not
// recorded. If the old collection was dropped, nothing can put it back, and it warns.
func copiesAway(ctx context.Context, s *migration.Session, state *plan.State) error {
	db := s.Client.Database(state.Plan.Database)
	for _, st := range state.Plan.Steps() {
		if st.Into == "" {
			continue
		}
		var c *record.Cutover
		var there []string
		err := s.Do(ctx, func() (err error) {
			if c, err = record.InPlace(ctx, db, st.Collection, st.Into); migration.Denied(err) {
				err = nil
			}
			if c != nil {
				there, err = db.ListCollectionNames(ctx, bson.D{})
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case c == nil:
			continue
		}
		i := slices.IndexFunc(c.Collections, func(x record.Exchange) bool { return x.Name == st.Collection })
		if c.State == record.Released && !slices.Contains(there, c.Collections[i].Kept) {
			s.Warn("%q: a cutover has put %s in its place, and the old collection was dropped: it stays as it is", st.Collection, st.Into)
			continue
		}
		of := "--db " + terminal.Quote(db.Name())
		for _, name := range c.Names() {
			of += " " + terminal.Quote(name)
		}
		then := "bsonids undo " + of + " --write"
		switch c.State {
		case record.Released:
			then = "put the old collection back first with " + then
		case record.Switched, record.Releasing:
			then = "release it with bsonids release " + of + " --write, and then put the old collection back with " + then
		default:
			then = "end it first with the command that has begun it, or with bsonids cutover " + of + " --roll-back --write"
		}
		return failure.Usagef("%q: a cutover that puts %s in its place is in the state %q: %s", st.Collection, st.Into, c.State, then)
	}
	return nil
}

// logsWhole returns an error that names each undo log of the plan, and each state file, that is
// missing or lacks entries.
func logsWhole(ctx context.Context, s *migration.Session, state *plan.State) error {
	var broken []string
	var cause error
	add := func(err error) {
		broken, cause = append(broken, migration.Nameless(err)), errors.Join(cause, err)
	}
	for _, st := range state.Plan.Steps() {
		if st.Into != "" { // nothing was changed
			continue
		}
		l := migration.Log{Collection: st.Collection}
		begun := false
		if state.Decided {
			of, err := migration.StateOf(state, st)
			if err != nil {
				add(err)
				continue
			}
			l, begun = migration.LogOf(of), of.Begun()
		}
		// Without a record, only a directory in which nothing was begun is compared with it, because it may
		// be an earlier copy.
		if !s.NoRecord || !begun {
			other, err := recorded(ctx, s, s.Client.Database(state.Plan.Database), st, &l)
			if err != nil {
				return err
			}
			if other.ID != "" {
				add(fmt.Errorf("%s: nothing was begun with it, and the collection %q was converted with the undo log %s; if that was another plan, undo it with its own directory",
					state.Files(st).State, st.Collection, other.Path))
				continue
			}
			if s.NoRecord && l.ID == "" {
				s.Warn("%q: not begun, as %s has it; without a record, an earlier copy of the directory looks the same", st.Collection, state.Dir())
			}
		}
		if err := l.In(state.Files(st).UndoLog); err != nil {
			add(err)
		}
	}
	if cause == nil {
		return nil
	}
	return migration.IncompleteLogs(strings.Join(broken, "; "), "values would stay converted", cause)
}

// recorded adds what the record says about the undo log of a step. If the step has no name in the record,
// because nothing was decided with the directory, it returns the log of the last conversion as in the
// step whose values were not restored: the directory may be an earlier copy.
func recorded(ctx context.Context, s *migration.Session, db *mongo.Database, st plan.Step, l *migration.Log) (other record.Log, err error) {
	err = s.Do(ctx, func() (err error) {
		if *l, err = l.InRecord(ctx, db); err == nil && l.ID == "" && l.Conversion == "" {
			other, err = record.Unrestored(ctx, db, record.Run{Collection: st.Collection, From: st.From, To: st.To, Fields: st.Fields})
			if migration.Denied(err) {
				other, err = record.Log{}, nil
			}
		}
		return err
	})
	return other, err
}
