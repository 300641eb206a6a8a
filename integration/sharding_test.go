package integration

import (
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestSharding splits a collection that is sharded by a UUID at one UUID, and tests that queries by
// UUID find the right shard, in each representation.
func TestSharding(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			s := newServer(t)
			s.Require(t, mongotest.Sharding)
			ctx := context30(t)
			coll := s.collection(r.rep, "items")
			admin := coll.Database().Client().Database("admin")
			run := func(cmd bson.D) bson.Raw {
				t.Helper()
				answer, err := admin.RunCommand(ctx, cmd).Raw()
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			ns := s.Database() + ".items"
			run(bson.D{{Key: "enableSharding", Value: s.Database()}})
			run(bson.D{{Key: "shardCollection", Value: ns}, {Key: "key", Value: bson.D{{Key: "_id", Value: 1}}}})

			// Values whose first stored byte is 0x80 or higher go to the other shard. The table's
			// test UUID tells which byte of the UUID is stored first: its bytes 0x00, 0x11, … 0xFF
			// name their indexes.
			first := r.stored.Data[0] >> 4
			var middle uuid.UUID
			middle[first] = 0x80
			run(bson.D{{Key: "split", Value: ns}, {Key: "middle", Value: bson.D{{Key: "_id", Value: middle}}}})
			var database struct {
				Primary string `bson:"primary"`
			}
			config := admin.Client().Database("config")
			if err := config.Collection("databases").FindOne(ctx, bson.M{"_id": s.Database()}).Decode(&database); err != nil {
				t.Fatal(err)
			}
			var to struct {
				ID string `bson:"_id"`
			}
			if err := config.Collection("shards").FindOne(ctx, bson.M{"_id": bson.M{"$ne": database.Primary}}).Decode(&to); err != nil {
				t.Fatalf("a second shard: %v", err)
			}
			run(bson.D{
				{Key: "moveChunk", Value: ns},
				{Key: "find", Value: bson.D{{Key: "_id", Value: middle}}},
				{Key: "to", Value: to.ID},
			})

			const each = 50
			random := rand.New(rand.NewPCG(4, uint64(r.rep)))
			var docs []any
			var ids []uuid.UUID
			upper := 0
			for range 2 * each {
				var u uuid.UUID
				for i := range u {
					u[i] = byte(random.Uint32())
				}
				ids = append(ids, u)
				docs = append(docs, bson.M{"_id": u})
				if u[first] >= 0x80 {
					upper++
				}
			}
			if _, err := coll.InsertMany(ctx, docs); err != nil {
				t.Fatal(err)
			}

			cursor, err := coll.Aggregate(ctx, mongo.Pipeline{{{Key: "$collStats", Value: bson.M{"count": bson.M{}}}}})
			counts := make(map[string]int)
			for _, c := range all[struct {
				Shard string `bson:"shard"`
				Count int    `bson:"count"`
			}](t, cursor, err) {
				counts[c.Shard] = c.Count
			}
			if counts[to.ID] != upper || counts[database.Primary] != 2*each-upper {
				t.Errorf("documents by shard %v, want %d on %s of %d", counts, upper, to.ID, 2*each)
			}

			for _, id := range ids[:10] {
				var doc item
				if err := coll.FindOne(ctx, bson.M{"_id": id}).Decode(&doc); err != nil || doc.ID != id {
					t.Errorf("find %v: %v, %v", id, doc.ID, err)
				}
				var plan struct {
					QueryPlanner struct {
						WinningPlan struct {
							Stage string `bson:"stage"`
						} `bson:"winningPlan"`
					} `bson:"queryPlanner"`
				}
				if err := coll.Database().RunCommand(ctx, bson.D{
					{Key: "explain", Value: bson.D{{Key: "find", Value: "items"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: id}}}}},
					{Key: "verbosity", Value: "queryPlanner"},
				}).Decode(&plan); err != nil || plan.QueryPlanner.WinningPlan.Stage != "SINGLE_SHARD" {
					t.Errorf("find %v: plan %+v, %v; want one shard", id, plan, err)
				}
			}
			for _, doc := range s.stored("items") {
				if subtype, octets := doc.Lookup("_id").Binary(); subtype != r.stored.Subtype || len(octets) != 16 {
					t.Errorf("the server holds subtype %d, %X", subtype, octets)
				}
			}
			if r.rep == uuidrep.Standard {
				// The same UUID in another representation is another key, which may belong to the
				// other shard.
				if n, err := s.collection(uuidrep.JavaLegacy, "items").CountDocuments(ctx, bson.M{"_id": ids[0]}); err != nil || n != 0 {
					t.Errorf("found %d in another representation, %v", n, err)
				}
			}
		})
	}
}
