package convert

import (
	"cmp"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// write writes the edits of a batch, which are in the undo log up to the offset logged. Pauses end with waiting, and the
// work with ctx.
func (r *runner) write(waiting, ctx context.Context, edits []edit, logged int64) error {
	lost := r.Patience.Streak()
	for attempt := 0; attempt < attempts; {
		left, rest, err := r.attempt(waiting, ctx, edits, logged)
		expired := r.Halves && failure.Means(err, failure.Expired)
		if expired && len(rest) == 1 {
			return bulk.TooSlow(rest[0].ID, r.BatchTimeout)
		}
		if err == nil {
			attempt++ // other programs changed what is left
			lost.End()
		}
		if expired {
			left, err = r.resolve(ctx, rest)
		}
		// It is not known which of the updates a lost server has made. The documents tell.
		for err != nil {
			if err := lost.Wait(waiting, err); err != nil {
				return err
			}
			left, err = r.resolve(ctx, rest)
		}
		if len(left) == 0 {
			return nil
		}
		edits = left
		if attempt < attempts {
			if err := r.log(batch{edits: edits}); err != nil {
				return err
			}
			logged = r.Undo.Extent().Size
		}
		if half := len(edits) / 2; expired && half > 0 {
			if err := r.write(waiting, ctx, edits[:half], logged); err != nil {
				return err
			}
			return r.write(waiting, ctx, edits[half:], logged)
		}
	}
	for _, p := range edits {
		r.skipPlan(p, "other programs keep changing the document")
	}
	return nil
}

// attempt writes the edits. It returns the edits to try again, made from the current documents. With
// an error it returns those of which it is not known whether they were carried out.
func (r *runner) attempt(waiting, ctx context.Context, edits []edit, logged int64) (again, unknown []edit, err error) {
	if err := ctx.Err(); err != nil {
		return nil, edits, err
	}
	// A batch that has begun is finished if another one fails: the run ends when all are answered.
	writing, cancel, err := r.mayBegin(context.WithoutCancel(ctx), logged)
	if err != nil {
		return nil, edits, err
	}
	defer cancel()
	updates := make([]rule.Edits, len(edits))
	for i, p := range edits {
		updates[i] = p.Edits
	}
	answered := r.Latency.Start()
	matched, refused, err := send(writing, r.coll, updates, r.and)
	if err != nil {
		return nil, edits, err
	}
	defer answered(waiting, len(edits))
	failed := make(map[int]bool)
	var others []edit // without the shard key, which the server did not change
	for _, f := range refused {
		switch p := edits[f.Index]; {
		case f.Moved: // a moved document is read again
			continue
		case len(p.Key) > 0:
			rest, left := p.WithoutKey("in the shard key: " + f.Reason)
			r.leave(p.ID, left)
			if p.Edits, p.keyLeft, p.again = rest, true, true; len(rest.Changes) > 0 {
				others = append(others, p)
			}
		default:
			r.skipPlan(p, f.Reason)
		}
		failed[f.Index] = true
	}
	rest := edits
	if len(failed) > 0 {
		rest = make([]edit, 0, len(edits))
		for i, p := range edits {
			if !failed[i] {
				rest = append(rest, p)
			}
		}
	}
	if matched == int64(len(rest)) && !r.orphans {
		for _, p := range rest {
			r.changed(p.Changes)
		}
		return others, nil, nil
	}
	again, err = r.resolve(writing, rest)
	return append(again, others...), append(slices.Clip(rest), others...), err
}

// resolve determines which of the edits were carried out when the number of matched documents does
// not show it. It returns the edits to try again.
func (r *runner) resolve(ctx context.Context, edits []edit) ([]edit, error) {
	if len(edits) == 0 {
		return nil, nil
	}
	ids := documents.IDs(edits, func(p edit) bson.RawValue { return p.ID })
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.BatchTimeout, bulk.Timeout))
	defer cancel()
	docs, err := documents.ByID(ctx, r.coll, ids, nil, withKey(r.Conversion.Projection(), r.key))
	if err != nil {
		return nil, err
	}
	in := docs
	if len(r.Query) > 0 {
		if in, err = documents.ByID(ctx, r.coll, ids, r.Query, bson.D{{Key: "_id", Value: 1}}); err != nil {
			return nil, err
		}
	}
	var again []edit
	for _, p := range edits {
		doc, ok := docs[documents.Key(p.ID)]
		if !ok { // another program has deleted it
			r.late()
			continue
		}
		held := rule.HeldBy(doc, len(p.Changes))
		if !slices.ContainsFunc(p.Changes, func(ch rule.Change) bool { return !held.HasNew(ch) }) {
			r.changed(p.Changes)
			continue
		}
		if _, ok := in[documents.Key(p.ID)]; !ok {
			r.skipPlan(p, leftFilter)
			continue
		}
		now, err := r.planOf(doc, r.Conversion.Edits)
		if err != nil {
			r.leave(p.ID, []rule.Left{{Document: true, Reason: err.Error()}})
			continue
		}
		if p.keyLeft {
			now, _ = now.WithoutKey("")
		}
		fresh := edit{Edits: now, keyLeft: p.keyLeft}
		fresh.keep(doc, slices.Concat(p.Changes, p.kept))
		r.leave(p.ID, slices.DeleteFunc(slices.Clone(fresh.Skipped), func(l rule.Left) bool { return slices.Contains(p.Skipped, l) }))
		switch {
		case len(fresh.Changes) == 0: // another program has changed it
			r.late()
		case r.mayWrite(fresh):
			again = append(again, fresh)
		}
	}
	return again, nil
}
