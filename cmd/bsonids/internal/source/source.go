// Package source reads documents once, in the order in which they come: those of a collection of a server,
// and those of a dump.
package source

import (
	"context"
	"errors"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
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

// Taker takes the documents of a pass.
type Taker interface {
	Add(doc []byte) error // an error that wraps walk.ErrCorrupt is one of the document, which is passed over
	Forget()              // forgets the documents, because the pass begins again
}

// Read makes a pass over the documents of a collection of a server, which begins again if the server is lost
// while patient allows it. show is called with the number of documents to read.
func (c Collection) Read(ctx context.Context, patient *patience.Patience, show func(total int64) terminal.Progress, to Taker) (read Readout, err error) {
	err = patient.Pass(ctx, func(progress func(int)) error {
		to.Forget()
		read = Readout{Mode: All}
		cursor, total, err := c.open(ctx, &read)
		if err != nil {
			return err
		}
		defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }() // what was read is read
		bar := show(total)
		defer bar.Done()
		return read.add(ctx, cursor, to, func() {
			progress(1)
			bar.Add(1)
		})
	})
	return read, err
}

// add gives the documents of the cursor to the taker, and counts those that cannot be walked.
func (r *Readout) add(ctx context.Context, cursor *mongo.Cursor, to Taker, next func()) error {
	for cursor.Next(ctx) {
		next()
		switch err := to.Add(cursor.Current); {
		case errors.Is(err, walk.ErrCorrupt):
			r.Malformed++
		case err != nil:
			return err
		}
	}
	return cursor.Err()
}

const batch = 2000

// open begins to read the collection. It returns about how many documents are to be read.
func (c Collection) open(ctx context.Context, read *Readout) (cursor *mongo.Cursor, total int64, err error) {
	if read.Documents, err = c.EstimatedDocumentCount(ctx); err != nil {
		return nil, 0, err
	}
	filter := c.Filter
	if filter == nil {
		filter = bson.D{}
	}
	if c.Sample == 0 || read.Documents <= c.Sample {
		cursor, err = c.Find(ctx, filter, options.Find().SetBatchSize(batch))
		return cursor, read.Documents, err
	}
	read.Mode = Sample
	pipeline := bson.A{bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: c.Sample}}}}}
	cursor, err = c.Aggregate(ctx, pipeline, options.Aggregate().SetAllowDiskUse(true).SetBatchSize(batch))
	if cannotSample(err) { // because of the disk, as in read-only mode, or by chance
		cursor, err = c.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(batch))
	}
	if cannotSample(err) {
		read.Mode = First
		cursor, err = c.Find(ctx, filter, options.Find().SetLimit(c.Sample).SetBatchSize(batch))
	}
	return cursor, c.Sample, err
}

// cannotSample reports whether the server rejected $sample itself, as opposed to a lost connection
// or a missing privilege. A sample that timed out counts as rejected.
func cannotSample(err error) bool {
	var se mongo.ServerError
	return errors.As(err, &se) && (failure.Means(err, failure.Expired) || failure.Explain(err, "").Kind == failure.Failed)
}
