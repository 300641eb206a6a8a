// Package cursors reads cursors, single results and change streams, and decodes their documents by compiled plans,
// straight from the memory that the driver has read them into. It returns what the driver's methods return, a few times as
// fast:
//
//	order, err := cursors.One[Order](coll.FindOne(ctx, filter))
//
//	orders, err := cursors.All[Order](ctx, cursor)
//
//	for order, err := range cursors.Values[Order](ctx, cursor) {
//		if err != nil {
//			return err
//		}
//		…
//	}
//
//	for event, err := range cursors.Changes[Event](ctx, stream) { … }
//
// The registry and the BSON options are those of the cursor, the result or the stream. If package bsoncodec did not build
// the registry, the driver's own Decode method does the work.
package cursors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/inuse"
)

// errNilCursor is the error of reading a cursor, a result or a change stream that is nil.
var errNilCursor = errors.New("cursors: the cursor is nil")

// errEnded is the error of a second loop over a sequence of [Values] or [Changes] whose first loop ended early, by break or
// return, and closed the cursor.
var errEnded = errors.New("cursors: an earlier loop over the sequence ended early and closed the cursor")

// An Option changes how documents are decoded.
type Option func(*decoder)

// WithRegistry decodes with reg and opts, whatever the registry and the BSON options of the cursor, the result or the
// stream are. A nil reg is an error that wraps [bson.ErrNilRegistry].
func WithRegistry(reg *bson.Registry, opts bsoncodec.Options) Option {
	return func(d *decoder) {
		d.use(reg, opts)
		if reg == nil {
			d.err = fmt.Errorf("cursors: WithRegistry: %w", bson.ErrNilRegistry)
		}
	}
}

// One returns the document of res. A caller may call it, and the methods of res, any number of times.
//
// Errors are those of the Decode method of res, mongo.ErrNoDocuments among them. A res or an
// Option that is nil, and a wrong Option, is an error.
func One[T any](res *mongo.SingleResult, opts ...Option) (T, error) {
	var v, zero T
	if res == nil {
		return zero, errNilCursor
	}
	d := newDecoder(res, opts)
	if d.err != nil {
		return zero, d.err
	}
	if d.reg == nil {
		if err := res.Decode(&v); err != nil {
			return zero, err
		}
		return v, nil
	}
	doc, err := res.Raw()
	if err == nil {
		err = d.unmarshal(doc, &v)
	}
	if err != nil {
		return zero, err
	}
	return v, nil
}

