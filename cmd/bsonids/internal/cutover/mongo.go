package cutover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Server is a [Database] on a server.
type Server struct {
	DB          *mongo.Database
	ID          string                     // of the cutover
	Conversions map[string]rule.Conversion // by the name of the collection
	Batch       int
	Patience    *patience.Patience
	// Timeout limits each command that changes something. Halves is set if the server ends a batch at this
	// limit. Check is called before each; it returns an error if another run has taken over.
	Timeout time.Duration
	Halves  bool
	Check   func(ctx context.Context) error
	// Progress shows that documents of a collection are compared, and returns what to call with the
	// number of documents and at the end.
	Progress func(doing, collection string, total int64) (add func(int), done func())
	Notice   func(text string)

	session *mongo.Session             // of all commands, once a change stream was opened
	stream  *feed                      // of all collections
	feeds   map[string]*changes.Stream // by the name of the collection, while it is renamed
}

// Close ends what the server holds for the cutover.
func (s *Server) Close() {
	s.endStream()
	for name := range s.feeds {
		s.endFeed(name)
	}
	if s.session != nil {
		s.session.EndSession(context.Background())
	}
}

// in returns the context of a command of the session. Each command of it sees what those before it
// have seen and changed, after an election, too.
func (s *Server) in(ctx context.Context) context.Context {
	if s.session == nil {
		return ctx
	}
	return mongo.NewSessionContext(ctx, s.session)
}

// collection returns a collection. With a change stream, its documents are those that a majority has,
// because the stream has no others.
func (s *Server) collection(name string) *mongo.Collection {
	if s.session == nil {
		return s.DB.Collection(name)
	}
	return s.DB.Collection(name, options.Collection().SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()))
}

// begin returns the context of a command that changes something. An interrupt does not end it: the server
// might carry it out nevertheless.
func (s *Server) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.in(ctx)), s.Timeout)
	if err := s.Check(ctx); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, cancel, nil
}

// change runs a command that changes something, and tries it again while the server is lost.
func (s *Server) change(ctx context.Context, f func(ctx context.Context) error) error {
	return s.Patience.Do(ctx, func() error {
		ctx, cancel, err := s.begin(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		return f(ctx)
	})
}

// Save implements [Database].
func (s *Server) Save(ctx context.Context, c *record.Cutover) error {
	return s.change(ctx, func(ctx context.Context) error { return c.Save(ctx, s.DB) })
}

// Look implements [Database]. It drops the collection that a run has left that was killed in
// KeepsIDs.
func (s *Server) Look(ctx context.Context) (map[string]Info, error) {
	all, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range s.probe() {
		if _, ok := all[name]; ok {
			if err := s.drop(ctx, name); err != nil {
				return nil, err
			}
			delete(all, name)
		}
	}
	return all, nil
}

func (s *Server) list(ctx context.Context) (map[string]Info, error) {
	out := make(map[string]Info)
	err := s.Patience.Do(ctx, func() error {
		specs, err := s.DB.ListCollectionSpecifications(s.in(ctx), bson.D{})
		clear(out)
		for _, spec := range specs {
			out[spec.Name] = Info{spec.UUID, guard.SettingsOf(&spec)}
		}
		return err
	})
	return out, err
}

// probe returns the two names of the collection of KeepsIDs. No other cutover has them.
func (s *Server) probe() [2]string {
	sum := sha256.Sum256([]byte(s.ID)) // names of collections are limited in length
	name := "bsonids.probe." + hex.EncodeToString(sum[:12])
	return [2]string{name, name + ".renamed"}
}

func (s *Server) drop(ctx context.Context, name string) error {
	return s.change(ctx, func(ctx context.Context) error { return s.DB.Collection(name).Drop(ctx) })
}

// Set implements [Database].
func (s *Server) Set(ctx context.Context, name string, settings record.Settings) error {
	return s.change(ctx, func(ctx context.Context) error { return guard.Modify(ctx, s.DB.Collection(name), settings) })
}

// Rename implements [Database].
func (s *Server) Rename(ctx context.Context, from, to string) error {
	err := s.change(ctx, func(ctx context.Context) error { return s.rename(ctx, from, to) })
	switch {
	case failure.Means(err, failure.Exists):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case failure.Means(err, failure.Missing):
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
}

func (s *Server) rename(ctx context.Context, from, to string) error {
	name := s.DB.Name() + "."
	return s.DB.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: name + from}, {Key: "to", Value: name + to},
		{Key: "dropTarget", Value: false}, {Key: "maxTimeMS", Value: s.Timeout.Milliseconds()},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}}).Err()
}

// Stamp implements [Database].
func (s *Server) Stamp(ctx context.Context) (stamp bson.Timestamp, now time.Time, err error) {
	err = s.Patience.Do(ctx, func() error {
		reply, err := s.DB.RunCommand(s.in(ctx), bson.D{{Key: "ping", Value: 1}}).Raw()
		if err != nil {
			return err
		}
		stamp = bson.Timestamp{}
		if t, i, ok := reply.Lookup("operationTime").TimestampOK(); ok {
			stamp = bson.Timestamp{T: t, I: i}
		}
		now, err = record.Now(ctx, s.DB)
		return err
	})
	return stamp, now, err
}

