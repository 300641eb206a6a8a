package server

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/shell"
)

// Sharded is how a collection is sharded.
type Sharded struct {
	Key    bson.Raw // empty if the user may not read it
	Unique bool     // the key
}

// ShardingOf returns how a collection is sharded, or nil if it is not, or if no router of a cluster answers. A user who may not
// read config.collections is told by collStats whether it is sharded, and not by which key.
func ShardingOf(ctx context.Context, coll *mongo.Collection) (*Sharded, error) {
	r, err := RouterOf(ctx, coll.Database())
	if err != nil || r == nil {
		return nil, err
	}
	// MongoDB 4.4 keeps the document of a collection that was dropped, and 8.0 has one for a collection that was moved
	// and lies on one shard.
	var doc struct {
		Dropped          bool
		Key              bson.Raw
		Unique           bool
		Unsplittable     bool
		DistributionMode string `bson:"distributionMode"`
	}
	config := coll.Database().Client().Database("config", options.Database().SetReadConcern(readconcern.Majority()))
	ns := coll.Database().Name() + "." + coll.Name()
	err = config.Collection("collections").FindOne(ctx, bson.D{{Key: "_id", Value: ns}}).Decode(&doc)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return nil, nil
	case failure.Means(err, failure.Unauthorized):
		return byStatistics(ctx, coll)
	case err != nil:
		return nil, err
	case doc.Dropped, doc.Unsplittable, doc.DistributionMode == "unsharded", len(doc.Key) == 0:
		return nil, nil
	}
	return &Sharded{Key: doc.Key, Unique: doc.Unique}, nil
}

func byStatistics(ctx context.Context, coll *mongo.Collection) (*Sharded, error) {
	var stats struct{ Sharded bool }
	err := coll.Database().RunCommand(ctx, bson.D{{Key: "collStats", Value: coll.Name()}}).Decode(&stats)
	if failure.Means(err, failure.Missing) { // MongoDB before 6.2 says so of a collection that does not exist
		return nil, nil
	}
	if err != nil || !stats.Sharded {
		return nil, err
	}
	return &Sharded{}, nil
}

// Known reports whether the key is known.
func (s *Sharded) Known() bool { return s != nil && len(s.Key) > 0 }

// Paths returns the paths of the fields of the key.
func (s *Sharded) Paths() (paths []string) {
	if !s.Known() {
		return nil
	}
	elements, _ := s.Key.Elements()
	for _, e := range elements {
		paths = append(paths, e.Key())
	}
	return paths
}

// String describes how the collection is sharded.
func (s *Sharded) String() string {
	switch {
	case s == nil:
		return "not sharded"
	case !s.Known():
		return "sharded by a key that the user may not read (find on config.collections)"
	case s.Unique:
		return "sharded by the unique key " + shell.Expression(s.Key)
	}
	return "sharded by " + shell.Expression(s.Key)
}

// Alike reports whether two collections are sharded by the same key, or not at all. What cannot be read is not alike.
func Alike(a, b *Sharded) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Known() && b.Known() && a.Unique == b.Unique && sameKey(a.Key, b.Key)
}

// sameKey compares keys, in which 1 may be a number of any type.
func sameKey(a, b bson.Raw) bool {
	as, err := a.Elements()
	bs, err2 := b.Elements()
	return err == nil && err2 == nil && slices.EqualFunc(as, bs, func(x, y bson.RawElement) bool {
		n, number := x.Value().AsFloat64OK()
		m, number2 := y.Value().AsFloat64OK()
		return x.Key() == y.Key() && (x.Value().Equal(y.Value()) || number && number2 && n == m)
	})
}

// Commands returns the commands for mongosh that shard a collection of the name by the same key. Unless it is there, the
// first of them makes it with the settings of the other collection, which listCollections has as options.
func (s *Sharded) Commands(database, name string, settings bson.Raw, there bool) (commands []string) {
	if !there {
		create := []string{shell.Text(name)}
		if options := CreateOptions(settings); len(options) > 0 {
			create = append(create, shell.Expression(options))
		}
		commands = append(commands, shell.Call(shell.Database(database)+".createCollection", create...))
	}
	key := "KEY"
	if s.Known() {
		key = shell.Expression(s.Key)
	}
	shard := []string{shell.Text(database + "." + name), key}
	_, err := settings.LookupErr("collation")
	switch collated := len(settings) > 0 && err == nil; {
	case collated: // the index of a shard key has the simple one
		shard = append(shard, strconv.FormatBool(s.Unique), `{collation: {locale: "simple"}}`)
	case s.Unique:
		shard = append(shard, "true")
	}
	return append(commands, shell.Call("sh.shardCollection", shard...))
}

// CreateOptions returns the options of a collection with which another one can be made.
func CreateOptions(options bson.Raw) (settings bson.D) {
	if bson.Unmarshal(options, &settings) != nil {
		return nil
	}
	return slices.DeleteFunc(settings, func(e bson.E) bool { return e.Key == "uuid" || e.Key == "autoIndexId" })
}
