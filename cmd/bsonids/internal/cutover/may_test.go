package cutover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// index is an index of a field.
func index(name string, more ...bson.E) bson.D {
	return append(bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: name, Value: int32(1)}}}, {Key: "name", Value: name + "_1"}}, more...)
}

// describe sets the options and indexes of a collection.
func (c *copied) describe(name string, options bson.D, indexes ...bson.D) {
	c.s.Describe(c.db.Collection(name), "", options, indexes...)
}

// setRun changes the run that has made the copy of a.
func (c *copied) setRun(field string, value any) {
	c.Helper()
	if _, err := c.db.Collection(record.Name).UpdateOne(context.Background(), bson.D{{Key: "_id", Value: "a/1"}}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}}); err != nil {
		c.Fatal(err)
	}
}

// shard says how collections are sharded, by the router of a version of the wire protocol.
func (c *copied) shard(wire int32, keys map[string]string) {
	c.Helper()
	var docs []bson.Raw
	for name, key := range keys {
		docs = append(docs, kindstest.Marshal(c, bson.D{{Key: "_id", Value: "d." + name}, {Key: "key", Value: bson.D{{Key: key, Value: int32(1)}}}}))
	}
	c.s.Put(c.s.Client.Database("config").Collection("collections"), docs...)
	c.s.Router.Store(wire)
}

// What would make an exchange fail, or would be missing after it, is said before anything is changed.
func TestMayExchange(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(c *copied)
		want  string // the error; empty for none
	}{
		"a copy":            {func(*copied) {}, ""},
		"no collection":     {func(c *copied) { c.s.Drop(c.db.Collection("a")) }, "collection d.a does not exist"},
		"a view":            {func(c *copied) { c.s.Describe(c.db.Collection("a"), "view", nil) }, "cannot exchange d.a, because it is a view"},
		"no copy":           {func(c *copied) { c.s.Drop(c.db.Collection("a_new")) }, "d.a has no copy a_new"},
		"no run":            {func(c *copied) { c.s.Drop(c.db.Collection(record.Name)) }, "d.a has no copy a_new"},
		"another copy":      {func(c *copied) { c.s.Drop(c.db.Collection("a_new")); c.s.Put(c.db.Collection("a_new")) }, "d.a_new is another collection than the copy of a"},
		"of another one":    {func(c *copied) { c.s.Drop(c.db.Collection("a")); c.s.Put(c.db.Collection("a")) }, "d.a has no copy a_new"},
		"not finished":      {func(c *copied) { c.setRun("outcome", record.Stopped); c.setRun("reason", "an error") }, "is not finished: "},
		"values were left":  {func(c *copied) { c.setRun("progress.skipped", int64(3)) }, "left values in 3 documents as they are; see its skip list, and give --with-skipped a"},
		"that is accepted":  {func(c *copied) { c.setRun("progress.skipped", int64(3)); c.o.Skipped = []string{"a"} }, ""},
		"the kept name":     {func(c *copied) { c.s.Put(c.db.Collection("a_before_cutover")) }, "the collection a_before_cutover, the name under which a would be kept, exists already"},
		"capped":            {func(c *copied) { c.describe("a", bson.D{{Key: "capped", Value: true}}) }, "cannot exchange d.a: it is a capped collection"},
		"at constraint":     {func(c *copied) { c.describe("a_new", bson.D{{Key: "validationLevel", Value: "constraint"}}) }, "cannot exchange d.a_new: "},
		"fenced by another": {func(c *copied) { c.describe("a", bson.D{{Key: "validator", Value: bson.Raw(Fence().Validator)}}) }, "it has the validator of a cutover that the record does not have"},
		"an index":          {func(c *copied) { c.describe("a", nil, index("x"), index("y")); c.describe("a_new", nil, index("y")) }, "d.a has indexes that a_new does not have: x_1"},
		"a collated index": {func(c *copied) {
			c.describe("a", nil, index("x", bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: "en"}, {Key: "strength", Value: int32(2)}}}))
			c.describe("a_new", nil, index("x"))
		}, "d.a has indexes that a_new does not have: x_1"},
		"a unique index": {func(c *copied) {
			c.describe("a", nil, index("x", bson.E{Key: "unique", Value: true}))
			c.describe("a_new", nil, index("x"))
		}, "x_1"},
		"its filter was converted": {func(c *copied) {
			of := func(kind string) bson.E {
				return bson.E{Key: "partialFilterExpression", Value: bson.D{{Key: "v", Value: kindstest.Value(kind)}}}
			}
			c.describe("a", nil, index("x", of("generic")))
			c.describe("a_new", nil, index("x", of("standard")))
		}, ""},
		"no decisions": {func(c *copied) { c.setRun("decisions", bson.A{}) }, "the document a/1 of " + record.Name},
		"sharded":      {func(c *copied) { c.shard(17, map[string]string{"a": "_id"}) }, "cannot exchange d.a: it is sharded by {_id: 1}, and a_new is not sharded"},
		"other shards": {func(c *copied) { c.shard(17, map[string]string{"a": "_id", "a_new": "v"}) }, "shard both by the same key"},
		"old routers":  {func(c *copied) { c.shard(9, map[string]string{"a": "_id", "a_new": "_id"}) }, "MongoDB renames sharded collections from version 5.0"},
		"alike":        {func(c *copied) { c.shard(17, map[string]string{"a": "_id", "a_new": "_id"}) }, ""},
		"one document differs": {func(c *copied) {
			c.s.Put(c.db.Collection("a_new"), document(t, 0, "standard"), document(t, 1, "standard"))
		}, ""},
		"twins": {func(c *copied) {
			c.s.Put(c.db.Collection("a"), document(t, 0, "generic"), document(t, 0, "standard"))
		}, "documents and their copies cannot be brought to agree, so that the cutover would fail"},
	} {
		for _, write := range []bool{false, true} {
			if write && name == "twins" { // which is found behind the lock
				continue
			}
			c := newCopied(t, false, 3, "a")
			tt.spoil(c)
			c.o.Write = write
			r, err := c.cutOver()
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, write %v: %v", name, write, err)
			}
			if err != nil && (r.Begun || c.state() != "") {
				t.Errorf("%s, write %v: it has begun: %q", name, write, c.state())
			}
		}
	}
	c := newCopied(t, false, 1, strings.Repeat("a", 240))
	if _, err := c.cutOver(); !isUsage(err) || !strings.Contains(err.Error(), "is too long: a name has at most 255 bytes") {
		t.Error(err)
	}
	c = newCopied(t, false, 1, "a")
	c.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "collMod" {
			f.Code = 59 // CommandNotFound
		}
		return f
	}
	for _, c.o.Write = range []bool{false, true} {
		if _, err := c.cutOver(); !isUsage(err) || !strings.Contains(err.Error(), "the server does not know the command collMod") {
			t.Error(err)
		}
		if _, err := c.release(); !isUsage(err) {
			t.Error(err)
		}
	}
}

