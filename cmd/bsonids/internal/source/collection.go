package source

import (
	"context"
	"errors"
	"io"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// Collection is a collection of a server.
type Collection struct {
	*mongo.Collection
	Filter bson.D // selects documents; nil for all
	Sample int64  // the size of a random sample of all documents; 0 for every document
}

// Mode is the selection of the documents that were read.
type Mode string

// The modes.
const (
	All    Mode = "all"
	Sample Mode = "sample" // a random sample
	First  Mode = "first"  // the first documents, because the server cannot sample
)

// Readout describes how a collection was read.
type Readout struct {
	Mode      Mode
	Documents int64 // approximate number of documents
	Malformed int64 // documents that could not be walked
}

// Missed returns how many documents of a collection must have a property for a random sample, which has read of
// all documents, to have one of them with a probability of 95 %. It is 1 if every document was read, and 0 if the
// collection is empty. A random sample of a share s misses r documents with a probability of (1-s)^r.
func Missed(read, all int64) int64 {
	switch {
	case read >= all:
		return min(all, 1)
	case read == 0:
		return all
	}
	share := float64(read) / float64(all)
	return min(all, int64(math.Ceil(math.Log(0.05)/math.Log1p(-share))))
}

// cursor is the documents of a collection.
type cursor struct {
	Readout
	*mongo.Cursor
	ctx   context.Context
	total int64 // how many documents are to be read, about
}

const batch = 2000

// open begins to read the collection.
func (c Collection) open(ctx context.Context) (*cursor, error) {
	d := &cursor{Readout: Readout{Mode: All}, ctx: ctx}
	var err error
	if d.Documents, err = c.EstimatedDocumentCount(ctx); err != nil {
		return nil, err
	}
	filter := c.Filter
	if filter == nil {
		filter = bson.D{}
	}
	d.total = d.Documents
	if c.Sample == 0 || d.Documents <= c.Sample {
		d.Cursor, err = c.Find(ctx, filter, options.Find().SetBatchSize(batch))
		return d, err
	}
	d.Mode, d.total = Sample, c.Sample
	pipeline := bson.A{bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: c.Sample}}}}}
	d.Cursor, err = c.Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(true).SetBatchSize(batch))
	if cannotSample(err) { // because of the disk, as in read-only mode, or by chance
		d.Cursor, err = c.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(batch))
	}
	if cannotSample(err) {
		d.Mode = First
		d.Cursor, err = c.Find(ctx, filter, options.Find().SetLimit(c.Sample).SetBatchSize(batch))
	}
	return d, err
}

// cannotSample reports whether the server rejected $sample itself, as opposed to a lost connection
// or a missing privilege. A sample that timed out counts as rejected.
func cannotSample(err error) bool {
	var se mongo.ServerError
	return errors.As(err, &se) && (failure.Means(err, failure.Expired) || failure.Explain(err, "").Kind == failure.Failed)
}

func (d *cursor) Next(ctx context.Context) (bson.Raw, error) {
	if d.Cursor.Next(ctx) {
		return d.Current, nil
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// Damaged counts the document.
func (d *cursor) Damaged(error) error {
	d.Malformed++
	return nil
}

func (d *cursor) Close() error {
	_ = d.Cursor.Close(context.WithoutCancel(d.ctx)) // what was read is read
	return nil
}
