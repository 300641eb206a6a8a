// Package source reads documents once, in the order in which they come: those of a collection of a server,
// and those of a dump.
package source

import (
	"context"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Documents is a series of documents that is read once. It is not safe for concurrent use.
type Documents interface {
	// Next returns the next document, which is valid until the next call. The error is io.EOF after the
	// last document.
	Next(ctx context.Context) (bson.Raw, error)
	// Damaged returns the error for the last document, which could not be walked, or nil if such documents
	// are passed over.
	Damaged(err error) error
	Close() error
}

// Each calls visit for each document. It returns the error of the documents or of visit.
func Each(ctx context.Context, d Documents, visit func(bson.Raw) error) error {
	for {
		doc, err := d.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err = visit(doc); errors.Is(err, walk.ErrCorrupt) {
			err = d.Damaged(err)
		}
		if err != nil {
			return err
		}
	}
}

// Taker takes the documents of a pass.
type Taker interface {
	Add(doc []byte) error // an error that wraps walk.ErrCorrupt is one of the document
	Forget()              // forgets the documents, because the pass begins again
}

// Read makes a pass over the documents of a collection of a server, which begins again if the server is lost
// while patient allows it. show is called with the number of documents to read.
func (c Collection) Read(ctx context.Context, patient *patience.Patience, show func(total int64) progress.Progress, to Taker) (read Readout, err error) {
	err = patient.Pass(ctx, func(progress func(int)) error {
		to.Forget()
		d, err := c.open(ctx)
		if err != nil {
			return err
		}
		bar := show(d.total)
		defer bar.Done()
		err = errors.Join(Each(ctx, d, func(doc bson.Raw) error {
			progress(1)
			bar.Add(1)
			return to.Add(doc)
		}), d.Close())
		read = d.Readout
		return err
	})
	return read, err
}
