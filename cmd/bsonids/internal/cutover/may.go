package cutover

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// mayFence detects again what would make the exchange fail: the comparison may have taken hours.
func (e *Cutovers) mayFence(ctx context.Context, c *record.Cutover) error {
	specs, err := e.collections(ctx)
	if err != nil {
		return err
	}
	for _, x := range c.Collections {
		old, fresh := specs[x.Name], specs[x.New]
		switch {
		case old == nil || fresh == nil:
			return failure.Usagef("%s or %s was dropped or renamed while the documents were compared", x.Name, x.New)
		case specs[x.Kept] != nil:
			return failure.Usagef("a collection %s was created while the documents were compared", x.Kept)
		}
		x.OldHad, x.NewHad = server.SettingsOf(old), server.SettingsOf(fresh)
		if err := e.mayExchange(ctx, &x, old, fresh); err != nil {
			return err
		}
	}
	return nil
}

// mayExchange detects what would make the exchange fail later, or would be missing after it.
func (e *Cutovers) mayExchange(ctx context.Context, x *record.Exchange, old, fresh *mongo.CollectionSpecification) error {
	for _, spec := range []*mongo.CollectionSpecification{old, fresh} {
		why := server.Unexchangeable(spec)
		if why == "" && server.SettingsOf(spec).Equal(Fence()) {
			why = "it has the validator of a cutover that the record does not have; remove it by hand"
		}
		if why != "" {
			return failure.Usagef("cannot exchange %s.%s: %s", e.db.Name(), spec.Name, why)
		}
	}
	return e.Do(ctx, func() error {
		if err := sharded(ctx, e.db, x); err != nil {
			return err
		}
		missing, err := missingIndexes(ctx, e.db.Collection(x.Name), e.db.Collection(x.New))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return failure.Usagef("%s.%s has indexes that %s does not have: %s; create them there first", e.db.Name(), x.Name, x.New, strings.Join(missing, ", "))
		}
		if !e.Write {
			return nil
		}
		// No document has this _id. The updates change nothing, and the server rejects them if the
		// user lacks the privilege.
		for _, name := range []string{x.Name, x.New} {
			_, err := e.db.Collection(name).UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}},
				options.UpdateOne().SetBypassDocumentValidation(true))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// sharded returns a usage error if the collections are not sharded alike, or if the server cannot rename them because
// they are sharded.
func sharded(ctx context.Context, db *mongo.Database, x *record.Exchange) error {
	old, err := server.ShardingOf(ctx, db.Collection(x.Name))
	if err != nil {
		return err
	}
	fresh, err := server.ShardingOf(ctx, db.Collection(x.New))
	if err != nil {
		return err
	}
	switch {
	case !server.Alike(old, fresh):
		return failure.Usagef("cannot exchange %s.%s: it is %s, and %s is %s; shard both by the same key", db.Name(), x.Name, old, x.New, fresh)
	case old == nil:
		return nil
	}
	router, err := server.RouterOf(ctx, db)
	if err == nil && router != nil && !router.Renames() {
		err = failure.Usagef("cannot exchange %s.%s: it is sharded, and MongoDB renames sharded collections from version 5.0", db.Name(), x.Name)
	}
	return err
}

// missingIndexes returns the names of the indexes of old that fresh does not have. A person may have converted the UUIDs in
// the filter of a partial one.
func missingIndexes(ctx context.Context, old, fresh *mongo.Collection) ([]string, error) {
	has, err := server.Indexes(ctx, fresh)
	if err != nil {
		return nil, err
	}
	want, err := server.Indexes(ctx, old)
	if err != nil {
		return nil, err
	}
	same := func(a, b bson.Raw) bool {
		return !slices.ContainsFunc([]string{"name", "key", "unique", "sparse", "partialFilterExpression", "expireAfterSeconds", "collation"}, func(key string) bool {
			v, w := constants.Without(a.Lookup(key)), constants.Without(b.Lookup(key))
			return v.Type != w.Type || !bytes.Equal(v.Value, w.Value)
		})
	}
	var missing []string
	for _, i := range want {
		if !slices.ContainsFunc(has, func(h bson.Raw) bool { return same(i, h) }) {
			name, _ := i.Lookup("name").StringValueOK()
			missing = append(missing, name)
		}
	}
	return missing, nil
}
