package cutover

import (
	"bytes"
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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// nudgeLimit is the time limit of nudge.
const nudgeLimit = 5 * time.Second

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
	Router  bool // it may go on with a command that it has ended at its limit
	Check   func(ctx context.Context) error
	// Aside keeps a document that was inserted or changed in the new collection of a name. It may be nil.
	Aside func(name string, doc bson.Raw) error
	// Progress shows that documents of a collection are compared, and returns what to call with the
	// number of documents and at the end.
	Progress func(doing, collection string, total int64) (add func(int), done func())
	Notice   func(text string)

	session *mongo.Session // of all commands, once a change stream was opened
	stream  *streamAt
	nudged  bson.Timestamp                             // what all shards have got to
	indexes map[string]*mirror.Index                   // by the name of the collection
	held    map[string]*bson.Binary                    // UUIDs of the new collections in place, when they were compared first
	sleep   func(context.Context, time.Duration) error // patience.Sleep if nil
}

// Close ends what the server holds for the cutover.
func (s *Server) Close() {
	s.endStream()
	if s.session != nil {
		s.session.EndSession(context.Background())
	}
	for _, x := range s.indexes {
		_ = x.Close()
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
	specs, err := patience.Ask(ctx, s.Patience, func() ([]mongo.CollectionSpecification, error) {
		return s.DB.ListCollectionSpecifications(s.in(ctx), bson.D{})
	})
	out := make(map[string]Info)
	for _, spec := range specs {
		out[spec.Name] = Info{spec.UUID, server.SettingsOf(&spec), s.Router}
	}
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
func (s *Server) Set(ctx context.Context, name string, settings server.Settings) error {
	coll := s.DB.Collection(name)
	err := s.alter(ctx, name, func(ctx context.Context) error { return server.SetSettings(ctx, coll, settings) }, func(all map[string]Info) bool {
		is, ok := all[name]
		return ok && is.Settings.Equal(settings)
	})
	if err != nil {
		return err
	}
	return s.Patience.Do(ctx, func() error { return server.CheckSettings(s.in(ctx), coll, settings) })
}

// Rename implements [Database].
func (s *Server) Rename(ctx context.Context, from, to string) error {
	db := s.DB.Name() + "."
	command := bson.D{{Key: "renameCollection", Value: db + from}, {Key: "to", Value: db + to}, {Key: "dropTarget", Value: false},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}}
	err := s.alter(ctx, from, func(ctx context.Context) error { return s.DB.Client().Database("admin").RunCommand(ctx, command).Err() },
		func(all map[string]Info) bool {
			_, before := all[from]
			_, after := all[to]
			return after && !before
		})
	switch {
	case failure.Means(err, failure.Exists):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case failure.Means(err, failure.Missing):
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return err
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

// streamAt is the change stream of all collections, at a position.
type streamAt struct {
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
		at, err = changes.Now(ctx, s.DB, record.Name)
		return err
	})
	var none *changes.NoneError
	if errors.As(err, &none) {
		return nil, none.Why, nil
	}
	if err != nil {
		return nil, "", err
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
		if err != nil {
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
			names = append(names, x.Name, x.New, x.Kept)
		}
		stream, err := changes.Open(ctx, s.DB, names, c.Stream.Token, s.Batch)
		if err != nil {
			return changes.Batch{}, err
		}
		s.stream = &streamAt{stream, c.Stream.Token}
	}
	s.nudge(ctx)
	b, err := s.stream.Next(ctx)
	if err != nil {
		return b, err
	}
	s.stream.at = b.At
	return b, nil
}

// nudge makes all shards of a cluster write something that is not older than what this session has written. A change
// stream of a router has the events of all shards in their order, and shows none before each shard has got to its time, which
// one without writes does only every ten seconds. A shard that lags writes a no-op for a read that must see what a session has
// seen, and to open a change stream is such a read, of all shards. It changes no result: an error is ignored.
func (s *Server) nudge(ctx context.Context) {
	at := s.session.OperationTime()
	if !s.Router || at == nil || at.Equal(s.nudged) {
		return
	}
	s.nudged = *at
	ctx, cancel := context.WithTimeout(s.in(ctx), nudgeLimit)
	defer cancel()
	if all, err := changes.Open(ctx, s.DB, []string{record.Name}, nil, 1); err == nil {
		all.Close()
	}
}

// mirror returns the mirror of the collections of a way.
func (s *Server) mirror(ctx context.Context, w Way) (*mirror.Mirror, error) {
	if s.indexes == nil {
		s.indexes, s.held = make(map[string]*mirror.Index), make(map[string]*bson.Binary)
	}
	if s.indexes[w.Name] == nil {
		s.indexes[w.Name] = new(mirror.Index)
	}
	m := &mirror.Mirror{Conversion: s.Conversions[w.Name], Old: s.collection(w.Leads()), New: s.collection(w.Comes()), Index: s.indexes[w.Name],
		Back: w.Back, Write: !w.Dry, Batch: s.Batch, Busy: w.Busy, Bypass: true, Begin: s.begin, Limit: s.Timeout, Halves: s.Halves,
		Progress: func(int) {}, Patience: s.Patience}
	if !w.Renamed {
		m.Still = func(ctx context.Context) error { return s.still(ctx, w) }
	}
	if !w.Back {
		return m, nil
	}
	m.Old, m.New = m.New, m.Old
	if s.Aside != nil {
		m.Aside = func(doc bson.Raw) error { return s.Aside(w.Name, doc) }
	}
	if _, ok := s.held[w.Name]; !ok && !w.Renamed {
		all, err := s.Look(ctx)
		if err != nil {
			return nil, err
		}
		s.held[w.Name] = all[w.Name].ID
	}
	return m, nil
}

// still returns an error if another program dropped or renamed the collection in place.
func (s *Server) still(ctx context.Context, w Way) error {
	all, err := s.Look(ctx)
	if err != nil {
		return err
	}
	had := w.OldID
	if w.Back { // it may have been renamed in, which changes the UUID on some servers
		had = s.held[w.Name]
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
	ctx = s.in(ctx)
	var total int64
	err := s.Patience.Do(ctx, func() (err error) {
		if total, err = s.DB.Collection(w.Leads()).EstimatedDocumentCount(ctx); s.Conversions[w.Name].ReachesID() {
			total *= 2 // their _ids are read first
		}
		if err != nil || !w.Busy {
			return err
		}
		others, err := s.DB.Collection(w.Comes()).EstimatedDocumentCount(ctx)
		total += others
		return err
	})
	if err != nil {
		return mirror.Result{}, err
	}
	m, err := s.mirror(ctx, w)
	if err != nil {
		return mirror.Result{}, err
	}
	add, end := s.Progress("comparing", w.Name, total)
	defer end()
	m.Progress = add
	return m.All(ctx)
}

// Index implements [Database].
func (s *Server) Index(ctx context.Context, w Way) error {
	m, err := s.mirror(ctx, w)
	if err != nil {
		return err
	}
	end := func() {}
	defer func() { end() }()
	m.Progress = func(n int) { // only if there is something to read
		m.Progress, end = s.Progress("reading the _ids of", w.Name, -1)
		m.Progress(n)
	}
	return m.Fill(s.in(ctx))
}

// Some implements [Database].
func (s *Server) Some(ctx context.Context, w Way, ids, others []bson.RawValue) (done mirror.Result, err error) {
	m, err := s.mirror(ctx, w)
	if err != nil {
		return done, err
	}
	if w.Back { // the new one leads
		ids, others = others, ids
	}
	err = s.Patience.Do(ctx, func() error {
		more, err := m.Some(s.in(ctx), ids, others)
		done = done.Then(more)
		return err
	})
	return done, err
}

// Merge implements [Database].
func (s *Server) Merge(ctx context.Context, w Way, from, to string) (read, conflicts int64, err error) {
	m, err := s.mirror(ctx, w)
	if err != nil {
		return 0, 0, err
	}
	err = s.Patience.Do(ctx, func() error {
		n, skips, err := m.Merge(s.in(ctx), s.collection(from), s.collection(to), to == w.Name && !w.Back)
		read, conflicts = n, int64(len(skips))
		for i, skip := range skips {
			if i < 5 && err == nil && to == w.Name {
				s.Notice(fmt.Sprintf("the document of %s with _id %s was not inserted into %s: %s", from, skip.ID, to, skip.Reason))
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