// What another program does to the collections while they are compared, which may take hours, is found before the fence is set, and the
// cutover is rolled back.
func TestMayFence(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(c *copied)
		want  string
	}{
		"dropped": {func(c *copied) { c.s.Drop(c.db.Collection("a_new")) }, "a or a_new was dropped or renamed while the documents were compared"},
		"kept":    {func(c *copied) { c.s.Put(c.db.Collection("a_before_cutover")) }, "a collection a_before_cutover was created while the documents were compared"},
		"indexed": {func(c *copied) { c.describe("a", nil, index("x")) }, "d.a has indexes that a_new does not have: x_1"},
	} {
		c := newCopied(t, false, 3, "a")
		c.s.Before = func(is string, command bson.Raw) (f memory.Fault) {
			if kind, _ := command.Lookup("documents", "0", "kind").StringValueOK(); is == "insert" && kind == record.Switch {
				tt.spoil(c)
			}
			return f
		}
		_, err := c.cutOver()
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "the cutover was rolled back, and the old collections are in place") || c.state() != record.RolledBack || c.fenced("a") {
			t.Errorf("%s: %v, %q", name, err, c.state())
		}
		c.docs("a", "generic", 0, 1, 2)
	}
}

// A way back that is rehearsed finds what would make it fail.
func TestMayPutBack(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(c *copied)
		want  string
	}{
		"nothing":       {func(*copied) {}, ""},
		"no old one":    {func(c *copied) { c.s.Drop(c.db.Collection("a_before_cutover")) }, "d.a_before_cutover, the old collection of a, was dropped"},
		"no new one":    {func(c *copied) { c.s.Drop(c.db.Collection("a")) }, "collection d.a does not exist"},
		"the name back": {func(c *copied) { c.s.Put(c.db.Collection("a_new")) }, "a collection d.a_new exists, the name that the new collection of a gets"},
		"no run":        {func(c *copied) { c.setRun("pairs", bson.A{}) }, "reading the conversion of a from " + record.Name},
	} {
		c := newCopied(t, false, 3, "a")
		if _, err := c.cutOver(); err != nil {
			t.Fatal(err)
		}
		tt.spoil(c)
		c.o.Write = false
		r, err := c.putBack()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) || r.Begun != (err == nil) || c.state() != record.Switched {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// A cutover is named by its id if the directory is lost, and one of other collections is not gone on with by the names of a plan.
func TestFind(t *testing.T) {
	c := newCopied(t, false, 3, "a", "b")
	if _, err := c.cutOver(); err != nil {
		t.Fatal(err)
	}
	all, err := record.Cutovers(t.Context(), c.db)
	if err != nil {
		t.Fatal(err)
	}
	id, group := all[0].Conversion(), c.group
	c.group = Group{Names: []string{"a"}, Copies: []string{"a_new"}}
	for name, f := range map[string]func() (Result, error){"cutover": c.cutOver, "release": c.release} {
		if _, err := f(); !isUsage(err) || !strings.Contains(err.Error(), `a cutover of a, b is in the state "switched", and its collections stay together: go on with bsonids cutover --db d `+id) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.group = Group{ID: "none"}
	if _, err := c.release(); !isUsage(err) || !strings.Contains(err.Error(), "d has no cutover none; bsonids status --db d prints those that have not ended") {
		t.Error(err)
	}
	c.group = Group{ID: id}
	if _, err := c.release(); err != nil || c.state() != record.Released {
		t.Error(err)
	}
	c.group = group
	c.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); of == record.Name {
			f.Code = 2
		}
		return f
	}
	e := c.verbs()
	_, back := e.ToPutBack(t.Context(), []Group{group})
	_, waiting := e.Waiting(t.Context(), []Group{group}, Forward)
	_, forward := c.cutOver()
	_, release := c.release()
	for i, err := range []error{back, waiting, forward, release} {
		if err == nil {
			t.Errorf("%d: the record was refused", i)
		}
	}
}

