package convert

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Copied describes what a conversion into a new collection did.
type Copied struct {
	Read      int64 `json:"documentsRead"`
	Documents int64 `json:"documentsCopied"`
	Values    int64 `json:"valuesChanged"`
	// Earlier counts the documents that earlier runs copied, and EarlierValues their converted values.
	Earlier       int64      `json:"documentsCopiedEarlier,omitempty"`
	EarlierValues int64      `json:"valuesChangedEarlier,omitempty"`
	Fields        rule.Tally `json:"fields"`
	Indexes       []string   `json:"indexes"`
	// Conflicts are the documents whose converted _id or unique key another document of the new
	// collection has. Proof has them once the conversion is complete.
	Conflicts []Skip `json:"conflicts,omitempty"`
	// Followed counts the documents that changed in the source during the copy and were updated in
	// the new collection.
	Followed int64 `json:"documentsFollowed"`
	Passes   int   `json:"passes"`
	// Skipped counts the documents with values that are left unchanged in the copy too, and Left
	// counts these values.
	Skipped    int64      `json:"documentsSkipped"`
	Left       int64      `json:"valuesSkipped"`
	SkippedFor rule.Tally `json:"skippedFor,omitempty"` // the values of rule.Left by reason
	// Stream is nil if the copy did not follow its source.
	Stream   *Followed `json:"stream,omitempty"`
	Verified bool      `json:"verified"`
	Proof    Verified  `json:"proof"`
	// Own is true if the new collection was empty when the conversion began.
	Own bool `json:"-"`
}

// copier converts into another collection.
type copier struct {
	Options
	m       *mirror.Mirror
	tracker *tracker
	before  counts // by earlier runs
	// own has the documents of the new collection that this run wrote, or found equal to the converted
	// source. Others that have no source are left.
	own *hashset.Set
	met Verified // what the current comparison has met
	// session orders reads of the source after the events that they are about. It is nil unless the
	// copy follows its source.
	session *mongo.Session
	// there has the source, and the new collection once it exists, unless the copy follows its source.
	there *presence
	mu    sync.Mutex
	res   Copied
}

