package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
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

// A migration is killed half way, and its directory is lost. Another source is refused for the path until the migration is given
// up. Then the rest is converted from it. When the directory turns up, its undo restores what it has converted, and nothing else.
func TestGiveUp(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	db := s.Client.Database("shop")
	coll, records := db.Collection("orders"), db.Collection(record.Name)
	was := undetermined(t, 4)
	s.Put(coll, was...)
	lost := trusting(t, s, func(p *plan.Plan) { csharp(&p.Collections[0]) })
	var updates atomic.Int64
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup("update").StringValueOK(); of == "orders" && updates.Add(1) >= 4 {
			f.Code = 13
		}
		return f
	}
	command(t, "apply", lost, "--write", "--batch", "1", "--batch-timeout", "1s", "--uri", s.URI).want(t, failure.ExitDenied)
	s.Before = nil
	converted := func() (at []int) {
		for _, doc := range s.Documents(coll) {
			if i := int(doc.Lookup("_id").Int32()); !doc.Lookup("a").Equal(was[i].Lookup("a")) {
				at = append(at, i)
			}
		}
		slices.Sort(at)
		return at
	}
	first := converted()
	if len(first) == 0 || len(first) == len(was) {
		t.Fatalf("%v are converted", first)
	}

	var status struct {
		Migrations  []struct{ ID string }
		Conversions []struct{ Status, By string }
	}
	read := func() {
		t.Helper()
		r := command(t, "status", "--db", "shop", "--output", "json", "--uri", s.URI).want(t, failure.ExitOK)
		if err := json.Unmarshal([]byte(r.stdout), &status); err != nil {
			t.Fatal(err)
		}
	}
	read()
	id := status.Migrations[0].ID
	command(t, "status", "--db", "shop", "--uri", s.URI).want(t, failure.ExitOK, "Migration "+id, "bsonids plan NEW --db shop --give-up ID")
	dir := trusting(t, s, func(p *plan.Plan) {
		for i, f := range p.Collections[0].Fields {
			if f.Stored == kinds.Subtype3 {
				p.Collections[0].Fields[i].Decision, p.Collections[0].Fields[i].Trust = plan.Convert("javaLegacy"), true
			}
		}
	})
	giveUp := func(id string, more ...string) result {
		t.Helper()
		return command(t, append([]string{"plan", dir, "--give-up", id, "--uri", s.URI}, more...)...)
	}
	apply := []string{"apply", dir, "--write", "--batch-timeout", "1s", "--uri", s.URI}
	giveUp(id, "--write").want(t, failure.ExitUsage, "it is there: give bsonids undo", "this command changed nothing")
	away := filepath.Join(t.TempDir(), "found")
	if err := os.Rename(lost, away); err != nil {
		t.Fatal(err)
	}
	giveUp("0123", "--write").want(t, failure.ExitUsage, `no migration "0123"`)
	command(t, "plan", dir, "--write", "--uri", s.URI).want(t, failure.ExitUsage, "--write is for --give-up")
	giveUp(id).want(t, failure.ExitOK, "there is no way back for them; to give this up, add --write")
	command(t, apply...).want(t, failure.ExitUsage, "has converted it from csharpLegacy", "--give-up "+id)

	// The run has not ended, and shows life.
	whole := s.Documents(records)
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup("find").StringValueOK(); of != record.Name {
			return f
		}
		var docs []bson.Raw
		for _, doc := range whole {
			var d bson.D
			if err := bson.Unmarshal(doc, &d); err != nil {
				t.Error(err)
			}
			d = slices.DeleteFunc(d, func(e bson.E) bool { return slices.Contains([]string{"ended", "outcome", "updated"}, e.Key) })
			docs = append(docs, kindstest.Marshal(t, append(d, bson.E{Key: "updated", Value: time.Now()})))
		}
		s.Put(records, docs...)
		return f
	}
	giveUp(id, "--write").want(t, failure.ExitUsage, "has not ended; wait for it", "this command changed nothing")
	s.Before = nil
	s.Put(records, whole...)

	giveUp(id, "--write").want(t, failure.ExitOK, "given up: ", "in "+lost+" are lost", "stay converted, and there is no way back for them")
	if read(); status.Conversions[0].Status != "given up" || status.Conversions[0].By == "" || !slices.Equal(converted(), first) {
		t.Errorf("%+v, %v", status, converted())
	}
	command(t, "status", "--db", "shop", "--uri", s.URI).want(t, failure.ExitOK, "orders was given up at 20", "Migration "+id+": "+lost)
	giveUp(id, "--write").want(t, failure.ExitOK, "given up before")

	command(t, apply...).want(t, failure.ExitOK)
	if n := len(converted()); n != len(was) {
		t.Errorf("%d documents are converted", n)
	}
	command(t, "verify", dir, "--uri", s.URI).want(t, failure.ExitOK)
	own, err := plan.ReadFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	giveUp(own.Migration, "--write").want(t, failure.ExitUsage, "it is there: give bsonids undo")
	// The directory turns up. Its log has values that it has not converted before it was killed, too, and that another run has
	// converted since.
	command(t, "status", away, "--uri", s.URI).want(t, failure.ExitOK, "given up")
	undo := []string{"undo", away, "--write", "--batch-timeout", "1s", "--uri", s.URI}
	command(t, undo...).want(t, failure.ExitIncomplete, "the value was changed after the conversion")
	command(t, append(undo, "--allow-changed")...).want(t, failure.ExitOK)
	for i := range was {
		if slices.Contains(converted(), i) == slices.Contains(first, i) {
			t.Errorf("%v are converted, and %v were", converted(), first)
		}
	}
	command(t, "undo", dir, "--write", "--batch-timeout", "1s", "--uri", s.URI).want(t, failure.ExitOK)
	if at := converted(); len(at) > 0 {
		t.Errorf("%v are not restored", at)
	}
}

// An undo went without an undo log that was lost. Its directory is there, and what the log had can be given up.
func TestGiveUpLostLog(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	coll := s.Client.Database("shop").Collection("orders")
	s.Put(coll, undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) { csharp(&p.Collections[0]) })
	command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
	p, err := plan.ReadFile(dir)
	logs, err2 := filepath.Glob(filepath.Join(dir, "*.undo"))
	if err != nil || err2 != nil || len(logs) != 1 {
		t.Fatal(err, err2, logs)
	}
	if err := os.Remove(logs[0]); err != nil {
		t.Fatal(err)
	}
	giveUp := []string{"plan", dir, "--give-up", p.Migration, "--write", "--uri", s.URI}
	command(t, giveUp...).want(t, failure.ExitUsage, "it is there: give bsonids undo")
	command(t, "undo", dir, "--write", "--batch-timeout", "1s", "--without-lost-logs", "--uri", s.URI).want(t, failure.ExitOK)
	command(t, giveUp...).want(t, failure.ExitOK, "given up: ")
	s.Put(coll, append(s.Documents(coll), kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(9)}, {Key: "a", Value: undetermined(t, 5)[4].Lookup("a")}}))...)
	edit(t, dir, "convert from csharpLegacy", "convert from javaLegacy")
	command(t, "apply", dir, "--write", "--uri", s.URI).want(t, failure.ExitOK)
}