// A verb is for the groups of a plan for which it has something to do; the others are named.
func TestWaiting(t *testing.T) {
	groups := []Group{{Names: []string{"a"}, Copies: []string{"a_new"}}, {Names: []string{"b"}, Copies: []string{"b_new"}}}
	for _, tt := range []struct {
		state string // of the cutover of a; empty for none
		verb  Verb
		want  string // the groups
		told  string // a warning
	}{
		{"", Forward, "a b", ""},
		{"", RollBack, "", "a: there was no cutover"},
		{"", Release, "", "b: there was no cutover"},
		{record.Comparing, Forward, "a b", ""},
		{record.Comparing, RollBack, "a", "b: there was no cutover"},
		{record.Comparing, Release, "", `a: nothing to do, the cutover is in the state "comparing"`},
		{record.Switched, Forward, "a b", ""},
		{record.Switched, RollBack, "a", ""},
		{record.Switched, Release, "a", ""},
		{record.Releasing, RollBack, "", `a: nothing to do, the cutover is in the state "releasing"`},
		{record.Releasing, Release, "a", ""},
		{record.Released, Forward, "b", "a was released at 2026-07-01 12:00:00 UTC, which is the point of no return"},
		{record.Released, RollBack, "", "a was released at 2026-07-01 12:00:00 UTC"},
		{record.Released, Release, "a", ""},
		{record.RolledBack, Forward, "a b", ""},
		{record.RolledBack, RollBack, "", `in the state "rolled back"`},
	} {
		c := newCopied(t, false, 1, "a", "b")
		if tt.state != "" {
			at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			if _, err := c.db.Collection(record.Name).InsertOne(t.Context(), record.Cutover{Saved: record.Saved{ID: "x/cutover", Kind: "cutover", State: tt.state}, FreedAt: &at,
				Collections: []record.Exchange{{Name: "a", New: "a_new", Kept: "a_before_cutover", Maker: "m/a"}}}); err != nil {
				t.Fatal(err)
			}
		}
		found, err := c.verbs().Waiting(t.Context(), groups, tt.verb)
		var names []string
		for _, g := range found {
			names = append(names, g.Names...)
		}
		if got := strings.Join(names, " "); got != tt.want || (err != nil) != (tt.want == "") || err != nil && !isUsage(err) || !c.says(tt.told) {
			t.Errorf("%+v: %s, %v, %q", tt, got, err, c.told)
		}
	}
}

// Groups are done one after the other. One that leaves something does not end that, and after an error, those that are not begun are named.
func TestEach(t *testing.T) {
	groups := []Group{{Names: []string{"a"}}, {Names: []string{"b"}}, {Names: []string{"c", "d"}}}
	other := errors.New("other")
	for _, tt := range []struct {
		errs [3]error
		did  int
		want error
		told []string
	}{
		{[3]error{}, 3, nil, nil},
		{[3]error{failure.ErrIncomplete}, 3, failure.ErrIncomplete, nil},
		{[3]error{failure.ErrIncomplete, other}, 2, other, []string{"not begun: c, d"}},
		{[3]error{other}, 1, other, []string{"not begun: b", "not begun: c, d"}},
	} {
		c := newCopied(t, false, 1, "a")
		did := 0
		err := c.verbs().Each(groups, func(g Group) error {
			if !slices.Equal(g.Names, groups[did].Names) {
				t.Errorf("%d: %q", did, g.Names)
			}
			did++
			return tt.errs[did-1]
		})
		if !errors.Is(err, tt.want) || did != tt.did || !slices.Equal(c.told, tt.told) {
			t.Errorf("%+v: %d, %v, %q", tt, did, err, c.told)
		}
	}
}
