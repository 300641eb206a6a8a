package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// StreamPosition is the position of a copy in the change stream of its source. The copy has every
// change before it, except those of the documents in Pending.
type StreamPosition struct {
	Token  []byte    `json:"token"`  // a resume token, as BSON in base64
	Source string    `json:"source"` // the name that the source has at this position
	Time   Timestamp `json:"time"`   // of the last event before the position
	// Compared is set when all documents were compared with their copies after the stream was
	// opened, and every change until then was applied.
	Compared bool         `json:"compared,omitempty"`
	Pending  []PendingKey `json:"pending,omitempty"`
}

// Timestamp is a time of a deployment: seconds since 1970, and an ordinal within the second.
type Timestamp struct {
	Seconds uint32 `json:"t"`
	Ordinal uint32 `json:"i"`
}

func (t Timestamp) bson() bson.Timestamp { return bson.Timestamp{T: t.Seconds, I: t.Ordinal} }

// PendingKey is the _id of a document of the source whose copy is not up to date, because another
// copy has its value of a unique index.
type PendingKey struct {
	Position
	Copy bool `json:"copy,omitempty"` // the _id is that of the copy, which may have no source
}

func (p *StreamPosition) validate() error {
	if p.Token != nil && bson.Raw(p.Token).Validate() != nil {
		return errors.New("the resume token is not a BSON document")
	}
	for _, k := range p.Pending {
		if k.Type == 0 || k.raw().Validate() != nil {
			return errors.New("a pending _id is not a BSON value")
		}
	}
	return nil
}

// pend sets the pending documents to those that are stuck.
func (p *StreamPosition) pend(stuck []mirror.Finding) error {
	if len(stuck) >= maxListed {
		return fmt.Errorf("%d documents or more cannot be copied, because another document has the same value and an index is unique", maxListed)
	}
	p.Pending = nil
	for _, f := range stuck {
		if f.From.Type != 0 {
			p.Pending = append(p.Pending, PendingKey{*newPosition(f.From), false})
		} else {
			p.Pending = append(p.Pending, PendingKey{*newPosition(f.ID), true})
		}
	}
	return nil
}

var (
	// errGone is the error of an operation if no collection has the UUID of the source.
	errGone = errors.New("the source does not exist")
	// errMoved is the error of an operation during which the source was renamed.
	errMoved = errors.New("the source was renamed meanwhile; run the same command again")
	// ErrSourceDropped is the error of a copy whose source was dropped.
	ErrSourceDropped = errors.New("the source was dropped, and its copy can no longer follow it; the copy was left as it is")
)

// beatEvery is the least interval between two beats.
const beatEvery = 500 * time.Millisecond

// follower is the [mirror.Feed] of a copy, which follows its source also under another name. It is
// separate from the copier so that it can be tested without a server.
type follower struct {
	at       *StreamPosition
	patience *patience.Patience
	clock    func() time.Time

	// open opens a stream behind at.
	open func(ctx context.Context) (stream, error)
	// begin opens a stream from now on, sets at to its beginning and saves it, if at has no token.
	begin func(ctx context.Context) error
	// compare compares the copy with the source once, and updates it.
	compare func(ctx context.Context) error
	// compared is called when the copy was compared, by this run or an earlier one.
	compared func()
	// some brings the copies of the documents with the ids, and the copies that have the other ids, up to
	// date. It returns those for which it could not. The source is read as it was at the time at, or
	// later.
	some func(ctx context.Context, ids, copies []bson.RawValue, at bson.Timestamp) (stuck []mirror.Finding, err error)
	// renamed is called when the source was renamed, before some is called for what changed before.
	renamed func(ctx context.Context, to string) error
	// now returns the operation time of the deployment.
	now func(ctx context.Context) (bson.Timestamp, error)
	// beat writes to a collection that is in the stream, too. Its events show how far the stream has come when the
	// source does not change.
	beat func(ctx context.Context) error
	// save saves at.
	save func() error
	// caughtUp reports whether to stop.
	caughtUp func(ctx context.Context) (bool, error)
	// report is called after events were applied.
	report func(events int)
	// restart is called when the token has expired.
	restart func(error)

	stream stream // nil if it must be opened
	lost   error  // why the token cannot be used
	quiet  bool   // there were no events
	beaten time.Time
	saved  []byte          // the token that was saved last
	wait   []bson.RawValue // documents of a source that was not found
	missed bson.Timestamp  // when it was not found first
}

// run compares, if that is necessary, and applies the changes until caughtUp reports true or ctx
// ends. A batch that was begun is completed after the end of ctx.
func (f *follower) run(ctx context.Context) error {
	defer f.end()
	return mirror.Follow(ctx, f, 0)
}

