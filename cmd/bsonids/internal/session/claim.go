package session

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Claim is a run in the record: the lock of work that writes.
type Claim struct {
	*record.Lock
	patience *patience.Patience
}

// Claim begins a run in the record of the database, as the request says. A run that sends batches needs [Session.Limit] before.
// The caller must call [Claim.End].
func (s *Session) Claim(ctx context.Context, db *mongo.Database, q record.Request) (*Claim, error) {
	run := &q.Run
	run.BatchTimeout, run.Migration, run.Directory, run.Lock = s.BatchTimeout, s.Migration, s.Directory, s.Lock
	q.Version, q.TakeOver, q.Notice = s.Version, s.TakeOver, func(text string) { s.Warn("%s", text) }
	lock, err := record.Begin(ctx, db, q)
	if err != nil {
		return nil, OfRecord(err)
	}
	return &Claim{lock, s.Patience}, nil
}

// OfRecord explains what a missing privilege for the record is needed for.
func OfRecord(err error) error {
	if failure.Means(err, failure.Unauthorized) {
		e := failure.Explain(err, "")
		return &failure.Error{Kind: e.Kind, Text: e.Text + "; conversions are recorded in " + record.Name + " of the same database: bsonids apply --write needs " + privilege.Needs(privilege.Apply), Err: err}
	}
	return err
}

// End ends the run with the error of the work. A run that skipped documents is done.
func (c *Claim) End(failed error) error {
	if errors.Is(failed, failure.ErrIncomplete) {
		failed = nil
	}
	return c.patience.Do(context.Background(), func() error { return c.Lock.End(failed, c.patience.Lost()) })
}
