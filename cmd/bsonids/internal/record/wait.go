package record

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// mayBeCopy returns an error if the ledger is an older copy, or a copy that another run uses. It waits for as
// long as a run may be silent if the ledger is not the file that the last run has named. It comes before
// that run is made to stop.
func (l *Lock) mayBeCopy(ctx context.Context, runs []*Run, q Request) error {
	have, was, last := standing(runs, &l.run, q.Ledger, q.LogSize)
	if q.Ledger == nil || last == nil {
		return nil
	}
	wait, err := ledger.Judge(have, was)
	if wait && err == nil {
		if q.Notice != nil {
			q.Notice("the state file may be a copy: waiting for " + lease.String() + ", in which " + last.String() + " would write")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lease):
		}
		if runs, err = read(ctx, l.coll, q.Run.Collection); err != nil {
			return err
		}
		_, is, _ := standing(runs, &l.run, q.Ledger, q.LogSize)
		err = ledger.Again(have, was, is)
	}
	if err != nil {
		return refuseLedger(err, last)
	}
	return nil
}

// lookAgain reads the record again. A run of the same conversion may have written to its undo log
// after the record was read, and before it could find the document of this run.
func (l *Lock) lookAgain(ctx context.Context, logSize int64) error {
	runs, err := read(ctx, l.coll, l.run.Collection)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if same(r, &l.run) {
			l.need = max(l.need, r.UndoSize)
		}
	}
	return l.Covers(logSize)
}

// alone returns an error if a run in progress uses the same collections in another role.
func (l *Lock) alone(ctx context.Context, life *signs) error {
	for {
		runs, err := crossing(ctx, l.coll, &l.run)
		if err != nil {
			return err
		}
		now, err := serverTime(ctx, l.coll.Database())
		if err != nil {
			return err
		}
		if err := cross(runs, now); err == nil || !life.wait(ctx, runs, now) {
			return err
		}
	}
}

// signs are the signs of life that runs have shown.
type signs struct {
	first map[string]time.Time // by the _id of the run
	told  bool
	tell  func(string)
}

// wait waits for a moment, and reports true, if all of the runs that have not recorded their end may have
// ended nevertheless. It reports false when one has shown a sign of life since it was called first.
func (s *signs) wait(ctx context.Context, runs []*Run, now time.Time) bool {
	if s.first == nil {
		s.first = make(map[string]time.Time)
	}
	var last *Run
	for _, r := range runs {
		if r.Ended != nil || r.expired(now) {
			continue
		}
		if first, ok := s.first[r.ID]; ok && r.Updated.After(first) {
			return false
		} else if !ok {
			s.first[r.ID] = r.Updated
		}
		last = r
	}
	if last == nil {
		return false
	}
	if !s.told && s.tell != nil {
		s.told = true
		s.tell("waiting until " + last.String() + " shows a sign of life, " + lease.String() + " at most")
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(300 * time.Millisecond):
		return true
	}
}

// settle waits until the server can carry out no batch of the runs any more: either a run has recorded
// that all were answered, or the time limit of the last one is over.
func (l *Lock) settle(ctx context.Context, runs []waiting, notice func(string)) error {
	told := false
	for {
		now, err := serverTime(ctx, l.coll.Database())
		if err != nil {
			return err
		}
		var left time.Duration
		for _, w := range runs {
			n, err := l.coll.CountDocuments(ctx, bson.D{{Key: "_id", Value: w.run.ID}, {Key: "ended", Value: bson.D{{Key: "$exists", Value: true}}},
				{Key: "lost", Value: bson.D{{Key: "$exists", Value: false}}}})
			if err != nil {
				return err
			}
			if n == 0 {
				left = max(left, w.until.Sub(now))
			}
		}
		if left <= 0 {
			return nil
		}
		if !told && notice != nil {
			told = true
			notice("waiting for a batch without an answer, which the server may still carry out, of " + runs[0].run.String() + ", " + left.Round(time.Second).String() + " at most")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(left+time.Millisecond, time.Second)):
		}
	}
}
