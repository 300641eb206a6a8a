package scan

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

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

// Adder reads documents. An error that wraps walk.ErrCorrupt does not stop the reading.
type Adder interface{ Add(doc []byte) error }

// Read adds the documents of coll to c: a random sample of sample documents, or all documents if
// sample is 0. progress is called with the number of documents to read.
func Read(ctx context.Context, coll *mongo.Collection, c Adder, sample int64, progress func(total int64) *terminal.Progress) (Readout, error) {
	r := Readout{Mode: All}
	var err error
	if r.Documents, err = coll.EstimatedDocumentCount(ctx); err != nil {
		return r, err
	}
	total := r.Documents
	if sample > 0 && r.Documents > sample {
		r.Mode, total = Sample, sample
	}
	cur, err := r.open(ctx, coll, sample)
	if err != nil {
		return r, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	bar := progress(total)
	defer bar.Done()
	for cur.Next(ctx) {
		if err := c.Add(cur.Current); errors.Is(err, walk.ErrCorrupt) {
			r.Malformed++
		} else if err != nil {
			return r, err
		}
		bar.Add(1)
	}
	return r, cur.Err()
}

func (r *Readout) open(ctx context.Context, coll *mongo.Collection, sample int64) (*mongo.Cursor, error) {
	const batch = 2000
	if r.Mode == All {
		return coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(batch))
	}
	pipeline := bson.A{bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: sample}}}}}
	cur, err := coll.Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(true).SetBatchSize(batch))
	if cannotSample(err) { // because of the disk, as in read-only mode, or by chance
		cur, err = coll.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(batch))
	}
	if cannotSample(err) {
		r.Mode = First
		cur, err = coll.Find(ctx, bson.D{}, options.Find().SetLimit(sample).SetBatchSize(batch))
	}
	return cur, err
}

// cannotSample reports whether the server rejected $sample itself, as opposed to a lost connection
// or a missing privilege. A sample that timed out counts as rejected.
func cannotSample(err error) bool {
	var se mongo.ServerError
	return errors.As(err, &se) && (failure.Means(err, failure.Expired) || failure.Explain(err, "").Kind == failure.Failed)
}
