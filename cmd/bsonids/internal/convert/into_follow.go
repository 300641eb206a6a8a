package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Follow has the options of a copy that follows its source by a change stream. Options.State is
// required, and must have the UUID of the source.
type Follow struct {
	// Beat writes to Record, a collection of the same database. If the source does not change, the
	// events of these writes show how far the stream has come.
	Record string
	Beat   func(ctx context.Context) error
	// Compared is called when all documents were copied and compared. From then on, the copy only follows.
	Compared func()
	// CaughtUp is called each time the copy has caught up with its source, and reports whether to end.
	CaughtUp func() bool
	// Report is called after each batch of changes, and at least every few seconds. It may be nil.
	Report func(Followed)
	// Restarted is called when the changes behind the saved position are no longer available, so that
	// the comparison begins again. It may be nil.
	Restarted func(error)
}

// Followed describes how a copy followed its source.
type Followed struct {
	Events  int64 `json:"events"`           // of the source and of the record of conversions
	Written int64 `json:"documentsWritten"` // inserted into the copy or replaced there
	Deleted int64 `json:"documentsDeleted"` // deleted in the copy
	record.Stream
	Restarts int64 `json:"comparisonsRepeated"`
}

// operationTime returns the operation time of the deployment: everything that was acknowledged before
// the call has an earlier time, or this one.
func operationTime(ctx context.Context, client *mongo.Client, s *mongo.Session) (bson.Timestamp, error) {
	err := client.Database("admin").RunCommand(mongo.NewSessionContext(ctx, s), bson.D{{Key: "ping", Value: 1}}, options.RunCmd().SetReadPreference(readpref.Primary())).Err()
	if err != nil {
		return bson.Timestamp{}, err
	}
	if t := s.OperationTime(); t != nil {
		return *t, nil
	}
	return bson.Timestamp{}, fmt.Errorf("%w: it does not tell its operation time", ErrCannotFollow)
}

// setUpFollowing prepares the collections. end must be called at the end.
func (c *copier) setUpFollowing(ctx context.Context) (end func(), err error) {
	if c.State.CollectionUUID == "" {
		return nil, fmt.Errorf("%w: the state has no UUID of the collection", ErrCannotFollow)
	}
	c.res.Stream = &Followed{}
	c.m.Old = c.current(c.m.Old.Name())
	c.m.New = c.m.New.Clone(options.Collection().SetWriteConcern(writeconcern.Majority()).SetReadPreference(readpref.Primary()))
	if c.session, err = c.m.Old.Database().Client().StartSession(); err != nil {
		return nil, err
	}
	return func() { c.session.EndSession(context.WithoutCancel(ctx)) }, nil
}

// current returns the source under a name. Its documents are those that a majority has, because the
// change stream has no others either.
func (c *copier) current(name string) *mongo.Collection {
	return c.m.Old.Database().Collection(name, options.Collection().SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()))
}

// locate sets the source to the name that it has now. The error is errGone if it has none.
func (c *copier) locate(ctx context.Context) error {
	name, err := c.nameOfSource(ctx)
	if err == nil && name != c.m.Old.Name() {
		c.m.Old = c.current(name)
	}
	return err
}

// still returns errMoved if the source has another name than the one by which it was read: it may
// have been renamed before or while it was read. It returns another error if the copy was renamed or
// dropped, because a write would create it again. A copy that does not follow is of one collection with
// one name: the error is then a *LostError.
func (c *copier) still(ctx context.Context) error {
	if c.Follow == nil {
		return c.there.check(ctx)
	}
	name, err := c.nameOfSource(ctx)
	if err == nil && name != c.m.Old.Name() {
		err = errMoved
	}
	if err == nil && c.State.CopyUUID != "" {
		err = c.bindCopy(ctx)
	}
	return err
}

func (c *copier) nameOfSource(ctx context.Context) (string, error) {
	name, err := CollectionWith(ctx, c.m.Old.Database(), c.State.CollectionUUID)
	if err == nil && name == "" {
		err = errGone
	}
	return name, err
}

// bindCopy returns an error if the target is not the collection that this conversion made.
func (c *copier) bindCopy(ctx context.Context) error {
	is, err := uuidOf(ctx, c.m.New)
	if err == nil && is != c.State.CopyUUID {
		err = c.State.fail(fmt.Errorf("the collection %s that it is about was renamed or dropped", c.m.New.Name()))
	}
	return err
}

