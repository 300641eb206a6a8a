package convert

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// UndoOptions are the options of Undo.
type UndoOptions struct {
	Write    bool // if false, changes are counted and not made
	Batch    int  // documents per batch
	Progress func(documents int)

	Check        func(ctx context.Context, undoSize int64) error // as in Options
	BatchTimeout time.Duration                                   // as in Options
	Patience     *patience.Patience                              // as in Options
}

// Undone describes what Undo did, or would do.
type Undone struct {
	Entries  int64  `json:"entries"`
	Restored int64  `json:"documentsRestored"`
	Already  int64  `json:"alreadyRestored"`
	Gone     int64  `json:"documentsGone"`
	Changed  int64  `json:"changedSince"` // changed by another program and left unchanged
	Skips    []Skip `json:"skips,omitempty"`
}

// Undo restores the old values in the undo log. It restores a value if the converted value is still
// at its path, or at another position of the same array. Undo can be stopped at any moment and run
// again.
func Undo(ctx context.Context, coll *mongo.Collection, u *UndoReader, o UndoOptions) (Undone, error) {
	var res Undone
	limits := Options{Check: o.Check, BatchTimeout: o.BatchTimeout}
	err := entries(u, o.Batch, func(b []Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		res.Entries += int64(len(b))
		if o.Progress != nil {
			o.Progress(len(b))
		}
		sent := make(map[string]bool) // documents that an attempt without an answer may have restored
		for attempt := 0; len(b) > 0; attempt++ {
			err := o.Patience.Do(ctx, func() error {
				// A batch that has started is finished.
				now := res
				again, err := now.attempt(context.WithoutCancel(ctx), coll, b, o.Write, &limits, attempt == attempts-1, sent)
				if err == nil {
					res, b = now, again
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return res, err
}

// attempt restores the values of the entries. It returns the entries to try again because other
// programs changed their documents first. In the last attempt, it counts these as changed instead.
// After an error it can be called again, with the counts from before. It adds the documents that it
// changes to sent, and counts those that are in it already as restored.
func (res *Undone) attempt(ctx context.Context, coll *mongo.Collection, b []Entry, write bool, limits *Options, last bool, sent map[string]bool) ([]Entry, error) {
	ctx, cancel, err := limits.mayBegin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	ids := make([]bson.RawValue, len(b))
	for i, e := range b {
		ids[i] = e.ID
	}
	docs, err := documents.ByID(ctx, coll, ids, nil)
	if err != nil {
		return nil, err
	}
	var models []mongo.WriteModel
	var back []Entry
	for _, e := range b {
		doc, ok := docs[documents.Key(e.ID)]
		if !ok {
			res.Gone++
			continue
		}
		p, lost, err := e.wayBack(doc)
		switch {
		case err != nil:
			res.skip(e.ID, err.Error())
		case lost:
			res.changed(e)
		case len(p.Changes) == 0 && sent[documents.Key(e.ID)]:
			res.Restored++
		case len(p.Changes) == 0:
			res.Already++
		default:
			// Some values may still be the old ones, if the entry was written and its update never
			// sent.
			models = append(models, p.model(e.to, e.from))
			back = append(back, e)
		}
	}
	if len(models) == 0 {
		return nil, nil
	}
	if !write {
		res.Restored += int64(len(models))
		return nil, nil
	}
	for _, e := range back {
		sent[documents.Key(e.ID)] = true
	}
	matched, refused, err := bulk.Update(ctx, coll, models, false)
	if err != nil {
		return nil, err
	}
	failed := make(map[int]bool)
	for _, f := range refused {
		if !f.Moved { // a moved document is read again
			failed[f.Index] = true
			res.skip(back[f.Index].ID, f.Reason)
		}
	}
	if matched == int64(len(models)-len(failed)) {
		res.Restored += matched
		return nil, nil
	}
	// Other programs changed the documents first, or a router counted orphaned documents.
	if docs, err = documents.ByID(ctx, coll, ids, nil); err != nil {
		return nil, err
	}
	var again []Entry
	for i, e := range back {
		doc, ok := docs[documents.Key(e.ID)]
		switch {
		case failed[i]:
		case !ok:
			res.Gone++
		default:
			p, lost, err := e.wayBack(doc)
			switch {
			case err == nil && !lost && len(p.Changes) == 0:
				res.Restored++
			case last:
				res.changed(e)
			default:
				again = append(again, e)
			}
		}
	}
	return again, nil
}

func (res *Undone) changed(e Entry) {
	res.Changed++
	res.skip(e.ID, "another program changed the document after the conversion")
}

func (res *Undone) skip(id bson.RawValue, reason string) {
	if len(res.Skips) < maxListed {
		res.Skips = append(res.Skips, Skip{id, reason})
	}
}
