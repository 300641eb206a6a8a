package convert

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Undone is what an undo log's way back did, or would do.
type Undone struct {
	Entries  int64  `json:"entries"`
	Restored int64  `json:"documentsRestored"`
	Already  int64  `json:"alreadyAsBefore"`
	Gone     int64  `json:"documentsGone"`
	Changed  int64  `json:"changedSince"` // by another program; left as they are
	Skips    []Skip `json:"skips,omitempty"`
}

// voids reads the log and returns, for each document with lines that say "again", how many lines there are about it
// from the first such line back: all but the last are void.
func voids(u *UndoReader) (map[string]int, error) {
	again := make(map[string]int)
	for {
		e, err := u.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if e.Again {
			again[key(e.ID)] = 0
		}
	}
	if err := u.Rewind(0); err != nil || len(again) == 0 {
		return again, err
	}
	for i := 0; ; i++ {
		e, err := u.Next()
		if err == io.EOF {
			return again, u.Rewind(0)
		}
		if err != nil {
			return nil, err
		}
		if _, ok := again[key(e.ID)]; ok && e.Again {
			again[key(e.ID)] = i // the last line that voids the ones before
		}
	}
}

// entries calls f with batches of the log's entries that are not void. Two about the same document, of two runs, are never
// in one batch.
func entries(u *UndoReader, size int, f func([]Entry) error) error {
	void, err := voids(u)
	if err != nil {
		return err
	}
	var b []Entry
	held := make(map[string]bool, size) // the documents in b
	for i := 0; ; i++ {
		e, err := u.Next()
		if err != nil && err != io.EOF {
			return err
		}
		id := key(e.ID)
		if len(b) == size || len(b) > 0 && (err == io.EOF || held[id]) {
			if err := f(b); err != nil {
				return err
			}
			b = nil
			clear(held)
		}
		if until, ok := void[id]; err == nil && (!ok || i >= until) {
			b = append(b, e)
			held[id] = true
		}
		if err == io.EOF {
			return nil
		}
	}
}

// Undo puts back what the undo log says was there before, where the converted value still stands. It can be run again,
// and stopped at any moment. size is how many documents to write at a time. Without write it only counts.
func Undo(ctx context.Context, coll *mongo.Collection, u *UndoReader, write bool, size int, progress func(int)) (Undone, error) {
	var res Undone
	err := entries(u, size, func(b []Entry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A batch that is begun is finished.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		res.Entries += int64(len(b))
		progress(len(b))
		return res.batch(ctx, coll, b, write)
	})
	return res, err
}

func (res *Undone) batch(ctx context.Context, coll *mongo.Collection, b []Entry, write bool) error {
	ids := make([]bson.RawValue, len(b))
	for i, e := range b {
		ids[i] = e.ID
	}
	docs, err := fetch(ctx, coll, ids, nil)
	if err != nil {
		return err
	}
	var models []mongo.WriteModel
	var back []Entry
	for _, e := range b {
		doc, ok := docs[key(e.ID)]
		if !ok {
			res.Gone++
			continue
		}
		p := Plan{ID: e.ID}
		already := 0
		for _, ch := range e.Changes {
			switch subtype, octets, ok := at(doc, ch.Path); {
			case ok && subtype == e.to && octets == ch.New:
				p.Changes = append(p.Changes, Change{Path: ch.Path, Old: ch.New, New: ch.Old})
			case ok && subtype == e.from && octets == ch.Old:
				already++
			}
		}
		switch {
		case len(p.Changes)+already < len(e.Changes):
			res.changed(e)
		case len(p.Changes) == 0:
			res.Already++
		default:
			// Some may be back already, where the line was written and its update never sent.
			models = append(models, p.model(e.to, e.from))
			back = append(back, e)
		}
	}
	if len(models) == 0 {
		return nil
	}
	if !write {
		res.Restored += int64(len(models))
		return nil
	}
	r, err := coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	var refused mongo.BulkWriteException
	if err != nil && (!errors.As(err, &refused) || refused.WriteConcernError != nil || len(refused.WriteErrors) == 0) {
		return err
	}
	failed := make(map[int]bool)
	for _, we := range refused.WriteErrors {
		if server.Concerns(we.Code) {
			return err
		}
		failed[we.Index] = true
		res.skip(back[we.Index].ID, reason(we.WriteError))
	}
	if r != nil && r.MatchedCount == int64(len(models)-len(failed)) {
		res.Restored += r.MatchedCount
		return nil
	}
	// Other programs were faster, or a router counted orphans.
	if docs, err = fetch(ctx, coll, ids, nil); err != nil {
		return err
	}
	for i, e := range back {
		switch doc, ok := docs[key(e.ID)]; {
		case failed[i]:
		case !ok:
			res.Gone++
		case holds(doc, e, e.from, func(ch Change) [16]byte { return ch.Old }):
			res.Restored++
		default:
			res.changed(e)
		}
	}
	return nil
}