// mirror returns the mirror of the collections of a way. away is true if neither is in place.
func (s *Server) mirror(w Way, away bool) *mirror.Mirror {
	old, fresh := w.Kept, w.New
	if !away && w.Back {
		fresh = w.Name
	}
	if !away && !w.Back {
		old = w.Name
	}
	m := &mirror.Mirror{Conversion: s.Conversions[w.Name], Old: s.collection(old), New: s.collection(fresh), Back: w.Back, Write: true,
		Batch: s.Batch, Busy: w.Busy, Bypass: true, Begin: s.begin, Limit: s.Timeout, Halves: s.Halves, Progress: func(int) {}, Patience: s.Patience}
	if !away {
		m.Still = func(ctx context.Context) error { return s.still(ctx, w) }
	}
	return m
}

// still returns an error if another program dropped or renamed the collection in place.
func (s *Server) still(ctx context.Context, w Way) error {
	all, err := s.Look(ctx)
	if err != nil {
		return err
	}
	had := w.OldID
	switch {
	case w.Back && w.Busy:
		had = w.NewID
	case w.Back: // it may have been renamed in, which changes the UUID on some servers
		had = nil
	}
	info, ok := all[w.Name]
	same := ok && (info.ID == nil || had == nil || info.ID.Equal(*had))
	if !same {
		return &failure.Error{Kind: failure.Failed, Err: errLost, Text: fmt.Sprintf("another program dropped or renamed %s.%s while it was compared", s.DB.Name(), w.Name)}
	}
	return nil
}

// Compare implements [Database].
func (s *Server) Compare(ctx context.Context, w Way) (mirror.Result, error) {
	return s.all(ctx, w, s.mirror(w, false), w.Name)
}

func (s *Server) all(ctx context.Context, w Way, p *mirror.Mirror, leading string) (mirror.Result, error) {
	ctx = s.in(ctx)
	var total int64
	err := s.Patience.Do(ctx, func() (err error) {
		if total, err = s.DB.Collection(leading).EstimatedDocumentCount(ctx); err != nil || !w.Busy {
			return err
		}
		others, err := s.DB.Collection(w.Comes()).EstimatedDocumentCount(ctx)
		total += others
		return err
	})
	if err != nil {
		return mirror.Result{}, err
	}
	add, end := s.Progress("comparing", w.Name, total)
	defer end()
	p.Progress = add
	return p.All(ctx)
}

// Some implements [Database].
func (s *Server) Some(ctx context.Context, w Way, ids, others []bson.RawValue) (mirror.Result, error) {
	return s.some(ctx, s.mirror(w, false), changed{ids, others})
}

// Drain implements [Database].
func (s *Server) Drain(ctx context.Context, w Way) (done mirror.Result, err error) {
	what, why, err := s.changed(ctx, w, false)
	if err != nil || why != "" || what.none() {
		return done, err
	}
	done, err = s.some(ctx, s.mirror(w, false), what)
	if err != nil || done.Stays > 0 {
		s.endFeed(w.Name) // CatchUp reads the same events again
	}
	return done, err
}

// CatchUp implements [Database].
func (s *Server) CatchUp(ctx context.Context, w Way) (mirror.Result, error) {
	defer s.endFeed(w.Name)
	what, why, err := s.changed(ctx, w, true)
	if err != nil {
		return mirror.Result{}, err
	}
	p := s.mirror(w, true)
	if why != "" {
		s.Notice(fmt.Sprintf("all documents of %s are compared again between the two renames: %s", w.Name, why))
		return s.untilEqual(ctx, func() (mirror.Result, error) { return s.all(ctx, w, p, w.Away()) })
	}
	return s.untilEqual(ctx, func() (mirror.Result, error) { return s.some(ctx, p, what) })
}

// some compares the documents that changed.
func (s *Server) some(ctx context.Context, p *mirror.Mirror, what changed) (done mirror.Result, err error) {
	err = s.Patience.Do(ctx, func() error {
		more, err := p.Some(s.in(ctx), what.leading, what.other)
		done = done.Then(more)
		return err
	})
	return done, err
}

// untilEqual compares until nothing is changed. A unique value may have moved from one document to
// another that is compared later.
func (s *Server) untilEqual(ctx context.Context, compare func() (mirror.Result, error)) (all mirror.Result, err error) {
	for range maxPasses {
		done, err := compare()
		all = all.Then(done)
		if err != nil || done.Changed() == 0 {
			return all, err
		}
	}
	return all, fmt.Errorf("after %d comparisons, documents still differ, although nobody can write to the collections by their names", maxPasses)
}

// Merge implements [Database].
func (s *Server) Merge(ctx context.Context, w Way, from string) (read, conflicts int64, err error) {
	p := s.mirror(w, true)
	err = s.Patience.Do(ctx, func() error {
		n, skips, err := p.Merge(s.in(ctx), s.collection(from), s.collection(w.Name))
		read, conflicts = n, int64(len(skips))
		for i, skip := range skips {
			if i < 5 && err == nil {
				s.Notice(fmt.Sprintf("the document of %s with _id %s was not inserted into %s: %s", from, skip.ID, w.Name, skip.Reason))
			}
		}
		return err
	})
	return read, conflicts, err
}

// KeepsIDs implements [Database]. It renames a collection of its own.
func (s *Server) KeepsIDs(ctx context.Context) (keeps bool, err error) {
	names := s.probe()
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, s.drop(ctx, names[0]), s.drop(ctx, names[1]))
	}()
	if err := s.change(ctx, func(ctx context.Context) error { return s.DB.CreateCollection(ctx, names[0]) }); err != nil {
		return false, err
	}
	before, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	if err := s.Rename(ctx, names[0], names[1]); err != nil {
		return false, err
	}
	after, err := s.list(ctx)
	if err != nil {
		return false, err
	}
	a, b := before[names[0]].ID, after[names[1]].ID
	return a != nil && b != nil && a.Equal(*b), nil
}
