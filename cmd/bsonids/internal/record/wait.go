package record

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// alone returns an error if a run in progress uses the same collections in another role: one of the two reads
// or changes the collection that the other one makes with --into, or both make the same one. Such runs do not
// compete for the same lock. Each of them therefore looks for the other after it has inserted its own document,
// so that at least one of them finds the other.
func (l *Lock) alone(ctx context.Context, life *signs) error {
	names, roles := bson.A{l.run.Collection}, bson.A{}
	if l.run.Into != "" {
		names = append(names, l.run.Into)
		roles = append(roles, bson.D{{Key: "collection", Value: l.run.Into}})
	}
	roles = append(roles, bson.D{{Key: "into", Value: bson.D{{Key: "$in", Value: names}}}})
	for {
		runs, err := find[*Run](ctx, l.coll, bson.D{{Key: "ended", Value: bson.D{{Key: "$exists", Value: false}}}, {Key: "$or", Value: roles}})
		if err != nil {
			return err
		}
		now, err := Now(ctx, l.coll.Database())
		if err != nil {
			return err
		}
		// The lock of the collection keeps apart the runs that convert the same one. The copy of a run that has ended
		// without recording it stays unfinished, which a run that resumes it detects.
		runs = slices.DeleteFunc(runs, func(r *Run) bool { return r.Collection == l.run.Collection || r.expired(now) })
		if len(runs) == 0 {
			return nil
		}
		if !life.wait(ctx, runs, now) {
			return refuseFor(runs[0], ErrHeld, "has not ended, and uses the same collections", "; wait for it")
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
	if !s.told {
		s.told = true
		s.tell("waiting until " + last.String() + " shows a sign of life, " + lease.String() + " at most")
	}
	return patience.Sleep(ctx, 300*time.Millisecond) == nil
}

// settle waits until the server can carry out no batch of the runs any more: either a run has recorded
// that all were answered, or the time limit of the last one is over.
func (l *Lock) settle(ctx context.Context, open []waiting, notice func(text string)) error {
	for told := false; len(open) > 0; told = true {
		now, err := Now(ctx, l.coll.Database())
		if err != nil {
			return err
		}
		runs, err := read(ctx, l.coll, l.run.Collection)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Ended != nil && r.Lost == 0 {
				open = slices.DeleteFunc(open, func(w waiting) bool { return w.run.Epoch == r.Epoch })
			}
		}
		open = slices.DeleteFunc(open, func(w waiting) bool { return !now.Before(w.until) })
		if len(open) == 0 {
			return nil
		}
		last := slices.MaxFunc(open, func(a, b waiting) int { return a.until.Compare(b.until) })
		left := last.until.Sub(now)
		if !told {
			notice("waiting for a batch without an answer, which the server may still carry out, of " + last.run.String() + ", " + left.Round(time.Second).String() + " at most")
		}
		if err := patience.Sleep(ctx, min(left+time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
	return nil
}