// Into writes converted copies of all documents of source into target, with the options and the
// indexes of source. It then compares the two collections until they agree, and only then sets
// Copied.Verified. The source is not changed. No other program may write to the target until Into
// returns. With Options.Follow, Into then applies to the target what changes in the source, until
// ctx ends.
func Into(ctx context.Context, source, target *mongo.Collection, o Options) (Copied, error) {
	c := newCopier(source, target, o)
	if c.Follow != nil {
		end, err := c.setUpFollowing(ctx)
		if err != nil {
			return c.res, err
		}
		defer end()
	}
	var indexes []bson.Raw
	var create bson.D
	err := c.Patience.Do(ctx, func() (err error) {
		c.res.Indexes = []string{}
		indexes, create, err = c.describe(ctx)
		return err
	})
	if err != nil {
		return c.res, err
	}
	c.own = hashset.New()
	state := c.State
	c.before = counts{state.Changed, state.Values, state.Skipped}
	c.res.Earlier, c.res.EarlierValues = state.Changed, state.Values
	if state.Copied {
		// A run that was killed may have listed values after it saved its state for the last time.
		listed, err := c.SkipList.documents()
		if err != nil {
			return c.res, err
		}
		c.before.skipped = max(c.before.skipped, listed)
	}
	c.report()
	var f *follower
	if c.Follow != nil {
		// The stream is opened before the first document is read.
		f = c.follower()
		if err := f.begin(ctx); err != nil {
			return c.res, err
		}
	}
	if !state.Created {
		if err := c.Patience.Do(ctx, func() error { return c.mayCreate(ctx) }); err != nil {
			return c.res, err
		}
		// The state is saved first. After a crash in between, it shows that the collection belongs
		// to this conversion.
		state.Created = true
		if err := state.Save(); err != nil {
			return c.res, err
		}
	}
	c.res.Own = true
	if f != nil && state.Stream.CopyUUID != "" {
		if err := c.Patience.Do(ctx, func() error { return c.bindCopy(ctx) }); err != nil {
			return c.res, err
		}
	}
	if err := c.Patience.Do(ctx, func() error { return c.create(ctx, create) }); err != nil {
		return c.res, err
	}
	if f != nil {
		if err := c.Patience.Do(ctx, func() error { return c.bindCopy(ctx) }); err != nil {
			return c.res, err
		}
	} else if err := c.there.bind(ctx, target); err != nil {
		return c.res, err
	}
	if !state.Copied {
		err := c.copy(ctx)
		if c.Follow == nil {
			err = c.there.after(ctx, err)
		} else if err == nil {
			err = c.Patience.Do(ctx, func() error { return c.still(ctx) })
		}
		c.reached(c.tracker.checkpoint(func() int64 { return 0 }))
		state.Copied = err == nil && c.SkipList.Err() == nil
		if err = errors.Join(err, state.Save()); err != nil {
			return c.res, err
		}
	}
	if c.Part.First() { // also if an earlier run did: somebody may have dropped the copy since
		index := func() error { return c.index(ctx, indexes) }
		err := c.Patience.Do(ctx, index)
		if mongo.IsDuplicateKeyError(err) {
			// A unique value may have moved from one document to another since the first was
			// copied.
			if _, err := c.repair(ctx); err != nil {
				return c.res, err
			}
			err = c.Patience.Do(ctx, index)
		}
		if err != nil {
			return c.res, err
		}
	}
	if f != nil {
		err := c.keepUp(ctx, f)
		return c.res, err
	}
	if err := c.settle(ctx); err != nil {
		return c.res, err
	}
	if err := c.SkipList.Sync(); err != nil {
		return c.res, err
	}
	// The proof has the remaining conflicts. The others may have been out-of-date copies of an
	// earlier run.
	c.res.Conflicts = nil
	if !c.res.Verified {
		return c.res, nil
	}
	state.Done, state.Skipped = true, c.before.skipped+c.res.Skipped
	return c.res, state.Save()
}

func newCopier(source, target *mongo.Collection, o Options) *copier {
	o.setUp()
	there := &presence{patience: o.Patience, now: time.Now}
	there.add(source, o.UUID)
	c := &copier{Options: o, tracker: newTracker(), there: there, res: Copied{Fields: rule.Tally{}, Indexes: []string{}, SkippedFor: rule.Tally{}}}
	c.m = &mirror.Mirror{Conversion: o.Conversion, Old: source, New: target, Write: true, Batch: o.Pace.Batch(o.Batch), Busy: o.Follow != nil, Despite: o.Follow != nil,
		Keeps: func(doc bson.Raw) bool { return !c.own.Has(doc) },
		// An interrupt does not end a batch.
		Begin: func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			return o.mayBegin(context.WithoutCancel(ctx))
		},
		Limit: o.BatchTimeout, Halves: o.Halves, Still: c.still, Leaves: c.leave, Wrote: c.wrote, Met: c.meet}
	if !o.Part.Whole() {
		c.m.Has = o.Part.Has
	}
	return c
}

// MayCopy returns an error if the target of a conversion that begins has documents, unless other parts of
// it may have written them, which Into finds out.
func MayCopy(ctx context.Context, source, target *mongo.Collection, o Options) error {
	if !o.Part.Whole() || o.State.Created {
		return nil
	}
	return newCopier(source, target, o).mayCreate(ctx)
}

// wrote notes a document that was written to the new collection.
func (c *copier) wrote(doc bson.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own.Add(doc)
}

// meet notes a document of the new collection that is as it should be.
func (c *copier) meet(doc bson.Raw) error {
	c.own.Add(doc)
	return c.met.values(doc, c.Conversion, nil)
}

