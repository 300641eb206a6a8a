package migrate

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// The names of a task are those that MongoDB takes for databases and collections of users, and its filter is an object of MongoDB
// Extended JSON.
func TestDescribe(t *testing.T) {
	pairs := []kinds.Pair{{From: "javaLegacy", Fields: []string{"v"}}}
	for _, tt := range []struct {
		database string
		of       kinds.Task
		want     string // the error; empty for none
	}{
		{"d", kinds.Task{Collection: "a", Pairs: pairs}, ""},
		{"d", kinds.Task{Collection: "a", Into: "b", Pairs: pairs}, ""},
		{"d", kinds.Task{Collection: "a", Filter: `{"x":{"$numberInt":"1"}}`, Pairs: pairs}, ""},
		{"d.e", kinds.Task{Collection: "a", Pairs: pairs}, "invalid database name"},
		{"admin", kinds.Task{Collection: "a", Pairs: pairs}, "of the server itself"},
		{"d", kinds.Task{Collection: "a$", Pairs: pairs}, "invalid collection name"},
		{"d", kinds.Task{Collection: "a", Into: "system.b", Pairs: pairs}, "invalid collection name"},
		{"d", kinds.Task{Collection: record.Name, Pairs: pairs}, "the record of conversions"},
		{"d", kinds.Task{Collection: "a", Filter: `{`, Pairs: pairs}, "the filter {"},
		{"d", kinds.Task{Collection: "a", Pairs: []kinds.Pair{{From: "other"}}}, "other"},
	} {
		d, err := Describe(tt.database, tt.of)
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v", tt.database, tt.of, err)
		}
		if err == nil && (d.Database != tt.database || d.Task.Collection != tt.of.Collection || len(d.Conversion) != 1 || len(d.Query) > 0 != (tt.of.Filter != "")) {
			t.Errorf("%+v", d)
		}
	}
}

// The copy of a sharded collection must be sharded by the same key, unless a person accepts that it is not, also when it was dropped and
// is made again.
func TestUnsharded(t *testing.T) {
	m := converted(t)
	m.s.Router.Store(13)
	shard := func(keys ...bson.D) {
		var docs []bson.Raw
		for i, key := range keys {
			docs = append(docs, marshal(t, bson.D{{Key: "_id", Value: []string{"d.c", "d.c_new"}[i]}, {Key: "key", Value: key}}))
		}
		m.s.Put(m.s.Client.Database("config").Collection("collections"), docs...)
	}
	byID, byV := bson.D{{Key: "_id", Value: int32(1)}}, bson.D{{Key: "v", Value: int32(1)}}
	entry := *m.entry(m.plan, "c")
	for name, tt := range map[string]struct {
		keys []bson.D
		edit func(c *plan.Collection)
		want []string
	}{
		"neither":     {nil, nil, nil},
		"alike":       {[]bson.D{byID, byID}, nil, nil},
		"no copy":     {[]bson.D{byID}, nil, []string{`"c" is sharded by`, `"c_new", its copy, is not sharded`, `run in mongosh: sh.shardCollection("d.c_new", {_id: 1})`}},
		"another key": {[]bson.D{byID, byV}, nil, []string{"its copy, is sharded by {v: 1}", "drop it, or give into another name"}},
		"accepted":    {[]bson.D{byID}, func(c *plan.Collection) { c.Accepted = true }, nil},
		"in place":    {[]bson.D{byID}, func(c *plan.Collection) { c.Into = "" }, nil},
		"replaced":    {[]bson.D{byID}, func(c *plan.Collection) { c.UUID = "00" }, nil},
	} {
		shard(tt.keys...)
		c := entry
		if tt.edit != nil {
			tt.edit(&c)
		}
		why, err := Unsharded(t.Context(), m.session(), m.s.Client.Database("d"), c)
		if err != nil || (why == "") != (tt.want == nil) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(why, want) {
				t.Errorf("%s: %q is not in %q", name, want, why)
			}
		}
	}
	shard(byID, byID)
	if _, err := m.apply(); err != nil {
		t.Error(err)
	}
	m.s.Drop(m.collection("c_new"))
	shard(byID)
	if _, err := m.apply(); !isUsage(err) || !strings.Contains(err.Error(), "its copy, is not sharded") {
		t.Error(err)
	}
}
