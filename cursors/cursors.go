// Package cursors reads all documents of a [mongo.Cursor] and decodes them by compiled plans, straight from the memory
// of the cursor's batches. It returns what the methods of the cursor return.
//
//	orders, err := cursors.All[Order](ctx, cursor)
//
//	for order, err := range cursors.Values[Order](ctx, cursor) {
//		if err != nil {
//			return err
//		}
//		…
//	}
package cursors

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
)

// ErrNilCursor is the error of reading a cursor that is nil.
var ErrNilCursor = errors.New("cursors: the cursor is nil")

// An Option changes how documents are decoded.
type Option func(*decoder)

// WithRegistry decodes with reg and opts, whatever the registry and the BSONOptions of the cursor are. A nil reg is an
// error that wraps [bson.ErrNilRegistry].
func WithRegistry(reg *bson.Registry, opts bsoncodec.Options) Option {
	return func(d *decoder) {
		d.reg, d.opts, d.err = reg, opts, nil
		if reg == nil {
			d.err = fmt.Errorf("cursors: WithRegistry: %w", bson.ErrNilRegistry)
		}
	}
}

// All returns the documents that are left in cursor, and closes it. The slice is not nil unless there is an error.
//
// The registry and the options are those of the cursor. If package bsoncodec did not build the registry, the documents
// are decoded by the Decode method of the cursor.
//
// Errors are those of the Next, Decode and Err methods of the cursor, the error of ctx if it is done between two
// documents, [ErrNilCursor], and that of an Option that is nil or wrong, after which the cursor is closed too.
func All[T any](ctx context.Context, cursor *mongo.Cursor, opts ...Option) ([]T, error) {
	if cursor == nil {
		return nil, ErrNilCursor
	}
	defer closeCursor(ctx, cursor)
	d := newDecoder(cursor, opts)
	if d.err != nil {
		return nil, d.err
	}
	all := make([]T, 0, cursor.RemainingBatchLength())
	for next(ctx, cursor) {
		var zero T
		all = append(all, zero)
		if err := d.decode(cursor, &all[len(all)-1]); err != nil {
			return nil, err
		}
	}
	if err := failure(ctx, cursor); err != nil {
		return nil, err
	}
	return all, nil
}

// Values returns an iterator over the documents that are left in cursor. It closes the cursor when the loop ends. Each
// document is a new value. An error is the last pair of the iterator; the errors are those of [All].
func Values[T any](ctx context.Context, cursor *mongo.Cursor, opts ...Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		if cursor == nil {
			yield(zero, ErrNilCursor)
			return
		}
		defer closeCursor(ctx, cursor)
		d := newDecoder(cursor, opts)
		if d.err != nil {
			yield(zero, d.err)
			return
		}
		for next(ctx, cursor) {
			var v T
			if err := d.decode(cursor, &v); err != nil {
				yield(zero, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
		if err := failure(ctx, cursor); err != nil {
			yield(zero, err)
		}
	}
}

// next moves cursor to the next document unless ctx is done.
func next(ctx context.Context, cursor *mongo.Cursor) bool {
	return (ctx == nil || ctx.Err() == nil) && cursor.Next(ctx)
}

// failure returns the error that ended a cursor, nil if it came to its end.
func failure(ctx context.Context, cursor *mongo.Cursor) error {
	if err := cursor.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}

// closeCursor closes cursor on the server even if ctx is done.
func closeCursor(ctx context.Context, cursor *mongo.Cursor) {
	if ctx == nil {
		ctx = context.Background()
	}
	_ = cursor.Close(context.WithoutCancel(ctx))
}

// A decoder decodes the current document of a cursor.
type decoder struct {
	reg   *bson.Registry // nil if the cursor decodes
	opts  bsoncodec.Options
	plain bool  // there are none
	err   error // of the Options
}

func newDecoder(cursor *mongo.Cursor, opts []Option) decoder {
	var d decoder
	for _, o := range opts {
		if o == nil {
			return decoder{err: errors.New("cursors: an Option is nil")}
		}
		o(&d)
	}
	if d.reg == nil && d.err == nil {
		if reg, o, err := bsoncodec.ProbeDecode(cursor.Decode); err == nil {
			d.reg, d.opts = reg, o
			if both, err := o.Complete(bsoncodec.Options{}); err == nil {
				d.opts = both
			}
		}
	}
	d.plain = d.opts == bsoncodec.Options{}
	return d
}

func (d *decoder) decode(cursor *mongo.Cursor, v any) error {
	if d.reg == nil {
		return cursor.Decode(v)
	}
	if d.plain {
		return bsoncodec.Unmarshal(d.reg, cursor.Current, v)
	}
	return bsoncodec.Unmarshal(d.reg, cursor.Current, v, d.opts)
}