// follower returns a follower of the source that catches up until to, or until the time when it
// begins if that is zero.
func (c *copier) follower() *follower {
	state := c.State
	if state.Stream == nil {
		state.Stream = &StreamPosition{}
	}
	db := c.m.Old.Database()
	var extra []mirror.Finding // copies that had no source when they were compared
	f := &follower{at: state.Stream, patience: c.Patience, clock: time.Now}
	f.open = func(ctx context.Context) (stream, error) {
		return changes.Open(ctx, db, []string{f.at.Source, c.Follow.Record}, bson.Raw(f.at.Token), c.Batch)
	}
	f.begin = func(ctx context.Context) error {
		if f.at.Token != nil {
			return nil
		}
		return c.Patience.Do(ctx, func() error { return c.beginStream(ctx, f.at, c.Follow.Record) })
	}
	f.now = func(ctx context.Context) (bson.Timestamp, error) {
		return patience.Ask(ctx, c.Patience, func() (bson.Timestamp, error) { return operationTime(ctx, db.Client(), c.session) })
	}
	f.beat = func(ctx context.Context) error {
		if c.Check != nil {
			if err := c.Check(ctx, 0); err != nil {
				return err
			}
		}
		if err := c.Patience.Do(ctx, func() error { return c.bindCopy(ctx) }); err != nil {
			return err
		}
		if err := c.Follow.Beat(mongo.NewSessionContext(ctx, c.session)); err != nil {
			return err
		}
		c.reportStream(f, 0)
		return nil
	}
	f.save = func() error {
		state.Skipped = c.res.All().Skipped
		c.report()
		return state.Save()
	}
	f.compare = func(ctx context.Context) (err error) {
		extra, err = c.compareOnce(mongo.NewSessionContext(ctx, c.session), f)
		return err
	}
	f.some = func(ctx context.Context, ids, copies []bson.RawValue, at bson.Timestamp) ([]mirror.Finding, error) {
		if err := c.Pace.Wait(ctx, min(len(ids)+len(copies), c.Batch)); err != nil {
			return nil, err
		}
		if err := c.session.AdvanceOperationTime(&at); err != nil {
			return nil, err
		}
		return c.some(mongo.NewSessionContext(ctx, c.session), ids, copies)
	}
	f.compared = c.Follow.Compared
	f.renamed = func(ctx context.Context, to string) error {
		return c.Patience.Do(ctx, func() error { return c.renamed(ctx, to) })
	}
	f.report = func(events int) { c.reportStream(f, events) }
	f.restart = func(err error) {
		c.res.Stream.Restarts++
		if c.Follow.Restarted != nil {
			c.Follow.Restarted(err)
		}
	}
	f.caughtUp = func(ctx context.Context) (bool, error) {
		if !f.at.Compared {
			if err := c.unsourced(mongo.NewSessionContext(ctx, c.session), extra); err != nil {
				return false, err
			}
			extra = nil
			f.at.Compared = true
			if err := f.save(); err != nil {
				return false, err
			}
		}
		if !c.res.Stream.CaughtUp {
			if err := c.Patience.Do(ctx, func() error { return c.bindCopy(ctx) }); err != nil {
				return false, err
			}
			c.res.Stream.CaughtUp = true
			c.reportStream(f, 0)
		}
		return c.Follow.CaughtUp(), nil
	}
	return f
}

// beginStream opens a new stream and saves the position of its beginning.
func (c *copier) beginStream(ctx context.Context, at *StreamPosition, record string) error {
	if err := c.locate(ctx); err != nil {
		return gone(err)
	}
	now, err := operationTime(ctx, c.m.Old.Database().Client(), c.session)
	if err != nil {
		return err
	}
	token, err := changes.Now(ctx, c.m.Old.Database(), record)
	if err != nil {
		return cannot(err)
	}
	at.Token = token
	// A source that was renamed meanwhile is in the stream under its new name.
	if err := c.still(ctx); err != nil {
		at.Token = nil
		return gone(err)
	}
	at.Source, at.Time, at.Compared = c.m.Old.Name(), Timestamp{now.T, now.I}, false
	return c.State.Save()
}

// gone returns ErrSourceDropped instead of errGone.
func gone(err error) error {
	if errors.Is(err, errGone) {
		return ErrSourceDropped
	}
	return err
}

