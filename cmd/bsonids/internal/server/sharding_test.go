package server

import (
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// How a collection is sharded is told by its document in config.collections, which differs between versions of MongoDB: 4.4
// keeps that of a dropped collection, and 8.0 has one of a collection that was moved and lies on one shard. Without the
// privilege to read it, collStats tells whether the collection is sharded.
func TestOf(t *testing.T) {
	key := bson.D{{Key: "a", Value: int32(1)}, {Key: "b", Value: "hashed"}}
	for name, tt := range map[string]struct {
		wire   int32
		doc    bson.D
		denied bool
		want   string
	}{
		"replica set":       {0, bson.D{{Key: "key", Value: key}, {Key: "unique", Value: false}}, false, "not sharded"},
		"none":              {9, nil, false, "not sharded"},
		"4.4":               {9, bson.D{{Key: "dropped", Value: false}, {Key: "key", Value: key}, {Key: "unique", Value: false}, {Key: "distributionMode", Value: "sharded"}}, false, `sharded by {a: 1, b: "hashed"}`},
		"4.4, dropped":      {9, bson.D{{Key: "dropped", Value: true}, {Key: "lastmodEpoch", Value: bson.ObjectID{}}}, false, "not sharded"},
		"4.4, unique":       {9, bson.D{{Key: "dropped", Value: false}, {Key: "key", Value: bson.D{{Key: "a", Value: 1.0}}}, {Key: "unique", Value: true}}, false, "sharded by the unique key {a: 1}"},
		"5.0":               {13, bson.D{{Key: "timestamp", Value: bson.Timestamp{T: 1}}, {Key: "key", Value: key}, {Key: "noBalance", Value: false}}, false, `sharded by {a: 1, b: "hashed"}`},
		"8.0, unsplittable": {25, bson.D{{Key: "timestamp", Value: bson.Timestamp{T: 1}}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "unsplittable", Value: true}}, false, "not sharded"},
		"denied":            {13, bson.D{{Key: "key", Value: key}}, true, "sharded by a key that the user may not read (find on config.collections)"},
		"denied, none":      {13, nil, true, "not sharded"},
	} {
		s := memory.Start(t)
		s.Router.Store(tt.wire)
		if tt.doc != nil {
			s.Put(s.Client.Database("config").Collection("collections"), kindstest.Marshal(t, append(bson.D{{Key: "_id", Value: "d.c"}}, tt.doc...)))
		}
		s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			if of, _ := command.Lookup("$db").StringValueOK(); of == "config" && tt.denied {
				f.Code = 13
			}
			return f
		}
		got, err := ShardingOf(t.Context(), s.Client.Database("d").Collection("c"))
		if err != nil || got.String() != tt.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
	}
}

// Two collections are sharded alike if their keys have the same fields in the same order and the same way, whatever type the
// number has that a shell wrote. An unknown key is like no other.
func TestAlike(t *testing.T) {
	of := func(unique bool, key ...bson.E) *Sharded {
		return &Sharded{Key: kindstest.Marshal(t, bson.D(key)), Unique: unique}
	}
	a, b := bson.E{Key: "a", Value: int32(1)}, bson.E{Key: "b", Value: int32(1)}
	for name, tt := range map[string]struct {
		a, b *Sharded
		want bool
	}{
		"neither":        {nil, nil, true},
		"one":            {of(false, a), nil, false},
		"the same":       {of(false, a, b), of(false, a, b), true},
		"another order":  {of(false, a, b), of(false, b, a), false},
		"fewer":          {of(false, a, b), of(false, a), false},
		"another number": {of(false, a), of(false, bson.E{Key: "a", Value: 1.0}), true},
		"hashed":         {of(false, a), of(false, bson.E{Key: "a", Value: "hashed"}), false},
		"unique":         {of(true, a), of(false, a), false},
		"unknown":        {&Sharded{}, &Sharded{}, false},
		"one unknown":    {of(false, a), &Sharded{}, false},
	} {
		if got := Alike(tt.a, tt.b); got != tt.want || Alike(tt.b, tt.a) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The commands make the collection with the options of its source, and shard it: a collation of the collection is not that
// of the key. https://www.mongodb.com/docs/manual/reference/method/sh.shardCollection/
func TestCommands(t *testing.T) {
	s := &Sharded{Key: kindstest.Marshal(t, bson.D{{Key: "a.b", Value: int32(1)}, {Key: "c", Value: "hashed"}})}
	settings := kindstest.Marshal(t, bson.D{{Key: "collation", Value: bson.D{{Key: "locale", Value: "fr"}}}, {Key: "uuid", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}})
	want := []string{`db.getSiblingDB("d").createCollection("new", {collation: {locale: "fr"}})`, `sh.shardCollection("d.new", {"a.b": 1, c: "hashed"}, false, {collation: {locale: "simple"}})`}
	if got := s.Commands("d", "new", settings, false); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	s.Unique = true
	if got := s.Commands("d", "new", kindstest.Marshal(t, bson.D{}), true); !slices.Equal(got, []string{`sh.shardCollection("d.new", {"a.b": 1, c: "hashed"}, true)`}) {
		t.Errorf("got %q", got)
	}
	if got := (&Sharded{}).Commands("d", "new", nil, true); !slices.Equal(got, []string{`sh.shardCollection("d.new", KEY)`}) {
		t.Errorf("got %q", got)
	}
}
