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
	p.keep(doc, e.Changes)
}
