package convert

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// Undone describes what Undo did, or would do.
type Undone struct {
	Entries  int64 `json:"entries"`
	Restored int64 `json:"documentsRestored"` // all their values, or some
	Already  int64 `json:"alreadyRestored"`
	Gone     int64 `json:"documentsGone"`
	Changed  int64 `json:"changedSince"` // documents with values that were changed after the conversion
	Left     int64 `json:"valuesLeft"`   // values that are not restored
	// Unrestored counts the documents with such values.
	Unrestored int64 `json:"documentsWithValuesLeft"`
	// Accepted is set if the user accepts what is not restored: the undo is complete.
	Accepted bool `json:"accepted"`
	// Foreign counts the new values that are not in the undo log.
	Foreign int64  `json:"newValuesNotInUndoLog"`
	Skips   []Skip `json:"skips,omitempty"` // the first 10,000

	Standing int64   `json:"-"` // new values that entries name and that are not restored yet; only those that no pair converts
	left     []unmet // may have values about which a later entry is
}

// Undo restores the old values in the undo logs, those of the last log first. It restores a value if the converted value is still
// at its path, or at another position of the same array, whatever the other values of the document
// are. Undo can be stopped at any moment and run again. The error is a [*LostError] if the collection was
// dropped, renamed or replaced meanwhile. o.Conversion is the one that is undone, of the documents that
// match o.Query: Undo counts the new values that no pair converts and no entry names. If write
// is not set, changes are counted and not made.
func Undo(ctx context.Context, coll *mongo.Collection, logs undolog.Logs, o Options, write bool) (res Undone, err error) {
	key, err := shardKey(ctx, coll, o.Patience)
	if err != nil {
		return res, err
	}
	there := &presence{patience: o.Patience, now: time.Now}
	there.add(coll, o.UUID)
	defer func() { err = there.after(ctx, err) }()
	restore := func(b []undolog.Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if write {
			if err := o.Pace.Wait(ctx, len(b)); err != nil {
				return err
			}
		}
		res.Entries += int64(len(b))
		if o.Progress != nil {
			o.Progress(len(b))
		}
		sent := make(map[string]bool) // documents that an attempt without an answer may have restored
		for attempt := 0; len(b) > 0; attempt++ {
			err := o.Patience.Do(ctx, func() error {
				// A batch that has started is finished.
				whole := res
				var again []undolog.Entry
				err := bulk.Halved(b, o.Halves, o.BatchTimeout, func(e undolog.Entry) bson.RawValue { return e.ID }, func(b []undolog.Entry) error {
					now := whole
					more, err := now.attempt(context.WithoutCancel(ctx), coll, key, b, write, &o, attempt == attempts, sent)
					if err == nil {
						whole, again = now, append(again, more...)
					}
					return err
				})
				if err == nil {
					res, b = whole, again
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	err = entries(logs, cmp.Or(o.Batch, batchSize), func(b []undolog.Entry) error {
		for b := range slices.Chunk(b, o.Pace.Batch(len(b))) {
			if err := restore(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = res.finish(logs)
	}
	if err == nil {
		err = res.foreign(ctx, coll, o)
	}
	return res, err
}

// finish counts and lists what was not restored.
func (res *Undone) finish(logs undolog.Logs) error {
	left, err := stillUnmet(logs, res.left)
	if err != nil {
		return err
	}
	changed := make(map[string]bool)
	for _, l := range left {
		res.Left++
		changed[documents.Key(l.id)] = changed[documents.Key(l.id)] || l.reason == changedSince || l.reason == keepsChanging
		res.skip(l.id, l.path+": "+l.reason)
	}
	res.Unrestored = int64(len(changed))
	for _, is := range changed {
		if is {
			res.Changed++
		}
	}
	return nil
}

// foreign counts the new values of the collection, except those that an entry names and that are not
// restored yet.
func (res *Undone) foreign(ctx context.Context, coll *mongo.Collection, o Options) error {
	v, values := Verified{Fields: rule.Tally{}}, newCounter(o.Conversion, nil)
	err := o.each(ctx, coll, o.Patience, func(int) {}, func(doc bson.Raw) error { return values.count(&v, doc) })
	if err != nil {
		return err
	}
	res.Foreign = max(0, v.New-res.Standing) // other programs may have changed values meanwhile
	return nil
}

// attempt restores the values of the entries. It returns the entries to try again because other programs
// changed their documents first; it leaves these if giveUp is set. After an error it can be called again, with
// the counts from before. It adds the documents that it changes to sent, and counts those that are in it
// already as restored.
func (res *Undone) attempt(ctx context.Context, coll *mongo.Collection, key []string, b []undolog.Entry, write bool, o *Options, giveUp bool, sent map[string]bool) (again []undolog.Entry, err error) {
	ctx, cancel, err := o.mayBegin(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	type plan struct {
		rule.Edits
		lost []rule.Change
		err  error
	}
	plans, err := eachIn(ctx, coll, b, func(e undolog.Entry, doc bson.Raw) (p plan) {
		p.Edits, p.lost, p.err = wayBackOf(e, doc)
		p.Sharded(doc, key)
		return p
	})
	if err != nil {
		return nil, err
	}
	var updates []rule.Edits
	var back []wayBack
	for _, e := range b {
		p, ok := plans[e.At]
		if !ok {
			res.Gone++
			continue
		}
		lost, err := p.lost, p.err
		switch {
		case err != nil:
			res.leave(o.Conversion, e, e.Changes, err.Error())
		case len(p.Changes) > 0 && giveUp:
			res.leave(o.Conversion, e, p.Changes, keepsChanging)
			res.leave(o.Conversion, e, lost, changedSince)
		case len(p.Changes) > 0:
			// Some values may still be the old ones, if the entry was written and its update never
			// sent.
			updates = append(updates, p.Edits)
			back = append(back, wayBack{e, p.Changes, lost})
		default:
			if sent[documents.Key(e.ID)] && len(lost) < len(e.Changes) {
				res.Restored++
			} else if len(lost) == 0 {
				res.Already++
			}
			res.leave(o.Conversion, e, lost, changedSince)
		}
	}
	if !write {
		for _, w := range back {
			res.restored(o.Conversion, w)
			res.stand(o.Conversion, w.restores)
		}
		return nil, nil
	}
	for _, w := range back {
		sent[documents.Key(w.ID)] = true
	}
	matched, refused, err := send(ctx, coll, updates, bson.RawValue{})
	if err != nil {
		return nil, err
	}
	failed := make(map[int]bool)
	for _, f := range refused {
		if !f.Moved { // a moved document is read again
			failed[f.Index] = true
			w := back[f.Index]
			res.leave(o.Conversion, w.Entry, w.restores, f.Reason)
			res.leave(o.Conversion, w.Entry, w.lost, changedSince)
		}
	}
	// If the numbers differ, other programs changed documents first, or a router counted orphaned documents.
	done := matched == int64(len(updates)-len(failed))
	for i, w := range back {
		switch {
		case failed[i]:
		case done:
			res.restored(o.Conversion, w)
		default:
			again = append(again, w.Entry)
		}
	}
	return again, nil
}

// wayBack is an entry with those of its changes that can be restored, and those that cannot.
type wayBack struct {
	undolog.Entry
	restores, lost []rule.Change
}

// The reasons for which a value is left that was changed, it is not known by whom, or whose document other programs keep
// changing.
const (
	changedSince  = "the value was changed after the conversion"
	keepsChanging = "other programs keep changing the document"
)

// restored counts an entry whose values are restored, or would be.
func (res *Undone) restored(c rule.Conversion, w wayBack) {
	res.Restored++
	res.leave(c, w.Entry, w.lost, changedSince)
}

// leave notes changes that are not restored.
func (res *Undone) leave(c rule.Conversion, e undolog.Entry, changes []rule.Change, reason string) {
	if reason != changedSince {
		res.stand(c, changes)
	}
	for _, ch := range changes {
		res.left = append(res.left, unmet{e.ID, ch.Path, e.At, reason})
	}
}

// stand counts those of the changes back whose values foreign counts. Values that a pair converts do not show what they are.
func (res *Undone) stand(c rule.Conversion, changes []rule.Change) {
	for _, ch := range changes {
		if !c.IsAbout(ch.Path, ch.Old) {
			res.Standing++
		}
	}
}

func (res *Undone) skip(id bson.RawValue, reason string) {
	if len(res.Skips) < maxListed {
		res.Skips = append(res.Skips, Skip{id, reason})
	}
}