// All returns the documents that are left in cursor, and closes it. The slice is not nil unless there is an error. The All
// method of a cursor, of driver 2.9.3, ends without an error at a batch that is empty; this function does not.
//
// Errors are those of the Next, Decode and Err methods of the cursor, the error of ctx if it is done between two
// documents, and that of a cursor or an Option that is nil or of a wrong Option; the cursor is closed then, too.
func All[T any](ctx context.Context, cursor *mongo.Cursor, opts ...Option) ([]T, error) {
	if cursor == nil {
		return nil, errNilCursor
	}
	defer closeCursor(ctx, cursor)
	d := newDecoder(cursor, opts)
	if d.err != nil {
		return nil, d.err
	}
	all := make([]T, 0, cursor.RemainingBatchLength())
	for next(ctx, cursor) {
		if len(all) == cap(all) { // the first document of a batch
			all = slices.Grow(all, 1+cursor.RemainingBatchLength())
		}
		var zero T
		all = append(all, zero)
		if err := d.decode(cursor, cursor.Current, &all[len(all)-1]); err != nil {
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
//
// The sequence is for one loop. A second one has no documents: it ends with the error of the first, with another one if the
// first ended early, and at once if the first came to the end of the cursor.
func Values[T any](ctx context.Context, cursor *mongo.Cursor, opts ...Option) iter.Seq2[T, error] {
	if cursor == nil {
		return fail[T](errNilCursor)
	}
	return sequence[T](ctx, cursor, func() bson.Raw { return cursor.Current }, func() decoder { return newDecoder(cursor, opts) })
}

// Changes returns an iterator over the events of stream, each decoded into a new value, from the next one on. It waits for
// events until ctx is done, an error occurs or the server closes the stream, and closes stream when the loop ends.
//
// In the loop, the ResumeToken method of stream returns the token behind the event that the loop has, and not one further
// on: a stream that is resumed from there begins with the next event. After an event that cannot be decoded, the token is
// behind this event.
//
// An error is the last pair of the iterator. Errors are those of the Next, Decode and Err methods of the stream, the error of
// ctx if it is done between two events, and that of a stream or an Option that is nil or of a wrong Option. As that of [Values], the
// sequence is for one loop.
func Changes[T any](ctx context.Context, stream *mongo.ChangeStream, opts ...Option) iter.Seq2[T, error] {
	if stream == nil {
		return fail[T](errNilCursor)
	}
	return sequence[T](ctx, stream, func() bson.Raw { return stream.Current }, func() decoder { return newDecoder(stream, opts) })
}

// source has the methods that a cursor and a change stream share.
type source interface {
	Next(context.Context) bool
	Decode(any) error
	Err() error
	Close(context.Context) error
}

func fail[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}

// sequence iterates over the documents of a source, once.
func sequence[T any](
	ctx context.Context, from source, current func() bson.Raw, newDecoder func() decoder,
) iter.Seq2[T, error] {
	looped, ended := false, errEnded // how the first loop ended
	return func(yield func(T, error) bool) {
		var zero T
		if looped {
			if ended != nil {
				yield(zero, ended)
			}
			return
		}
		looped = true
		defer closeCursor(ctx, from)
		d := newDecoder()
		if ended = d.err; ended != nil {
			yield(zero, ended)
			return
		}
		for next(ctx, from) {
			var v T
			if ended = d.decode(from, current(), &v); ended != nil {
				yield(zero, ended)
				return
			}
			ended = errEnded
			if !yield(v, nil) {
				return
			}
		}
		if ended = failure(ctx, from); ended != nil {
			yield(zero, ended)
		}
	}
}

// next moves from to the next document unless ctx is done.
func next(ctx context.Context, from source) bool {
	return (ctx == nil || ctx.Err() == nil) && from.Next(ctx)
}

// failure returns the error that ended from, nil if it came to its end.
func failure(ctx context.Context, from source) error {
	if err := from.Err(); err != nil {
		return err
	}
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}

// closeCursor closes from on the server even if ctx is done.
func closeCursor(ctx context.Context, from source) {
	if ctx == nil {
		ctx = context.Background()
	}
	_ = from.Close(context.WithoutCancel(ctx))
}

// A decoder decodes the documents of one source.
type decoder struct {
	reg  *bson.Registry      // nil if the source decodes
	opts []bsoncodec.Options // one, or none if it is zero, which is faster
	err  error               // of the Options
}

func (d *decoder) use(reg *bson.Registry, opts bsoncodec.Options) {
	*d = decoder{reg: reg}
	if opts != (bsoncodec.Options{}) {
		d.opts = []bsoncodec.Options{opts}
	}
}

func newDecoder[H inuse.Holder](from *H, opts []Option) decoder {
	var d decoder
	for _, o := range opts {
		if o == nil {
			return decoder{err: errors.New("cursors: an Option is nil")}
		}
		o(&d)
	}
	if d.reg == nil && d.err == nil {
		if reg, o, ok := inuse.Of(from); ok && built.Of(reg) != nil {
			d.use(reg, o)
		}
	}
	return d
}

// decode decodes doc, the current document of from.
func (d *decoder) decode(from source, doc bson.Raw, v any) error {
	if d.reg == nil {
		return from.Decode(v)
	}
	return d.unmarshal(doc, v)
}

func (d *decoder) unmarshal(doc bson.Raw, v any) error {
	return bsoncodec.Unmarshal(d.reg, doc, v, d.opts...)
}
