package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// undetermined returns documents with values of which nothing tells the order.
func undetermined(t *testing.T, n int) (docs []bson.Raw) {
	for i := range n {
		v := []byte{byte(i), 0xf1, 0x9c, 0x33, 0xc7, 0xe8, 0xf0, 0xfb, 0x1e, 0x77, 0x05, 0x98, 0xa4, 0x3d, 0x60, byte(7 * i)}
		docs = append(docs, kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: bson.Binary{Subtype: 3, Data: v}}}))
	}
	return docs
}

// trusting makes the plan of a directory, whose fields are edited.
func trusting(t *testing.T, s *memory.Server, edit func(p *plan.Plan)) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "d")
	command(t, "plan", dir, "--db", "shop", "--uri", s.URI)
	p, err := plan.ReadFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	edit(p)
	if err := os.WriteFile(filepath.Join(dir, plan.PlanFile), p.Text(), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// csharp decides that the values of an entry are csharpLegacy.
func csharp(c *plan.Collection) {
	for i := range c.Fields {
		if c.Fields[i].Stored == kinds.Subtype3 {
			c.Fields[i].Decision, c.Fields[i].Trust = plan.Convert("csharpLegacy"), true
		}
	}
}

// While apply reads, before it has the collection for itself, another migration converts values of the same field from another kind, and
// ends half way. apply converts none of the rest: in place or into a copy, the field would have values of both orders.
func TestClashSinceRead(t *testing.T) {
	for _, into := range []string{"", "orders_new"} {
		s := memory.Start(t)
		s.FerretDB = "v1.24.0" // which is not asked whether it enforces limits
		coll := s.Client.Database("shop").Collection("orders")
		s.Put(coll, undetermined(t, 4)...)
		dir := trusting(t, s, func(p *plan.Plan) {
			csharp(&p.Collections[0])
			p.Collections[0].Into = into
		})
		was := s.Documents(coll)
		var done atomic.Bool
		s.Before = func(name string, c bson.Raw) (f memory.Fault) {
			if of, _ := c.Lookup("find").StringValueOK(); of == "orders" && !done.Swap(true) {
				now := time.Now().UTC()
				other := record.Run{ID: "orders/1", Kind: record.Convert, Task: kinds.Task{Collection: "orders", Pairs: []kinds.Pair{{From: "javaLegacy", Fields: []string{"a"}}}}, Epoch: 1,
					Conversion: "other/orders", Migration: "other", Started: now, Updated: now, Ended: &now, Outcome: record.Stopped, Directory: "/other", Log: record.Log{Size: 100}}
				if _, err := s.Client.Database("shop").Collection(record.Name).InsertOne(t.Context(), other); err != nil {
					t.Error(err)
				}
			}
			return f
		}
		command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitUsage, "has converted it from javaLegacy", "/other")
		if !done.Load() {
			t.Fatal("nothing was read")
		}
		for i, doc := range s.Documents(coll) {
			if string(doc) != string(was[i]) {
				t.Errorf("%v was converted", doc)
			}
		}
		if n := len(s.Documents(s.Client.Database("shop").Collection("orders_new"))); n > 0 {
			t.Errorf("%d documents were copied", n)
		}
	}
}

// Two filters of one plan that match a document may not convert a field of it from two kinds: which of them is used would depend on
// their order.
func TestClashOfFilters(t *testing.T) {
	for other, want := range map[string]int{`{"_id":{"$in":[{"$numberInt":"2"},{"$numberInt":"3"}]}}`: failure.ExitOK, `{"_id":{"$in":[{"$numberInt":"1"},{"$numberInt":"3"}]}}`: failure.ExitUsage} {
		s := memory.Start(t)
		s.FerretDB = "v1.24.0" // which is not asked whether it enforces limits
		coll := s.Client.Database("shop").Collection("orders")
		s.Put(coll, undetermined(t, 4)...)
		dir := trusting(t, s, func(p *plan.Plan) {
			c := p.Collections[0]
			csharp(&c)
			c.Filter = `{"_id":{"$in":[{"$numberInt":"0"},{"$numberInt":"1"}]}}`
			d := c
			d.Fields = append([]plan.Field(nil), c.Fields...)
			for i := range d.Fields {
				if d.Fields[i].Stored == kinds.Subtype3 {
					d.Fields[i].Decision = plan.Convert("javaLegacy")
				}
			}
			d.Filter = other
			p.Collections = []plan.Collection{c, d}
		})
		r := command(t, "apply", dir, "--write", "--uri", s.URI)
		if r.want(t, want); want == failure.ExitUsage && !strings.Contains(r.stderr, "both match a document") {
			t.Error(r.stderr)
		}
	}
}

