package convert

import (
	"bytes"
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

type copyBatch struct {
	number   int
	docs     []bson.Raw // converted
	read     int
	fields   Tally // values by field
	examples [][2]bson.Raw
	left     []leftIn
}

// leftIn has the values of one document that are left unchanged.
type leftIn struct {
	id   bson.RawValue
	left []Left
}

// copy inserts the documents that the target does not have yet.
func (c *copier) copy(ctx context.Context) error {
	p := &documents.Pages{Collection: c.source, Size: int64(c.Batch)}
	if c.Write && c.State != nil {
		p.After = c.State.Position.raw()
		c.tracker.position = p.After
	}
	return inBatches(ctx, p, c.tracker, c.Patience, stages[copyBatch]{c.plan, c.Batch, c.turn, 1, c.process, c.Workers})
}

// plan returns the batch of a page.
func (c *copier) plan(number int, docs []bson.Raw) (copyBatch, error) {
	b := copyBatch{number: number, read: len(docs), fields: make(Tally)}
	for _, doc := range docs {
		if !c.Part.Has(doc.Lookup("_id")) {
			continue
		}
		var left []Left
		fresh, values, err := c.Conversion.rewrite(doc, b.fields, func(l Left) { left = append(left, l) })
		if err != nil {
			return b, &DocumentError{doc.Lookup("_id"), err.Error()}
		}
		if values > 0 && (c.Options.Examples < 0 || len(b.examples) < c.Options.Examples) {
			b.examples = append(b.examples, [2]bson.Raw{doc, fresh})
		}
		if len(left) > 0 {
			b.left = append(b.left, leftIn{doc.Lookup("_id"), left})
		}
		b.docs = append(b.docs, fresh)
	}
	return b, nil
}

// turn waits until the documents of a batch may be written.
func (c *copier) turn(waiting context.Context, group []copyBatch) error {
	if n := len(group[0].docs); c.Write && n > 0 {
		return c.Options.turn(waiting, n)
	}
	return nil
}

func (c *copier) process(waiting, ctx context.Context, b copyBatch) error {
	if c.Write && len(b.docs) > 0 {
		conflicts, err := c.write(waiting, ctx, b.docs)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.res.Conflicts = append(c.res.Conflicts, conflicts[:min(len(conflicts), max(0, maxListed-len(c.res.Conflicts)))]...)
		c.mu.Unlock()
	}
	for _, l := range b.left {
		c.SkipList.add(l.id, c.Conversion.From.Subtype, l.left)
	}
	if err := c.SkipList.Err(); err != nil {
		return err
	}
	n := counts{documents: int64(len(b.docs)), skipped: int64(len(b.left))}
	for _, values := range b.fields {
		n.values += values
	}
	c.tracker.done(b.number, n)
	c.mu.Lock()
	for _, l := range b.left {
		c.note(l)
	}
	c.res.Documents += int64(len(b.docs))
	c.res.Read += int64(b.read)
	for field, n := range b.fields {
		c.res.Fields.add(field, n)
	}
	c.res.Values += n.values
	for _, e := range b.examples {
		if c.Options.Examples < 0 || len(c.res.Examples) < c.Options.Examples {
			c.res.Examples = append(c.res.Examples, e)
		}
	}
	c.mu.Unlock()
	c.Progress(b.read)
	c.report()
	if c.Follow == nil {
		if err := c.there.sometimes(ctx); err != nil {
			return err
		}
	}
	if !c.Write || c.State == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.tracker.checkpoint(func() int64 { return 0 })
	if at.position.Type == 0 || c.State.Position != nil && bytes.Equal(c.State.Position.Value, at.position.Value) {
		return nil
	}
	if err := c.SkipList.Sync(); err != nil {
		return err
	}
	c.reached(at)
	return c.State.Save()
}

// reached notes in the state how far the copy has come.
func (c *copier) reached(at checkpoint) {
	if at.position.Type != 0 {
		c.State.Position = newPosition(at.position)
	}
	c.State.Changed, c.State.Values = c.before.documents+at.counts.documents, c.before.values+at.counts.values
	c.State.Skipped = c.before.skipped + at.counts.skipped
}

// report reports the counts of all runs.
func (c *copier) report() {
	if c.Report == nil {
		return
	}
	c.mu.Lock()
	totals := Totals{c.res.Read, c.before.documents + c.res.Documents, c.before.values + c.res.Values, c.before.skipped + c.res.Skipped}
	c.mu.Unlock()
	c.Report(totals)
}

// write inserts the documents of a batch. Pauses end with waiting, and the work with ctx.
func (c *copier) write(waiting, ctx context.Context, docs []bson.Raw) (conflicts []Skip, err error) {
	var pause time.Duration
	var late error
	// An attempt whose answer is lost may have inserted documents, which the next one finds.
	err = c.Patience.Do(waiting, func() error {
		ctx, cancel, err := c.mayBegin(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		answered := c.Latency.Start()
		conflicts, err = c.insert(ctx, docs)
		pause = answered(len(docs))
		if c.Halves && failure.Means(err, failure.Expired) {
			late, err = err, nil
		}
		return err
	})
	if err == nil && late != nil {
		half := len(docs) / 2
		if half == 0 {
			return nil, &DocumentError{docs[0].Lookup("_id"), tooSlow(c.BatchTimeout)}
		}
		if conflicts, err = c.write(waiting, ctx, docs[:half]); err != nil {
			return conflicts, err
		}
		more, err := c.write(waiting, ctx, docs[half:])
		return append(conflicts, more...), err
	}
	if err == nil {
		_ = c.Latency.Pause(waiting, pause) // a pause that is cut short is no error
	}
	return conflicts, err
}

// note counts the unchanged values of one document. The caller holds c.mu, or no other batch is
// being processed.
func (c *copier) note(l leftIn) {
	c.res.Skipped++
	for _, v := range l.left {
		c.res.Left++
		c.res.SkippedFor.add(v.Reason, 1)
	}
}

// insert inserts docs. It leaves documents that are already in the target unchanged: an earlier run
// copied them, or another document has the converted _id. It returns the latter as conflicts.
func (c *copier) insert(ctx context.Context, docs []bson.Raw) ([]Skip, error) {
	doubt, invalid, err := c.insertMany(ctx, docs, false)
	if err == nil && len(invalid) > 0 {
		var more []bson.Raw
		more, _, err = c.insertMany(ctx, invalid, true)
		doubt = append(doubt, more...)
	}
	if err != nil || len(doubt) == 0 {
		return nil, err
	}
	held, err := c.held(ctx, doubt)
	if err != nil {
		return nil, err
	}
	var conflicts []Skip
	for _, d := range doubt {
		if !bytes.Equal(held[documents.Key(d.Lookup("_id"))], d) {
			conflicts = append(conflicts, Skip{d.Lookup("_id"), "the new collection has another document with this _id or another unique key"})
		}
	}
	return conflicts, nil
}

// insertMany inserts docs. It returns those for which another document has the same value of a unique
// index, and those that the validator of the target rejects, if these may be written despite it.
func (c *copier) insertMany(ctx context.Context, docs []bson.Raw, bypass bool) (doubt, invalid []bson.Raw, err error) {
	refused, err := bulk.Insert(ctx, c.target, docs, bypass)
	if err != nil {
		return nil, nil, err
	}
	c.owns(docs, refused)
	for _, f := range refused {
		switch {
		case f.Duplicate:
			doubt = append(doubt, docs[f.Index])
		case f.Invalid && c.Follow != nil && !bypass:
			invalid = append(invalid, docs[f.Index])
		default:
			return nil, nil, &DocumentError{docs[f.Index].Lookup("_id"), f.Reason}
		}
	}
	return doubt, invalid, nil
}

// owns records docs as written by this run, except the refused ones.
func (c *copier) owns(docs []bson.Raw, refused []bulk.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, d := range docs {
		if !slices.ContainsFunc(refused, func(r bulk.Refusal) bool { return r.Index == i }) {
			c.own.Add(d)
		}
	}
}

func (c *copier) held(ctx context.Context, docs []bson.Raw) (map[string]bson.Raw, error) {
	ids := make([]bson.RawValue, len(docs))
	for i, d := range docs {
		ids[i] = d.Lookup("_id")
	}
	return documents.ByID(ctx, c.target, ids, nil)
}
