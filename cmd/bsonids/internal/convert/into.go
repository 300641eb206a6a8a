package convert

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// copier converts into another collection.
type copier struct {
	*run
	m *mirror.Mirror
	// own has the documents of the new collection that this run wrote, or found equal to the converted
	// source. Others that have no source are left.
	own    *hashset.Set
	met    Verified // what the current comparison has met
	values *counter // of met
}

// Into writes converted copies of all documents of source into target, with the options and the
// indexes of source. It then compares the two collections until they agree, and only then sets
// Result.Verified. The source is not changed. No other program may write to the target until Into
// returns.
func Into(ctx context.Context, source, target *mongo.Collection, o Options) (Result, error) {
	c := newCopier(source, target, o)
	defer func() { _ = c.m.Index.Close() }()
	var indexes []bson.Raw
	var create bson.D
	err := c.Patience.Do(ctx, func() (err error) {
		indexes, create, err = c.describe(ctx)
		return err
	})
	if err != nil {
		return c.res, err
	}
	c.own = hashset.New()
	if !c.Copy.Begun {
		if err := c.Patience.Do(ctx, func() error { return c.mayCreate(ctx) }); err != nil {
			return c.res, err
		}
	}
	if err := c.Patience.Do(ctx, func() error { return c.create(ctx, create) }); err != nil {
		return c.res, err
	}
	if err := c.there.bind(ctx, target); err != nil {
		return c.res, err
	}
	if err := c.Patience.Do(ctx, func() error { return c.bound(ctx) }); err != nil {
		return c.res, err
	}
	if err := errors.Join(c.there.after(ctx, c.copy(ctx)), c.SkipList.Sync()); err != nil {
		return c.res, err
	}
	// Also if an earlier run did: somebody may have dropped the copy since.
	index := func() error { return c.index(ctx, indexes) }
	err = c.Patience.Do(ctx, index)
	if mongo.IsDuplicateKeyError(err) {
		// A unique value may have moved from one document to another since the first was copied.
		if _, err := c.repair(ctx); err != nil {
			return c.res, err
		}
		err = c.Patience.Do(ctx, index)
	}
	if err != nil {
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
	return c.res, nil
}

// Copy is what is known of a copy.
type Copy struct {
	Begun bool // an earlier run has written to it
	// Bound notes its UUID, if the server gives one, before documents are written to it.
	Bound func(ctx context.Context, uuid *bson.Binary) error
}

// bound notes the UUID of the copy.
func (c *copier) bound(ctx context.Context) error {
	spec, err := server.Specification(ctx, c.m.New)
	if err != nil || spec.UUID == nil {
		return err
	}
	return c.Copy.Bound(ctx, spec.UUID)
}

func newCopier(source, target *mongo.Collection, o Options) *copier {
	c := &copier{run: newRun(source, o), values: newCounter(o.Conversion, nil)}
	o = c.Options
	c.m = &mirror.Mirror{Conversion: o.Conversion, Old: source, New: target, Index: new(mirror.Index), Write: true, Batch: o.Pace.Batch(o.Batch),
		Keeps: func(doc bson.Raw) bool { return !c.own.Has(doc) },
		// An interrupt does not end a batch.
		Begin: func(ctx context.Context) (context.Context, context.CancelFunc, error) {
			return o.mayBegin(context.WithoutCancel(ctx), 0)
		},
		Limit: o.BatchTimeout, Halves: o.Halves, Still: c.there.check, Leaves: c.leaves, Wrote: c.wrote, Met: c.meet}
	return c
}

// MayCopy returns an error if the target of a conversion that begins has documents.
func MayCopy(ctx context.Context, source, target *mongo.Collection, o Options) error {
	if o.Copy.Begun {
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
	return c.values.count(&c.met, doc)
}

// leaves lists the values that the copies will have unchanged, before these are written: a run that is
// killed in between finds nothing to write the next time, and so nothing to list.
func (c *copier) leaves(left []mirror.Leftovers) error {
	for _, l := range left {
		c.leave(l.ID, l.Values)
	}
	return c.SkipList.Sync()
}

// writeConcern is the write concern of the commands that create collections and indexes.
var writeConcern = bson.E{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}}

// describe returns the indexes of the source, except the one on _id, and the command that creates a
// collection with the options of the source.
func (c *copier) describe(ctx context.Context) (indexes []bson.Raw, create bson.D, err error) {
	spec, err := server.FindCollection(ctx, c.m.Old)
	if err != nil {
		return nil, nil, err
	}
	var options bson.D
	if err := bson.Unmarshal(spec.Options, &options); err != nil {
		return nil, nil, err
	}
	create = bson.D{{Key: "create", Value: c.m.New.Name()}}
	for _, o := range options {
		switch o.Key {
		case "encryptedFields":
			return nil, nil, errors.New("cannot copy a collection with queryable encryption")
		case "uuid", "autoIndexId":
		default:
			create = append(create, o)
		}
	}
	indexes, err = server.Indexes(ctx, c.m.Old)
	return indexes, create, err
}

// mayCreate returns an error if the target has documents.
func (c *copier) mayCreate(ctx context.Context) error {
	err := c.m.New.FindOne(ctx, bson.D{}, options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("collection %s is not empty; use a new collection, or the directory of the migration that wrote to it", c.m.New.Name())
}

// create creates the new collection, unless it exists already.
func (c *copier) create(ctx context.Context, cmd bson.D) error {
	err := c.m.New.Database().RunCommand(ctx, append(cmd, writeConcern)).Err()
	if failure.Means(err, failure.Exists) { // empty, possibly sharded in advance
		return nil
	}
	return err
}
