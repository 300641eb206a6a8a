package convert

import (
	"context"
	"io"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// resume continues the conversion of an earlier run from its state and undo log.
func (r *runner) resume(ctx context.Context, p *documents.Pages) (err error) {
	s := r.State
	if r.Retry != nil {
		s.Changed, s.Values, s.Skipped = 0, 0, 0 // every entry of the undo log is found again
	}
	p.After = s.Position.raw()
	r.continues()
	if s.UndoSize == 0 { // the log is new, unless the ledger has lost records; all of its entries are then read
		s.UndoOffset, s.UndoSize = r.Undo.begin, r.Undo.Size()
		if err := s.Save(); err != nil {
			return err
		}
	}
	if err := r.Undo.Rewind(s.UndoOffset); err != nil {
		return err
	}
	r.inFlight = make(map[string]Entry)
	for {
		e, err := r.Undo.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		r.inFlight[documents.Key(e.ID)] = e
	}
	// A document that is done or deleted is not read again, so its entry would hold the undo offset
	// until the end of the run.
	ids := make([]bson.RawValue, 0, len(r.inFlight))
	for _, e := range r.inFlight {
		ids = append(ids, e.ID)
	}
	remaining, err := p.Remaining(ctx, ids)
	if err != nil {
		return err
	}
	maps.DeleteFunc(r.inFlight, func(k string, _ Entry) bool { return remaining[k] == nil })
	if len(r.inFlight) > 0 {
		r.tracker.hold(s.UndoOffset)
	}
	return nil
}

// reconsider adjusts p to what an earlier run may have done to the document before it was killed.
func (r *runner) reconsider(p *Planned, doc bson.Raw) {
	e, ok := r.inFlight[documents.Key(p.ID)]
	if !ok {
		return
	}
	delete(r.inFlight, documents.Key(p.ID))
	values := rule.HeldBy(doc, len(e.Changes))
	if !slices.ContainsFunc(e.Changes, func(ch rule.Change) bool { return !values.HasNew(ch) }) {
		r.count(&r.res.Earlier, p.counts, e.Changes) // which was not in the state yet
	}
	r.since(p, doc, e.Changes)
}

// since adjusts p, the plan of a document as it is, to changes that are in the undo log and may have been made
// before another program wrote, or before an earlier run was killed. Of values that keep their subtype, and of
// listed ones, only the log tells which are converted: what has neither the old nor the new value is left.
func (r *runner) since(p *Planned, doc bson.Raw, logged []rule.Change) {
	p.again = true
	type at struct {
		path  string
		value rule.Value
	}
	before, after := make(map[at]bool, len(logged)), make(map[at]bool, len(logged))
	for _, done := range logged {
		before[at{done.Path, done.Old}], after[at{done.Path, done.New}] = true, true
	}
	// The decision may leave a converted value because it does not fit the old order.
	p.Skipped = slices.DeleteFunc(p.Skipped, func(l rule.Left) bool { return after[at{l.Path, l.Value}] })
	p.Changes = slices.DeleteFunc(p.Changes, func(ch rule.Change) bool {
		now := at{ch.Path, ch.Old}
		if !ch.SameSubtype() && r.Retry == nil || before[now] {
			return false
		}
		if !after[now] {
			p.Skipped = append(p.Skipped, ch.Left(unknowable))
		}
		return true
	})
	p.keep(doc, logged)
}
