package convert

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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
	// CopyUUID is the UUID that the server gave the copy, in hexadecimal digits.
	CopyUUID string `json:"copyUUID,omitempty"`
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
	Deleted bool `json:"deleted,omitempty"` // the document was deleted in the source
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

var (
	// errReopen is the error of a stream that must be opened again.
	errReopen = errors.New("the stream must be opened again")
	// errGone is the error of an operation if no collection has the UUID of the source.
	errGone = errors.New("the source does not exist")
	// errMoved is the error of an operation during which the source was renamed.
	errMoved = errors.New("the source was renamed meanwhile; run the same command again")
	// ErrCopyGone is wrapped by the error of a copy that another program renamed or dropped.
	ErrCopyGone = errors.New("was renamed or dropped")
	// ErrSourceDropped is the error of a copy whose source was dropped.
	ErrSourceDropped = errors.New("the source was dropped, and its copy can no longer follow it; the copy was left as it is")
)

// key is the _id of a document that changed in the source.
type key struct {
	id      bson.RawValue
	deleted bool // whether an event says that the document was deleted
}

// beatEvery is the least interval between two beats.
const beatEvery = 500 * time.Millisecond

// follower applies the changes of a source to its copy. It is separate from the copier so that it
// can be tested without a server.
type follower struct {
	at       *StreamPosition
	record   string         // a collection to which beat writes
	goal     bson.Timestamp // caughtUp is called when everything up to this time was applied
	patience *patience.Patience
	clock    func() time.Time

	// open opens a stream behind at, or from now on if at has no token.
	open func(ctx context.Context) (stream, error)
	// begin opens a stream from now on, sets at to its beginning and saves it, if at has no token.
	begin func(ctx context.Context) error
	// compare compares the copy with the source once, and updates it.
	compare func(ctx context.Context) error
	// apply brings the copies of some documents up to date. It returns those for which it could not.
	// The source is read as it was at the time at, or later.
	apply func(ctx context.Context, keys []key, at bson.Timestamp) (failed []key, err error)
	// renamed is called when the source was renamed, before apply is called for what changed
	// before.
	renamed func(ctx context.Context, to string) error
	// now returns the operation time of the deployment.
	now func(ctx context.Context) (bson.Timestamp, error)
	// beat writes to the collection record. Its events show how far the stream has come when the
	// source does not change.
	beat func(ctx context.Context) error
	// save saves at.
	save func() error
	// caughtUp reports whether to stop.
	caughtUp func(ctx context.Context) (bool, error)
	// report is called after events were applied.
	report func(ctx context.Context, events int)
	// restart is called when the token has expired.
	restart func(error)

	beaten time.Time
}

// run compares, if that is necessary, and applies the changes until caughtUp reports true or ctx
// ends. A batch that was begun is completed after the end of ctx.
func (f *follower) run(ctx context.Context) error {
	for {
		if err := f.begin(ctx); err != nil {
			return err
		}
		if !f.at.Compared {
			if err := f.compare(ctx); err != nil {
				return err
			}
		}
		if !f.at.Compared || f.goal.IsZero() {
			now, err := f.now(ctx)
			if err != nil {
				return err
			}
			if now.After(f.goal) {
				f.goal = now
			}
		}
		err := f.read(ctx)
		if !failure.Means(err, failure.Forgotten) {
			return err
		}
		f.restart(err)
		// The next stream begins before the next comparison.
		f.at.Token, f.at.Compared = nil, false
		if err := f.save(); err != nil {
			return err
		}
	}
}

