package convert

import (
	"bytes"
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

type copyBatch struct {
	number int
	docs   []bson.Raw // converted
	read   int
	fields rule.Tally // values by field
	left   []mirror.Left
}

// copy inserts the documents that the target does not have yet.
func (c *copier) copy(ctx context.Context) error {
	p := &documents.Pages{Collection: c.m.Old, Size: int64(c.Batch)}
	p.After = c.State.Position.raw()
	c.tracker.position = p.After
	return inBatches(ctx, p, c.tracker, c.Patience, stages[copyBatch]{c.plan, c.Batch, c.Pace, c.turn, 1, c.process, c.Workers})
}

// plan returns the batch of a page.
func (c *copier) plan(number int, docs []bson.Raw) (copyBatch, error) {
	b := copyBatch{number: number, fields: make(rule.Tally)}
	for _, doc := range docs {
		if !c.Part.Has(doc.Lookup("_id")) {
			continue
		}
		b.read++
		fresh, _, left, err := c.Conversion.Rewrite(doc, b.fields)
		if err != nil {
			return b, &documents.Error{ID: doc.Lookup("_id"), Reason: err.Error()}
		}
		if len(left) > 0 {
			b.left = append(b.left, mirror.Left{ID: doc.Lookup("_id"), Values: left})
		}
		b.docs = append(b.docs, fresh)
	}
	return b, nil
}

// turn waits until the documents of a batch may be written.
func (c *copier) turn(waiting context.Context, group []copyBatch) error {
	if n := len(group[0].docs); n > 0 {
		return c.Options.turn(waiting, n)
	}
	return nil
}

func (c *copier) process(waiting, ctx context.Context, b copyBatch) error {
	if len(b.docs) > 0 {
		conflicts, err := c.write(waiting, ctx, b.docs)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.res.Conflicts = append(c.res.Conflicts, conflicts[:min(len(conflicts), max(0, maxListed-len(c.res.Conflicts)))]...)
		c.mu.Unlock()
	}
	c.mu.Lock()
	for _, l := range b.left {
		c.note(l)
	}
	c.mu.Unlock()
	if err := c.SkipList.Err(); err != nil {
		return err
	}
	n := counts{documents: int64(len(b.docs)), skipped: int64(len(b.left))}
	for _, values := range b.fields {
		n.values += values
	}
	c.tracker.done(b.number, n)
	c.mu.Lock()
	c.res.Documents += int64(len(b.docs))
	c.res.Read += int64(b.read)
	for field, n := range b.fields {
		c.res.Fields.Add(field, n)
	}
	c.res.Values += n.values
	c.mu.Unlock()
	c.Progress(b.read)
	c.report()
	if c.Follow == nil {
		if err := c.there.sometimes(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.tracker.checkpoint(func() int64 { return 0 })
	if at.position.Type == 0 || c.State.Position != nil && bytes.Equal(c.State.Position.Value, at.position.Value) {
		return nil
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

// write inserts the documents of a batch. It leaves documents that are already there unchanged: an earlier
// run copied them, or another document has the converted _id. It returns the latter as conflicts. Pauses
// end with waiting, and the work with ctx.
func (c *copier) write(waiting, ctx context.Context, docs []bson.Raw) (conflicts []Skip, err error) {
	var answered func(context.Context, int)
	var stuck []mirror.Finding
	// An attempt whose answer is lost may have inserted documents, which the next one finds.
	err = c.Patience.Do(waiting, func() (err error) {
		answered = c.Latency.Start()
		stuck, err = c.m.Insert(ctx, docs)
		return err
	})
	if err == nil {
		err = refusal(mirror.Result{Stuck: stuck})
	}
	if err != nil {
		return nil, err
	}
	for _, f := range stuck {
		conflicts = append(conflicts, Skip{f.ID, f.Reason})
	}
	answered(waiting, len(docs))
	return conflicts, nil
}