// A run in the record that lacks a field, as a document of another version may, ends no command with a panic, and if apply says that all is
// converted, it is: without decisions, everything is judged again.
func TestRunWithoutField(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	coll := s.Client.Database("shop").Collection("orders")
	s.Put(coll, undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) { csharp(&p.Collections[0]) })
	command(t, "apply", dir, "--write", "--batch-timeout", "1s", "--uri", s.URI).want(t, failure.ExitOK)
	records := s.Client.Database("shop").Collection(record.Name)
	was := s.Documents(records)
	for _, without := range []string{"decisions", "pairs", "by", "log", "started", "updated", "conversion", "progress"} {
		var docs []bson.Raw
		for _, doc := range was {
			var d bson.D
			if err := bson.Unmarshal(doc, &d); err != nil {
				t.Fatal(err)
			}
			docs = append(docs, kindstest.Marshal(t, slices.DeleteFunc(d, func(e bson.E) bool { return e.Key == without })))
		}
		s.Put(records, docs...)
		s.Put(coll, undetermined(t, 4)...)
		for _, verb := range [][]string{{"status", dir}, {"verify", dir}, {"undo", dir}, {"apply", dir}} {
			command(t, append(verb, "--uri", s.URI)...)
		}
		r := command(t, "apply", dir, "--write", "--batch-timeout", "1s", "--uri", s.URI)
		for _, doc := range s.Documents(coll) {
			if is := doc.Lookup("a").Value[4]; r.code == failure.ExitOK && is != 4 {
				t.Errorf("without %s: %v\n%s%s", without, doc, r.stdout, r.stderr)
			}
		}
	}
}

// Without the record, verify goes by the logs, and says that nothing tells whether they have lost their ends.
func TestVerifyWithoutRecord(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	coll := s.Client.Database("shop").Collection("orders")
	s.Put(coll, undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) { csharp(&p.Collections[0]) })
	command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
	if r := command(t, "verify", dir, "--uri", s.URI).want(t, failure.ExitOK); strings.Contains(r.stderr, "WARN") {
		t.Error(r.stderr)
	}
	s.Drop(s.Client.Database("shop").Collection(record.Name))
	command(t, "verify", dir, "--uri", s.URI).want(t, failure.ExitOK, "nothing tells whether it has lost its end: values that its end had are not proven")
}

// A copy that an earlier run has begun is replaced by a collection of another program after apply has looked: nothing is written to that
// one, and nothing is deleted from it.
func TestCopyReplaced(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	db := s.Client.Database("shop")
	coll, fresh := db.Collection("orders"), db.Collection("orders_new")
	s.Put(coll, undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) {
		csharp(&p.Collections[0])
		p.Collections[0].Into = "orders_new"
	})
	write := []string{"apply", dir, "--write", "--batch", "1", "--retry-for", "0s", "--uri", s.URI}
	var inserts atomic.Int64
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup("insert").StringValueOK(); of == "orders_new" && inserts.Add(1) == 2 {
			f.Code = 13
		}
		return f
	}
	if command(t, write...); len(s.Documents(fresh)) != 1 {
		t.Fatalf("%d documents were copied", len(s.Documents(fresh)))
	}
	foreign := kindstest.Marshal(t, bson.D{{Key: "_id", Value: "foreign"}})
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if kind, _ := c.Lookup("documents", "0", "kind").StringValueOK(); name == "insert" && kind == record.Convert {
			s.Drop(fresh)
			s.Put(fresh, foreign)
		}
		return f
	}
	r := command(t, write...).want(t, failure.ExitFailed, "orders_new is another collection")
	if docs := s.Documents(fresh); len(docs) != 1 || string(docs[0]) != string(foreign) {
		t.Errorf("%v\n%s", docs, r.stderr)
	}
	s.Before = nil
	command(t, write...).want(t, failure.ExitFailed, "is not empty")
	if docs := s.Documents(fresh); len(docs) != 1 {
		t.Errorf("%v", docs)
	}
	s.Drop(fresh)
	command(t, write...).want(t, failure.ExitOK)
}

// If the server gives no UUIDs of collections, a cutover warns that nothing tells the copy from another collection of its name.
func TestCutoverWithoutUUIDs(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB, s.NoUUIDs = "v1.24.0", true
	s.Put(s.Client.Database("shop").Collection("orders"), undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) {
		csharp(&p.Collections[0])
		p.Collections[0].Into = "orders_new"
	})
	command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
	if r := command(t, "cutover", dir, "--uri", s.URI); !strings.Contains(r.stderr, "nothing tells whether shop.orders_new is the copy of orders") {
		t.Error(r.code, r.stdout, r.stderr)
	}
}
