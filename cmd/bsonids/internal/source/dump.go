package source

import (
	"context"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Dump is the documents of a dump, in the order of its files.
type Dump struct {
	*dump.Reader
	Item dump.Item // the last item

	progress func(documents int)
	read     int // documents that progress was not told about
}

// OpenDump begins to read a dump. The caller must close it. progress is told how many documents were read,
// from time to time.
func OpenDump(in *dump.Input, progress func(documents int)) *Dump {
	return &Dump{Reader: in.Reader(), progress: progress}
}

// told is the number of documents after which the progress is told.
const told = 1000

// NextItem reads the next item. The error is io.EOF after the last one.
func (d *Dump) NextItem(ctx context.Context) (err error) {
	d.Item, err = d.Reader.Next()
	if ctx.Err() != nil { // also if an interrupted program at the other end of a pipe ended it
		return ctx.Err()
	}
	if err == nil && d.Item.Kind == dump.Document {
		d.read++
	}
	if d.read == told || errors.Is(err, io.EOF) {
		d.progress(d.read)
		d.read = 0
	}
	return err
}

// Each calls visit for each document, whose collection is that of Item. The error of a document that cannot be
// walked has its place, and ends the reading.
func (d *Dump) Each(ctx context.Context, visit func(bson.Raw) error) error {
	for {
		switch err := d.NextItem(ctx); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case d.Item.Kind != dump.Document:
			continue
		}
		if err := visit(d.Item.Bytes); errors.Is(err, walk.ErrCorrupt) {
			return d.Damaged(err)
		} else if err != nil {
			return err
		}
	}
}