// read applies the changes, and opens the stream again after an error.
func (f *follower) read(ctx context.Context) error {
	streak := f.patience.Streak()
	for {
		err := f.drain(ctx, streak)
		if errors.Is(err, errReopen) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			return nil
		}
		if err := streak.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// drain opens the stream and applies its changes. Changes that it has read and not applied are read
// again from the next stream.
func (f *follower) drain(ctx context.Context, streak *patience.Streak) error {
	s, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	work := context.WithoutCancel(ctx)
	var waiting []key // of a source that was not found
	var missed bson.Timestamp
	for {
		events, token, err := s.Next(ctx)
		if err != nil {
			return err
		}
		batch, err := f.batch(events)
		if err != nil {
			return err
		}
		if batch.renamed != "" {
			if err := f.renamed(work, batch.renamed); err != nil {
				return err
			}
		} else {
			batch.token = token
		}
		keys := distinct(waiting, batch.keys)
		if err := f.write(work, keys, batch, len(events)); errors.Is(err, errGone) {
			// If it was renamed, an event of the stream says so.
			now, err := f.now(work)
			switch {
			case err != nil:
				return err
			case missed.IsZero():
				missed = now
			case batch.time.After(missed):
				return ErrSourceDropped
			}
			waiting = keys
		} else if err != nil {
			return err
		} else {
			waiting, missed = nil, bson.Timestamp{}
			streak.End()
		}
		if batch.renamed != "" {
			return errReopen // for events with the new name
		}
		if waiting == nil && f.at.Time.bson().After(f.goal) {
			if done, err := f.caughtUp(work); done || err != nil {
				return err
			}
		}
		if len(events) == 0 && f.clock().Sub(f.beaten) >= beatEvery {
			f.beaten = f.clock()
			if err := f.beat(work); err != nil {
				return err
			}
		}
	}
}

// sorted is what some events say.
type sorted struct {
	keys    []key
	time    bson.Timestamp // of the last event
	renamed string         // the new name of the source; the events after this one were left out
	token   bson.Raw       // behind these events
}

// batch sorts out the events. The error is ErrSourceDropped if one says so.
func (f *follower) batch(events []changes.Event) (sorted, error) {
	b := sorted{time: f.at.Time.bson()}
	for _, e := range events {
		b.time = e.Time
		switch {
		case e.Type == "invalidate", e.Type == "dropDatabase":
			return b, ErrSourceDropped
		case e.Type == "rename" && e.NS.Coll == f.at.Source && e.To.DB == e.NS.DB:
			b.renamed, b.token = e.To.Coll, e.Token
			return b, nil
		case e.Type == "rename" && (e.NS.Coll == f.at.Source || e.To.Coll == f.at.Source && e.To.DB == e.NS.DB),
			e.Type == "drop" && e.NS.Coll == f.at.Source:
			return b, ErrSourceDropped
		case e.NS.Coll != f.at.Source || e.Key == nil:
			continue
		}
		id, err := e.Key.LookupErr("_id")
		if err != nil {
			return b, fmt.Errorf("an event of type %s has no _id", e.Type)
		}
		b.keys = append(b.keys, key{id, e.Type == "delete"})
	}
	return b, nil
}

// write applies the changes and then saves the position.
func (f *follower) write(ctx context.Context, keys []key, b sorted, events int) error {
	if len(keys) > 0 {
		var pending []key
		for _, p := range f.at.Pending {
			pending = append(pending, key{p.raw(), p.Deleted})
		}
		failed, err := f.apply(ctx, distinct(pending, keys), b.time)
		if err != nil {
			return err
		}
		if len(failed) > maxListed {
			return fmt.Errorf("more than %d documents cannot be copied, because another document has the same value and an index is unique", maxListed)
		}
		f.at.Pending = nil
		for _, k := range failed {
			f.at.Pending = append(f.at.Pending, PendingKey{*newPosition(k.id), k.deleted})
		}
	}
	if events == 0 && bytes.Equal(f.at.Token, b.token) {
		return nil
	}
	f.at.Token, f.at.Time = b.token, Timestamp{b.time.T, b.time.I}
	f.at.Source = cmp.Or(b.renamed, f.at.Source)
	if err := f.save(); err != nil {
		return err
	}
	f.report(ctx, events)
	return nil
}

// distinct returns the keys of all lists, each once.
func distinct(lists ...[]key) []key {
	var out []key
	place := make(map[string]int)
	for _, k := range slices.Concat(lists...) {
		name := documents.Key(k.id)
		if i, ok := place[name]; ok {
			out[i].deleted = out[i].deleted || k.deleted
			continue
		}
		place[name] = len(out)
		out = append(out, k)
	}
	return out
}
