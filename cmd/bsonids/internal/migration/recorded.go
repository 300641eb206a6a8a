package migration

import (
	"context"
	"errors"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Fits returns an error if the record of the database and the directory of a migration do not fit: one of the
// two is a copy from before. A record that the user may not read tells nothing.
func (s *Session) Fits(ctx context.Context, database string, state *plan.State) error {
	if state.Migration() == "" {
		return nil
	}
	err := s.Do(ctx, func() error {
		_, err := record.FindPlan(ctx, s.Client.Database(database), state)
		return err
	})
	if Denied(err) {
		return nil
	}
	return unfit(state.Dir(), err)
}

// unfit adds to an error of a record that does not fit what a person can do.
func unfit(dir string, err error) error {
	switch {
	case errors.Is(err, record.ErrForgotten):
		return &failure.Error{Kind: failure.Failed, Text: dir + ": " + err.Error() + "; put the latest one back, or write to it what the directory knows: " + terminal.Command("bsonids", "plan", dir, "--restore-record")}
	case errors.Is(err, record.ErrAbandoned):
		return &failure.Error{Kind: failure.Failed, Text: dir + ": " + err.Error() + "; make a plan in a new directory"}
	case errors.Is(err, record.ErrOlder):
		return &failure.Error{Kind: failure.Failed, Text: dir + ": " + err.Error()}
	}
	return OfRecord(err)
}

// BeginPlan notes in the record that a command begins to write, with its steps, or nil for those that are noted.
func (s *Session) BeginPlan(ctx context.Context, state *plan.State, steps []record.PlanStep) error {
	err := s.beginPlan(ctx, state, steps, false)
	s.Migration, s.Directory, s.Lock = state.Migration(), Absolute(state.Dir()), record.FileID(files.LockPath(filepath.Join(state.Dir(), plan.LedgerFile)))
	return err
}

func (s *Session) beginPlan(ctx context.Context, state *plan.State, steps []record.PlanStep, restore bool) error {
	note := record.Plan{StateDir: Absolute(state.Dir()), Steps: steps}
	return unfit(state.Dir(), s.Do(ctx, func() error {
		return record.BeginPlan(ctx, s.Client.Database(state.Plan.Database), note, state, restore, s.Version)
	}))
}

// Restore writes to the record what the directory knows of the conversions of a plan, if the record lacks it. It
// returns the number of conversions that it wrote. The state must be locked.
func (s *Session) Restore(ctx context.Context, state *plan.State) (n int, err error) {
	db := s.Client.Database(state.Plan.Database)
	err = s.Do(ctx, func() error {
		_, err := record.FindPlan(ctx, db, state)
		return err
	})
	if err != nil && !errors.Is(err, record.ErrForgotten) {
		return 0, unfit(state.Dir(), err)
	}
	for i, st := range state.All() {
		of, past := state.Of(st), i >= len(state.Made)
		if !of.Begun() || of.Undone != "" && (state.Restored || past) { // all of its values are restored
			continue
		}
		run := runOf(state, st, of)
		wrote, err := patience.Ask(ctx, s.Patience, func() (bool, error) { return record.Restore(ctx, db, run, of, s.Version) })
		if err != nil {
			return n, OfRecord(err)
		}
		if wrote {
			n++
		}
	}
	return n, s.beginPlan(ctx, state, nil, true)
}

// runOf returns the run that the record would have of a step that has begun.
func runOf(state *plan.State, st plan.Step, of *convert.State) record.Run {
	r := record.Run{Kind: record.Convert, Task: st.Task, Conversion: of.Conversion,
		Retry: st.Listed, Migration: state.Migration(), Directory: Absolute(state.Dir()), UndoLog: Absolute(state.Files(st).UndoLog), UndoID: of.UndoID, UndoSize: of.UndoSize, Outcome: record.Stopped,
		Decisions: of.Decisions, Progress: record.Progress{Changed: of.Changed, Values: of.Values, Skipped: of.Skipped}}
	if of.Done && of.Undone == "" { // otherwise some values are restored, and some are not
		r.Outcome = record.Done
	}
	if of.Began != nil {
		r.Started = *of.Began
	}
	if of.Undone != "" {
		r.Undone = &record.Undone{}
	}
	r.UUID, r.IntoUUID = convert.UUID(of.CollectionUUID), convert.UUID(of.CopyUUID)
	return r
}

// Abandon gives the directory of a migration up for lost. The error is a usage error if the record does not have
// the migration, or if it may be carried out at this moment.
func (s *Session) Abandon(ctx context.Context, db *mongo.Database, migration string) error {
	err := s.Do(ctx, func() error { return record.Abandon(ctx, db, migration) })
	return OfRecord(err)
}
