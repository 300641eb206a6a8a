package convert

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
)

type copyBatch struct {
	docs   []bson.Raw // converted
	left   []mirror.Leftovers
	counts Totals
}

// copy inserts the documents that the target does not have yet.
func (c *copier) copy(ctx context.Context) error {
	p := &documents.Pages{Collection: c.m.Old, Size: int64(c.Batch)}
	return inBatches(ctx, p, c.Patience, stages[copyBatch]{c.batchOf, c.Batch, c.Pace, c.turn, 1, c.process, c.Workers})
}

// batchOf returns the batch of a page.
func (c *copier) batchOf(docs []bson.Raw) (copyBatch, error) {
	var b copyBatch
	for _, doc := range docs {
		fresh, values, left, err := c.Conversion.Rewrite(doc)
		if err != nil {
			return b, &documents.Error{ID: doc.Lookup("_id"), Reason: err.Error()}
		}
		if len(left) > 0 {
			b.left = append(b.left, mirror.Leftovers{ID: doc.Lookup("_id"), Values: left})
		}
		b.docs = append(b.docs, fresh)
		b.counts.add(Totals{Changed: 1, Values: int64(values)})
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
	for _, l := range b.left {
		c.leave(l.ID, l.Values)
	}
	c.count(b.counts)
	return c.done(ctx, len(b.docs))
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
