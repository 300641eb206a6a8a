package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// The documents of config.collections are as MongoDB has them: 4.4 keeps those of dropped collections, 5.0 has a timestamp,
// and 8.0 has one for a collection that is not sharded, but was moved to another shard.
func sharded(version, ns string, key bson.D) bson.D {
	id := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	epoch := bson.NewObjectID()
	switch version {
	case "4.4":
		return bson.D{{Key: "_id", Value: ns}, {Key: "lastmodEpoch", Value: epoch}, {Key: "lastmod", Value: bson.DateTime(4294967296)}, {Key: "dropped", Value: false},
			{Key: "key", Value: key}, {Key: "unique", Value: false}, {Key: "uuid", Value: id}, {Key: "distributionMode", Value: "sharded"}}
	case "5.0":
		return bson.D{{Key: "_id", Value: ns}, {Key: "lastmodEpoch", Value: epoch}, {Key: "lastmod", Value: bson.DateTime(1630000000000)},
			{Key: "timestamp", Value: bson.Timestamp{T: 1630000000, I: 3}}, {Key: "uuid", Value: id}, {Key: "key", Value: key}, {Key: "unique", Value: false}, {Key: "noBalance", Value: false}}
	}
	panic(version)
}

// router puts orders and customers of a Java program into a database of a router, of which orders is sharded by its customer
// and customers by _id. It returns the server.
func router(t *testing.T, wire int32, version string) *memory.Server {
	t.Helper()
	s := memory.Start(t)
	s.Router.Store(wire)
	s.FerretDB = "v1.24.0" // so that nothing is probed that the server does not know
	db := s.Client.Database("shop")
	r := rand.New(rand.NewPCG(1, 1))
	var customers, orders []bson.Raw
	for i := range 40 {
		u, err := uuid.NewRandomFromReader(reader{r})
		if err != nil {
			t.Fatal(err)
		}
		id := kindstest.Stored(u, "javaLegacy")
		customers = append(customers, kindstest.Marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: int32(i)}}))
		orders = append(orders, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "customer", Value: id}, {Key: "region", Value: fmt.Sprint(i % 3)}, {Key: "n", Value: int32(i)}}))
	}
	s.Put(db.Collection("customers"), customers...)
	s.Put(db.Collection("orders"), orders...)
	return s
}

type reader struct{ *rand.Rand }

func (r reader) Read(b []byte) (int, error) { return copy(b, kindstest.Octets(r.Rand)), nil }

// The plan says that a collection is sharded, with the commands that shard its copy. A copy that is not sharded by the same
// key is not made, unless the plan accepts it.
func TestShardedCopy(t *testing.T) {
	key := bson.D{{Key: "region", Value: int32(1)}, {Key: "customer", Value: "hashed"}}
	for _, version := range []string{"4.4", "5.0"} {
		t.Run(version, func(t *testing.T) {
			s := router(t, map[string]int32{"4.4": 9, "5.0": 13}[version], version)
			config := s.Client.Database("config").Collection("collections")
			configured := func(names ...string) {
				docs := []bson.Raw{kindstest.Marshal(t, sharded(version, "shop.other", key))}
				for _, name := range names {
					docs = append(docs, kindstest.Marshal(t, sharded(version, "shop."+name, key)))
				}
				s.Put(config, docs...)
			}
			configured("orders")
			dir := filepath.Join(t.TempDir(), "shop.d")
			shard := `createCollection("orders_standard"); sh.shardCollection("shop.orders_standard", {region: 1, customer: "hashed"})`
			command(t, "plan", dir, "--db", "shop", "--uri", s.URI).want(t, failure.ExitOK, shard)
			for _, args := range [][]string{{"apply", dir, "--uri", s.URI}, {"apply", dir, "--uri", s.URI, "--write"}} {
				command(t, args...).want(t, failure.ExitUsage, `"orders" is sharded by {region: 1, customer: "hashed"}`, shard, "accepted: true")
			}
			edit(t, dir, "into: \"orders_standard\"", "into: \"orders_standard\"\n    accepted: true")
			command(t, "apply", dir, "--uri", s.URI).want(t, failure.ExitOK)
			edit(t, dir, "\n    accepted: true", "")
			// It is made before, and sharded by another key, or by the same.
			s.Put(s.Client.Database("shop").Collection("orders_standard"))
			other := sharded(version, "shop.orders_standard", bson.D{{Key: "_id", Value: "hashed"}})
			s.Put(config, kindstest.Marshal(t, sharded(version, "shop.orders", key)), kindstest.Marshal(t, other))
			command(t, "apply", dir, "--uri", s.URI).want(t, failure.ExitUsage, `is sharded by {_id: "hashed"}: drop it`)
			configured("orders", "orders_standard")
			command(t, "apply", dir, "--uri", s.URI).want(t, failure.ExitOK)
			command(t, "apply", dir, "--uri", s.URI, "--retry-for", "0s", "--write").want(t, failure.ExitOK)
			// The cutover looks before the fence.
			fenced := false
			s.Before = func(name string, command bson.Raw) (f memory.Fault) {
				fenced = fenced || name == "collMod" && command.Lookup("validator").Type != 0
				return f
			}
			for _, more := range [][]string{nil, {"--write"}} {
				s.Put(config, kindstest.Marshal(t, sharded(version, "shop.orders", key)), kindstest.Marshal(t, other))
				command(t, append([]string{"cutover", dir, "--uri", s.URI}, more...)...).want(t, failure.ExitUsage,
					`cannot exchange shop.orders: it is sharded by {region: 1, customer: "hashed"}, and orders_standard is sharded by {_id: "hashed"}`)
				configured("orders")
				command(t, append([]string{"cutover", dir, "--uri", s.URI}, more...)...).want(t, failure.ExitUsage, "orders_standard is not sharded")
			}
			configured("orders", "orders_standard")
			if r := command(t, "cutover", dir, "--uri", s.URI); version == "4.4" {
				r.want(t, failure.ExitUsage, "MongoDB renames sharded collections from version 5.0")
			} else {
				r.want(t, failure.ExitOK)
			}
			if fenced {
				t.Error("a collection was fenced")
			}
		})
	}
}

