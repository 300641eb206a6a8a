package migration

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Fits returns an error if the directory of a migration is a copy from before, as the record of the database tells. A
// record that the user may not read tells nothing.
func (s *Session) Fits(ctx context.Context, database string, state *plan.State) error {
	if state.Migration() == "" {
		return nil
	}
	err := s.Do(ctx, func() error { return record.Fits(ctx, s.Client.Database(database), state) })
	if Denied(err) {
		return nil
	}
	return unfit(state.Dir(), err)
}

// unfit names the directory in an error of one that does not fit the record.
func unfit(dir string, err error) error {
	if errors.Is(err, record.ErrOlder) {
		return &failure.Error{Kind: failure.Failed, Text: dir + ": " + err.Error()}
	}
	return OfRecord(err)
}

// BeginPlan notes in the record that a command begins to write, with its steps, or nil for those that are noted.
func (s *Session) BeginPlan(ctx context.Context, state *plan.State, steps []record.PlanStep) error {
	note := record.Plan{StateDir: Absolute(state.Dir()), Steps: steps}
	err := s.Do(ctx, func() error {
		return record.BeginPlan(ctx, s.Client.Database(state.Plan.Database), note, state, s.Version)
	})
	s.Migration, s.Directory, s.Lock = state.Migration(), Absolute(state.Dir()), record.FileID(files.LockPath(filepath.Join(state.Dir(), plan.LedgerFile)))
	return unfit(state.Dir(), err)
}
