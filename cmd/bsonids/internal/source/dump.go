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
	Item dump.Item // the last item
	// Seen has the collections so far, also those without a document.
	Seen []*dump.Collection

	reader   *dump.Reader
	progress func(documents int)
	read     int // documents that progress was not told about
	seen     map[*dump.Collection]bool
}

// OpenDump begins to read a dump. The caller must close it. progress is told how many documents were read,
// from time to time.
func OpenDump(in *dump.Input, progress func(documents int)) (*Dump, error) {
	r, err := in.Reader()
	if err != nil {
		return nil, err
	}
	return &Dump{reader: r, progress: progress, seen: make(map[*dump.Collection]bool)}, nil
}

// told is the number of documents after which the context is asked and the progress is told.
const told = 1000

// NextItem reads the next item. The error is io.EOF after the last one.
func (d *Dump) NextItem(ctx context.Context) (err error) {
	d.Item, err = d.reader.Next()
	if ctx.Err() != nil { // also if an interrupted program at the other end of a pipe ended it
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) {
		d.progress(d.read)
		d.read = 0
	}
	if err != nil {
		return err
	}
	if c := d.Item.Collection; c != nil && !d.seen[c] {
		d.seen[c] = true
		d.Seen = append(d.Seen, c)
	}
	if d.Item.Kind == dump.Document {
		if d.read++; d.read == told {
			d.progress(d.read)
			d.read = 0
		}
	}
	return nil
}

// Next reads the next document. Its collection is that of Item.
func (d *Dump) Next(ctx context.Context) (bson.Raw, error) {
	for {
		if err := d.NextItem(ctx); err != nil {
			return nil, err
		}
		if d.Item.Kind == dump.Document {
			return d.Item.Bytes, nil
		}
	}
}

// Damaged returns an error with the place of the last item. A damaged dump is not read further.
func (d *Dump) Damaged(err error) error { return d.reader.Damaged(&d.Item, err) }

// Close ends the reading.
func (d *Dump) Close() error { return d.reader.Close() }

// Add gives the last document to a taker, or only walks it if there is none.
func (d *Dump) Add(to Taker) error {
	if to == nil {
		return walk.Document(d.Item.Bytes, func(*walk.Path, walk.Leaf) error { return nil })
	}
	return to.Add(d.Item.Bytes)
}