func (res *Undone) changed(e Entry) {
	res.Changed++
	res.skip(e.ID, "another program changed it since")
}

func (res *Undone) skip(id bson.RawValue, reason string) {
	if len(res.Skips) < maxListed {
		res.Skips = append(res.Skips, Skip{id, reason})
	}
}

// holds reports whether every value of the entry stands in doc as it is said to.
func holds(doc bson.Raw, e Entry, subtype byte, want func(Change) [16]byte) bool {
	for _, ch := range e.Changes {
		if s, octets, ok := at(doc, ch.Path); !ok || s != subtype || octets != want(ch) {
			return false
		}
	}
	return true
}

// Verified is what a proof found.
type Verified struct {
	Read    int64  `json:"documentsRead"`
	Old     int64  `json:"oldValues"` // values of the kind that should be gone
	InID    int64  `json:"ofThemInId"`
	New     int64  `json:"newValues"`
	Fields  Tally  `json:"oldValuesByField,omitempty"`
	Proven  int64  `json:"documentsProven"`  // their new values map back to what the log or the source has
	Wrong   int64  `json:"documentsWrong"`   // they don't
	Gone    int64  `json:"documentsGone"`    // deleted since
	Changed int64  `json:"changedSince"`     // by another program, to something that nothing is known about
	Missing int64  `json:"documentsMissing"` // of the source, not in the copy
	Extra   int64  `json:"documentsExtra"`   // of the copy, not in the source
	Skips   []Skip `json:"findings,omitempty"`
}

// Holds reports whether the proof succeeded. What other programs deleted or changed since is no failure, unless strict.
func (v Verified) Holds(strict bool) bool {
	return v.Old == 0 && v.Wrong == 0 && v.Missing == 0 && v.Extra == 0 && !(strict && (v.Gone > 0 || v.Changed > 0))
}

func (v *Verified) find(id bson.RawValue, format string, args ...any) {
	if len(v.Skips) < maxListed {
		v.Skips = append(v.Skips, Skip{id, fmt.Sprintf(format, args...)})
	}
}

// VerifyInPlace reads the whole collection for values of the old kind, and holds the undo log, if there is one, against
// the documents. With the same subtype before and after, only the log can prove anything.
func VerifyInPlace(ctx context.Context, coll *mongo.Collection, c Conversion, u *UndoReader, progress func(int)) (Verified, error) {
	v := Verified{Fields: Tally{}}
	if c.SameSubtype() && u == nil {
		return v, errors.New("the old and the new values have the same subtype: only the undo log proves such a conversion")
	}
	if !c.SameSubtype() {
		if err := v.count(ctx, coll, c, progress); err != nil {
			return v, err
		}
	}
	if u == nil {
		return v, nil
	}
	err := entries(u, batchSize, func(b []Entry) error {
		ids := make([]bson.RawValue, len(b))
		for i, e := range b {
			ids[i] = e.ID
		}
		docs, err := fetch(ctx, coll, ids, nil)
		if err != nil {
			return err
		}
		for _, e := range b {
			v.entry(docs, e, c)
		}
		return nil
	})
	return v, err
}

func (v *Verified) entry(docs map[string]bson.Raw, e Entry, c Conversion) {
	for _, ch := range e.Changes {
		if e.from != c.From.Subtype || e.to != c.To.Subtype || c.octets(ch.Old) != ch.New {
			v.Wrong++
			v.find(e.ID, "the undo log has a change at %s that is not this conversion's", ch.Path)
			return
		}
	}
	doc, ok := docs[key(e.ID)]
	switch {
	case !ok:
		v.Gone++
	case holds(doc, e, e.to, func(ch Change) [16]byte { return ch.New }):
		v.Proven++
	case holds(doc, e, e.from, func(ch Change) [16]byte { return ch.Old }):
		v.Wrong++
		v.find(e.ID, "not converted")
	default:
		v.Changed++
		v.find(e.ID, "another program changed it since")
	}
}

// count counts the values of both kinds in the fields of the conversion.
func (v *Verified) count(ctx context.Context, coll *mongo.Collection, c Conversion, progress func(int)) error {
	opts := options.Find().SetBatchSize(2000)
	if p := c.Projection(); p != nil {
		opts.SetProjection(p)
	}
	cur, err := coll.Find(ctx, bson.D{}, opts)
	if err != nil {
		return err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	for cur.Next(ctx) {
		v.Read++
		progress(1)
		if err := v.document(cur.Current, c); err != nil {
			return err
		}
	}
	return cur.Err()
}
