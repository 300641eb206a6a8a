package cutover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// The limits of a change stream.
const (
	feedLimit   = 30 * time.Second // for reading it once
	feedWait    = 100 * time.Millisecond
	mostChanged = 200_000 // documents; more are found faster by a comparison
)

// feed is the change stream of all collections, at a position.
type feed struct {
	*changes.Stream
	at bson.Raw
}

func (s *Server) endStream() {
	if s.stream != nil {
		s.stream.Close()
		s.stream = nil
	}
}

// follow makes all commands from now on those of one session.
func (s *Server) follow() (err error) {
	if s.session == nil {
		s.session, err = s.DB.Client().StartSession()
	}
	return err
}

// Position implements [Database].
func (s *Server) Position(ctx context.Context) (at bson.Raw, why string, err error) {
	err = s.Patience.Do(ctx, func() error {
		stream, err := changes.Open(ctx, s.DB, []string{record.Name}, changes.Start{}, 1)
		if err != nil {
			return err
		}
		defer stream.Close()
		at = stream.Token()
		return nil
	})
	switch {
	case failure.Means(err, failure.NoStream):
		return nil, "the server has no change streams: " + err.Error(), nil
	case err != nil:
		return nil, "", err
	case at == nil:
		return nil, "the change streams of the server have no postBatchResumeToken", nil
	}
	if err := s.follow(); err != nil {
		return nil, "", err
	}
	stamp, _, err := s.Stamp(ctx)
	if err == nil && stamp.IsZero() {
		return nil, "the server has no operation times", nil
	}
	return at, "", err
}

// Next implements [Database].
func (s *Server) Next(ctx context.Context, c *record.Cutover) (b changes.Batch, err error) {
	if err := s.follow(); err != nil {
		return b, err
	}
	err = s.Patience.Do(ctx, func() error {
		b, err = s.next(ctx, c)
		if err != nil || b.Lost != "" {
			s.endStream()
		}
		return err
	})
	if failure.Means(err, failure.Forgotten) {
		return changes.Batch{Lost: "the change stream cannot be resumed: " + err.Error()}, nil
	}
	if err != nil || b.Time.IsZero() {
		return b, err
	}
	// What is read from now on is not older than these changes.
	return b, s.session.AdvanceOperationTime(&b.Time)
}

func (s *Server) next(ctx context.Context, c *record.Cutover) (changes.Batch, error) {
	if s.stream == nil || !bytes.Equal(s.stream.at, c.Stream.Token) {
		s.endStream()
		names := []string{record.Name}
		for _, x := range c.Collections {
			names = append(names, x.Name, Way{Exchange: &x, Back: c.State == record.Undoing}.Comes())
		}
		stream, err := changes.Open(ctx, s.DB, names, changes.Start{After: c.Stream.Token}, s.Batch)
		if err != nil {
			return changes.Batch{}, err
		}
		s.stream = &feed{stream, c.Stream.Token}
	}
	b, err := s.stream.Next(ctx)
	if err != nil {
		return b, err
	}
	s.stream.at = b.At
	switch {
	case b.End == nil:
	case b.End.NS.Coll == "" || b.End.Type == "dropDatabase":
		b.Lost = "the database was dropped"
	default:
		b.Lost = fmt.Sprintf("%s was renamed, dropped or replaced by another program", b.End.NS.Coll)
	}
	return b, nil
}

// changed are the _ids of documents that may have changed: those of the collection in place, and of the
// other one.
type changed struct{ leading, other []bson.RawValue }

func (c changed) none() bool { return len(c.leading)+len(c.other) == 0 }

// changed returns the documents that changed from w.After, or since it was called last,
// until now, or until the collection in place was renamed away. Only the _ids are used, so that
// an event that is read twice does no harm. why is why they are not known.
func (s *Server) changed(ctx context.Context, w Way, untilRenamed bool) (what changed, why string, err error) {
	if w.After == nil {
		return what, "it is not known from when on they may have changed", nil
	}
	err = s.Patience.Do(ctx, func() error {
		what, why, err = s.read(ctx, w, untilRenamed)
		if err != nil || why != "" {
			s.endFeed(w.Name)
		}
		return err
	})
	var se mongo.ServerError
	if errors.As(err, &se) {
		return changed{}, "the server has no change stream from then on: " + se.Error(), nil
	}
	return what, why, err
}

// feed returns the change stream of a collection and its copy.
func (s *Server) feed(ctx context.Context, w Way) (*changes.Stream, error) {
	if f := s.feeds[w.Name]; f != nil {
		return f, nil
	}
	if err := s.follow(); err != nil {
		return nil, err
	}
	f, err := changes.Open(ctx, s.DB, []string{w.Name, w.Comes()}, changes.Start{After: w.After, Await: feedWait}, s.Batch)
	if err != nil {
		return nil, err
	}
	if s.feeds == nil {
		s.feeds = make(map[string]*changes.Stream)
	}
	s.feeds[w.Name] = f
	return f, nil
}

func (s *Server) endFeed(name string) {
	if f := s.feeds[name]; f != nil {
		f.Close()
		delete(s.feeds, name)
	}
}

func (s *Server) read(ctx context.Context, w Way, untilRenamed bool) (what changed, why string, err error) {
	f, err := s.feed(ctx, w)
	if err != nil {
		return what, "", err
	}
	seen := make(map[string]bool)
	add := func(to *[]bson.RawValue, name string, b changes.Batch) {
		for _, id := range b.IDs[name] {
			if key := name + "\x00" + documents.Key(id); !seen[key] {
				seen[key] = true
				*to = append(*to, id)
			}
		}
	}
	empty := 0 // a first batch may be empty although events follow
	for began := time.Now(); time.Since(began) < feedLimit; {
		b, err := f.Next(ctx)
		if err != nil {
			return what, "", err
		}
		if b.Events == 0 {
			if !untilRenamed && empty > 0 {
				return what, "", nil
			}
			empty++
			continue
		}
		empty = 0
		if err := s.session.AdvanceOperationTime(&b.Time); err != nil {
			return what, "", err
		}
		add(&what.leading, w.Name, b)
		add(&what.other, w.Comes(), b)
		// An earlier rename is one of another attempt.
		if e := b.End; e != nil && e.Type == "rename" && e.NS.Coll == w.Name && e.To.Coll == w.Away() && !w.Left.After(e.Time) {
			return what, "", nil
		}
		if len(seen) > mostChanged {
			return what, fmt.Sprintf("more than %d documents have changed", mostChanged), nil
		}
	}
	if untilRenamed {
		why = "the change stream did not show the rename within " + feedLimit.String()
	}
	return what, why, nil
}
