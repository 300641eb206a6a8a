package convert

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// shardKey returns the paths of the shard key of a collection, or nothing if it is not sharded, or if the user may not know
// it: the server then refuses what it does not take.
func shardKey(ctx context.Context, coll *mongo.Collection, patient *patience.Patience) ([]string, error) {
	is, err := patience.Ask(ctx, patient, func() (*server.Sharded, error) { return server.ShardingOf(ctx, coll) })
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		err = nil
	}
	return is.Paths(), err
}

// withKey returns a projection that has the fields of a shard key, too.
func withKey(projection bson.D, key []string) bson.D {
	for _, path := range key {
		top, _, _ := strings.Cut(path, ".")
		if projection != nil && !slices.ContainsFunc(projection, func(e bson.E) bool { return e.Key == top }) {
			projection = append(slices.Clip(projection), bson.E{Key: top, Value: 1})
		}
	}
	return projection
}

// send sends the updates of edits: in one batch, and each that changes a shard key by itself. Its results are as those of
// bulk.Update.
func send(ctx context.Context, coll *mongo.Collection, edits []rule.Edits, and bson.RawValue) (matched int64, refused []bulk.Refusal, err error) {
	models, at := make([]mongo.WriteModel, 0, len(edits)), make([]int, 0, len(edits))
	var alone []int
	for i, p := range edits {
		if len(p.Key) > 0 {
			alone = append(alone, i)
			continue
		}
		models, at = append(models, p.Model(and)), append(at, i)
	}
	matched, refused, err = bulk.Update(ctx, coll, models, false)
	for i := range refused {
		refused[i].Index = at[refused[i].Index]
	}
	for _, i := range alone {
		if err != nil {
			return 0, nil, err
		}
		var n int64
		var one []bulk.Refusal
		n, one, err = bulk.Alone(ctx, coll, edits[i].Model(and))
		matched += n
		for _, f := range one {
			f.Index = i
			refused = append(refused, f)
		}
	}
	return matched, refused, err
}