// Values in the shard key are converted in place, each document in a transaction of its own, with an equality for the whole
// key; what the server refuses nevertheless is listed, and the other fields of the document are converted. undo restores all.
func TestShardKeyInPlace(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		s := memory.Start(t)
		s.Router.Store(13)
		s.FerretDB = "v1.24.0"
		r := rand.New(rand.NewPCG(1, 1))
		java := func() bson.Binary {
			u, err := uuid.NewRandomFromReader(reader{r})
			if err != nil {
				t.Fatal(err)
			}
			return kindstest.Stored(u, "javaLegacy")
		}
		var docs []bson.Raw
		for i := range 40 {
			docs = append(docs, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "region", Value: fmt.Sprint(i % 3)}, {Key: "who", Value: bson.D{{Key: "id", Value: java()}}}, {Key: "ref", Value: java()}}))
		}
		events := s.Client.Database("shop").Collection("events")
		s.Put(events, docs...)
		key := bson.D{{Key: "region", Value: int32(1)}, {Key: "absent", Value: int32(1)}, {Key: "who.id", Value: int32(1)}}
		s.Put(s.Client.Database("config").Collection("collections"), kindstest.Marshal(t, sharded("5.0", "shop.events", key)))
		alone := 0
		s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if start, _ := command.Lookup("startTransaction").BooleanOK(); start && name == "update" {
				alone++
				if refuses {
					f.Write = 20 // IllegalOperation
				}
			}
			return f
		}
		dir := filepath.Join(t.TempDir(), "shop.d")
		at := []string{"--uri", s.URI, "--retry-for", "0s"}
		command(t, append([]string{"plan", dir, "--db", "shop"}, at...)...).want(t, failure.ExitOK)
		if b, err := os.ReadFile(filepath.Join(dir, "plan.yaml")); err != nil || !strings.Contains(string(b), `# in the shard key {region: 1, absent: 1, "who.id": 1}`) {
			t.Errorf("%v\n%s", err, b)
		}
		apply, code := append([]string{"apply", dir, "--write", "--output", "json"}, at...), failure.ExitOK
		if refuses {
			code = failure.ExitIncomplete
		}
		res := command(t, apply...).want(t, code)
		for i, doc := range s.Documents(events) {
			who, ref := doc.Lookup("who", "id"), doc.Lookup("ref")
			if ref.Value[4] != 4 || (who.Value[4] == 4) == refuses {
				t.Errorf("%d: %s", i, doc)
			}
		}
		if list, err := os.ReadFile(filepath.Join(dir, "events.skipped.jsonl")); refuses && (err != nil || strings.Count(string(list), "\n") != 40 || strings.Count(string(list), "in the shard key: ") != 40) {
			t.Errorf("%v\n%s\n%s", err, list, res.stdout)
		}
		want := 40
		if refuses { // the second pass tries again
			want = 80
		}
		if alone != want {
			t.Errorf("%d transactions", alone)
		}
		command(t, append([]string{"undo", dir, "--write"}, at...)...).want(t, failure.ExitOK)
		for i, doc := range s.Documents(events) {
			if !slices.Equal(doc, docs[i]) {
				t.Errorf("%d: %s is not restored to %s", i, doc, docs[i])
			}
		}
	}
}