// Begin implements [mirror.Feed].
func (f *follower) Begin(ctx context.Context) (bool, error) {
	err := f.begin(ctx)
	f.saved = f.at.Token
	return true, err
}

// Compare implements [mirror.Feed].
func (f *follower) Compare(ctx context.Context) error {
	if !f.at.Compared {
		if err := f.compare(ctx); err != nil {
			return err
		}
	}
	f.compared()
	return nil
}

// CaughtUp implements [mirror.Feed].
func (f *follower) CaughtUp(ctx context.Context) (bool, error) {
	return f.caughtUp(context.WithoutCancel(ctx))
}

// Lost implements [mirror.Feed]. The next stream begins before the next comparison.
func (f *follower) Lost(context.Context, string) (bool, error) {
	f.end()
	f.restart(f.lost)
	f.at.Token, f.at.Compared = nil, false
	return true, f.save()
}

func (f *follower) end() {
	if f.stream != nil {
		f.stream.Close()
	}
	f.stream, f.wait, f.missed = nil, nil, bson.Timestamp{}
}

func (f *follower) Now(ctx context.Context) (bson.Timestamp, error) { return f.now(ctx) }

func (f *follower) Save(ctx context.Context) error {
	if !bytes.Equal(f.saved, f.at.Token) {
		if err := f.save(); err != nil {
			return err
		}
		f.saved = f.at.Token
	}
	if !f.quiet || f.clock().Sub(f.beaten) < beatEvery {
		return nil
	}
	f.beaten = f.clock()
	return f.beat(context.WithoutCancel(ctx))
}

func (f *follower) Next(ctx context.Context) (b changes.Batch, err error) {
	err = f.patience.Do(ctx, func() (err error) {
		if f.stream == nil {
			if f.stream, err = f.open(ctx); err != nil {
				f.stream = nil
				return err
			}
		}
		if b, err = f.stream.Next(ctx); err != nil {
			f.end()
		}
		return err
	})
	f.quiet = b.Events == 0
	if failure.Means(err, failure.Forgotten) {
		f.lost = err
		return changes.Batch{Lost: "the change stream cannot be resumed: " + err.Error()}, nil
	}
	return b, err
}

// Apply implements [mirror.Feed]. The error is ErrSourceDropped if the events say so, or if the source is
// not found and the stream has passed that time: if it was renamed, an event of the stream says so.
func (f *follower) Apply(ctx context.Context, b changes.Batch) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	to, err := f.renamedTo(b.End)
	if err == nil && to != "" {
		err = f.renamed(ctx, to)
	}
	if err != nil {
		return false, err
	}
	at := f.at.Time.bson()
	if !b.Time.IsZero() {
		at = b.Time
	}
	ids := append(f.wait, b.IDs[f.at.Source]...)
	if err := f.apply(ctx, ids, at); errors.Is(err, errGone) {
		now, err := f.now(ctx)
		switch {
		case err != nil:
			return false, err
		case f.missed.IsZero():
			f.missed = now
		case at.After(f.missed):
			return false, ErrSourceDropped
		}
		if f.wait = ids; to != "" {
			f.end() // these events are read again
		}
		return false, nil
	} else if err != nil {
		return false, err
	}
	f.wait, f.missed = nil, bson.Timestamp{}
	f.at.Token, f.at.Time = b.At, Timestamp{at.T, at.I}
	if to != "" {
		f.at.Source = to
		f.end() // what follows has the new name
	}
	if b.Events > 0 {
		f.report(b.Events)
	}
	return true, nil
}

// renamedTo returns the new name of the source if the event says that it was renamed.
func (f *follower) renamedTo(e *changes.Event) (to string, err error) {
	switch {
	case e == nil:
		return "", nil
	case e.Type == "invalidate", e.Type == "dropDatabase":
		return "", ErrSourceDropped
	case e.Type == "rename" && e.NS.Coll == f.at.Source && e.To.DB == e.NS.DB:
		return e.To.Coll, nil
	case e.NS.Coll == f.at.Source, e.Type == "rename" && e.To.Coll == f.at.Source:
		return "", ErrSourceDropped
	}
	return "", nil // it is about the record
}

// apply brings the copies of the documents with the ids, and of the pending ones, up to date.
func (f *follower) apply(ctx context.Context, ids []bson.RawValue, at bson.Timestamp) error {
	if len(ids) == 0 {
		return nil
	}
	var copies []bson.RawValue
	for _, p := range f.at.Pending {
		if p.Copy {
			copies = append(copies, p.raw())
		} else {
			ids = append(ids, p.raw())
		}
	}
	stuck, err := f.some(ctx, ids, copies, at)
	if err == nil {
		err = f.at.pend(stuck)
	}
	return err
}