// some brings copies up to date. Those that have no source any more are deleted.
func (c *copier) some(ctx context.Context, ids, copies []bson.RawValue) (stuck []mirror.Finding, err error) {
	m := *c.m
	m.Keeps = nil
	err = c.Patience.Do(ctx, func() error {
		for {
			if err := c.locate(ctx); err != nil {
				return err
			}
			m.Old = c.m.Old
			r, err := m.Some(ctx, ids, copies)
			c.res.Stream.Written += r.Inserted + r.Replaced
			c.res.Stream.Deleted += r.Deleted
			if stuck = r.Stuck; err == nil {
				err = refusal(r)
			}
			if !errors.Is(err, errMoved) {
				return err
			}
		}
	})
	return stuck, err
}

// compareOnce compares the two collections, updates the copy, and returns the copies that have no source.
// The stream tells of those whose sources were deleted since it began.
func (c *copier) compareOnce(ctx context.Context, f *follower) ([]mirror.Finding, error) {
	for {
		if err := c.Patience.Do(ctx, func() error { return c.locate(ctx) }); err != nil {
			return nil, gone(err)
		}
		r, err := c.repair(ctx)
		if err == nil {
			err = c.Patience.Do(ctx, func() error { return c.still(ctx) })
		}
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, gone(err)
		}
		c.res.Proof.Wrong = 0
		c.res.Proof.forget(r.Stuck)
		c.own = nil // the events tell what else to delete
		return r.Found, f.at.pend(r.Stuck)
	}
}

// renamed is called when an event says that the source was renamed. A server that gives a renamed
// collection a new UUID is not MongoDB; the event then tells which one it is.
func (c *copier) renamed(ctx context.Context, to string) error {
	_, err := c.nameOfSource(ctx)
	if !errors.Is(err, errGone) {
		return err
	}
	uuid, err := uuidOf(ctx, c.current(to))
	if err == nil && uuid != "" {
		c.State.CollectionUUID = uuid
		err = c.State.Save()
	}
	return err
}

// unsourced reports those of the copies that still have no source when the stream has told of every
// deletion. Another program may have written them.
func (c *copier) unsourced(ctx context.Context, copies []mirror.Finding) error {
	v := &c.res.Proof
	v.Extra -= int64(len(copies))
	v.forget(copies)
	m := *c.m
	m.Keeps = func(bson.Raw) bool { return true }
	for chunk := range slices.Chunk(copies, c.Batch) {
		ids := documents.IDs(chunk, func(f mirror.Finding) bson.RawValue { return f.ID })
		r, err := m.Some(ctx, nil, ids)
		if err != nil {
			return err
		}
		v.Extra += r.Extra
		v.add(r.Found)
	}
	return nil
}

// forget removes the findings about documents.
func (v *Verified) forget(about []mirror.Finding) {
	ids := make(map[string]bool, len(about))
	for _, f := range about {
		ids[documents.Key(f.ID)] = true
	}
	v.Skips = slices.DeleteFunc(v.Skips, func(s Skip) bool { return ids[documents.Key(s.ID)] })
}

// add adds findings.
func (v *Verified) add(found []mirror.Finding) {
	for _, f := range found {
		v.find(f.ID, "%s", f.Reason)
	}
}

// keepUp follows the source and sets the result.
func (c *copier) keepUp(ctx context.Context, f *follower) error {
	c.res.Conflicts = nil // the follower applies them again
	err := f.run(ctx)
	s := c.res.Stream
	s.Pending = len(f.at.Pending)
	for _, k := range f.at.Pending {
		c.res.Proof.find(k.raw(), "%s", "the copy differs: another copy has the same _id or the same value of a unique index, or the server sets an empty timestamp")
	}
	c.res.Verified = s.CaughtUp && s.Pending == 0 && c.res.Proof.Wrong == 0 && c.res.Proof.Extra == 0
	return err
}

func (c *copier) reportStream(f *follower, events int) {
	s := c.res.Stream
	s.Events += int64(events)
	s.Pending = len(f.at.Pending)
	if now := c.session.OperationTime(); now != nil {
		s.LagSeconds = max(0, int64(now.T)-int64(f.at.Time.Seconds))
	}
	if c.Follow.Report != nil {
		c.Follow.Report(*s)
	}
}