// leave lists the values that the copies will have unchanged, before these are written: a run that is
// killed in between finds nothing to write the next time, and so nothing to list.
func (c *copier) leave(left []mirror.Left) error {
	c.mu.Lock()
	for _, l := range left {
		c.note(l)
	}
	c.mu.Unlock()
	return c.SkipList.Sync()
}

// note counts and lists the unchanged values of one document. The caller holds c.mu.
func (c *copier) note(l mirror.Left) {
	c.SkipList.add(l.ID, l.Values)
	c.res.Skipped++
	for _, v := range l.Values {
		c.res.Left++
		c.res.SkippedFor.Add(v.Reason, 1)
	}
}

// writeConcern is the write concern of the commands that create collections and indexes.
var writeConcern = bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}

// describe returns the indexes of the source, except the one on _id, and the command that creates a
// collection with the options of the source.
func (c *copier) describe(ctx context.Context) (indexes []bson.Raw, create bson.D, err error) {
	db := c.m.Old.Database()
	cur, err := db.ListCollections(ctx, bson.D{{Key: "name", Value: c.m.Old.Name()}})
	if err != nil {
		return nil, nil, err
	}
	var infos []struct {
		Type    string
		Options bson.D
	}
	if err := cur.All(ctx, &infos); err != nil {
		return nil, nil, err
	}
	if len(infos) == 0 {
		return nil, nil, fmt.Errorf("collection %s.%s does not exist", db.Name(), c.m.Old.Name())
	}
	if t := infos[0].Type; t != "" && t != "collection" {
		return nil, nil, fmt.Errorf("cannot copy %s.%s, because it is a %s", db.Name(), c.m.Old.Name(), t)
	}
	create = bson.D{{Key: "create", Value: c.m.New.Name()}}
	for _, o := range infos[0].Options {
		switch o.Key {
		case "encryptedFields":
			return nil, nil, errors.New("cannot copy a collection with queryable encryption")
		case "uuid", "autoIndexId":
		default:
			create = append(create, o)
		}
	}
	if indexes, err = Indexes(ctx, c.m.Old); err != nil {
		return nil, nil, err
	}
	for _, i := range indexes {
		name, _ := i.Lookup("name").StringValueOK()
		c.res.Indexes = append(c.res.Indexes, name)
	}
	return indexes, create, nil
}

// mayCreate returns an error if the target has documents, unless other parts of the conversion
// wrote them.
func (c *copier) mayCreate(ctx context.Context) error {
	cur, err := c.m.New.Find(ctx, bson.D{}, options.Find().SetLimit(100))
	if err != nil {
		return err
	}
	var there []bson.Raw
	if err := cur.All(ctx, &there); err != nil {
		return err
	}
	switch {
	case len(there) == 0:
		return nil
	case c.Part.Whole():
		return fmt.Errorf("collection %s is not empty; use a new collection, or the state file of the run that wrote to it", c.m.New.Name())
	}
	// The comparison replaces documents that differ from their source. The documents of another
	// collection must therefore not be taken for those of other parts. Some copies may differ
	// because their sources have changed since.
	ids := make([]bson.RawValue, len(there))
	for i, doc := range there {
		ids[i] = doc.Lookup("_id")
	}
	look := *c.m
	look.Write, look.Met, look.Has = false, nil, nil
	r, err := look.Some(ctx, nil, ids)
	if err == nil && 2*int(r.Equal) <= len(there) {
		err = fmt.Errorf("collection %s has documents that are not converted copies of documents of %s; use a new collection", c.m.New.Name(), c.m.Old.Name())
	}
	return err
}

// create creates the new collection, unless another part of the conversion has.
func (c *copier) create(ctx context.Context, cmd bson.D) error {
	err := c.m.New.Database().RunCommand(ctx, append(cmd, writeConcern)).Err()
	if failure.Means(err, failure.Exists) { // empty, possibly sharded in advance
		return nil
	}
	return err
}
