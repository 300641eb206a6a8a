package servertest

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// On a server that orders binary values as MongoDB does, the validator refuses old values and
// nothing else, before, during and after the conversion.
func TestGuardEffect(t *testing.T) {
	s, db := started(t, mongotest.CollMod, mongotest.BinaryOrder)
	g := &guarded{TB: t, server: s, s: s, db: db}
	g.create(options.CreateCollection().SetValidator(own))
	dir := g.plan("strict")
	add := func(refused bool, doc bson.D) {
		t.Helper()
		_, err := g.coll.InsertOne(t.Context(), append(bson.D{{Key: "n", Value: int32(1)}}, doc...))
		wantRefused(t, refused, doc, err)
	}
	set := func(refused bool, filter bson.D, key string, v any) {
		t.Helper()
		_, err := g.coll.UpdateOne(t.Context(), filter, bson.D{{Key: "$set", Value: bson.D{{Key: key, Value: v}}}})
		wantRefused(t, refused, filter, err)
	}
	old, is := in(v4(1), uuidrep.JavaLegacy), in(v4(1), uuidrep.Standard)
	short, long := bson.Binary{Subtype: 3, Data: make([]byte, 15)}, bson.Binary{Subtype: 3, Data: make([]byte, 17)}
	d := func(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }
	inserts := func() {
		t.Helper()
		add(true, d("customer", old))
		add(true, d("customer", bson.A{is, old}))
		add(true, d("items", d("sku", old)))
		add(true, d("items", bson.A{d("sku", is), d("sku", old)}))
		add(true, d("items", bson.A{d("sku", bson.A{is, old})}))
		add(false, bson.D{{Key: "customer", Value: is}, {Key: "items", Value: bson.A{d("sku", is)}}})
		add(false, d("customer", bson.A{short, long, is}))
		add(false, d("items", bson.A{d("sku", short), d("sku", long)}))
		add(false, d("other", old))
		_, err := g.coll.InsertOne(t.Context(), d("n", "text"))
		wantRefused(t, true, "the own validator", err)
	}
	// At level moderate, before the first batch.
	g.s = justBefore(t, s, func(r request) bool { return asks("update", "c")(r) && r.documents > 1 }, func() {
		g.wantLevel("moderate", 1)
		inserts()
		set(false, d("_id", int32(1)), "touched", int32(1)) // of a document with an old value
	})
	g.apply(dir, "--write").want(t, failure.ExitOK)
	g.s = s
	g.wantLevel("strict", 1)
	inserts()
	set(true, d("_id", int32(1)), "customer", old) // into converted documents
	set(true, d("_id", int32(2)), "items.0.sku", old)
	set(false, d("customer", is), "customer", bson.A{is, is}) // in a document that undo does not restore
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	g.wantLevel("strict", 0)
	add(false, d("customer", old))
}

// wantRefused fails the test unless the validator of a collection refused a write, or the write was carried out.
func wantRefused(t *testing.T, refused bool, what any, err error) {
	t.Helper()
	var se mongo.ServerError
	if failed := errors.As(err, &se) && se.HasErrorCode(121); failed != refused || err != nil && !failed {
		t.Errorf("%v: %v, want refused %v", what, err, refused)
	}
}

// A guard against text refuses UUIDs in every usual spelling and no other text, before, during and
// after the conversion. The second server does not know the conditions for documents in arrays.
func TestGuardText(t *testing.T) {
	s, db := started(t, mongotest.CollMod)
	coll := db.Collection("c")
	check(t, db.CreateCollection(t.Context(), "c", options.CreateCollection().SetValidator(own)))
	var docs []any
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: int32(i)}, {Key: "customer", Value: spelling(v4(i), i)},
			{Key: "note", Value: v4(i).String()}})
	}
	insert(t, coll, docs)
	before := all(t, coll)
	dir := prepared(t, s, "standard", convertFields("text", "", "customer"))
	edit(t, filepath.Join(dir, "plan.yaml"), "guard: none", "guard: strict")
	command(t, s, "apply", dir).want(t, failure.ExitOK).prints(t, "The guard of c: strict")
	try := func(refused bool, key string, v any) {
		t.Helper()
		_, err := coll.InsertOne(t.Context(), bson.D{{Key: "n", Value: int32(1)}, {Key: "test", Value: true}, {Key: key, Value: v}})
		wantRefused(t, refused, v, err)
	}
	inserts := func() {
		t.Helper()
		u := v4(1)
		for n := range 8 {
			try(true, "customer", spelling(u, n))
			try(true, "customer", bson.A{"", spelling(u, n)})
			try(false, "customer", spelling(u, n)+"\n")
			try(false, "customer", "x"+spelling(u, n))
			try(false, "note", spelling(u, n))
		}
		try(false, "customer", in(u, uuidrep.Standard))
		try(false, "customer", bson.A{"", "none", in(u, uuidrep.Standard)})
		did(t)(coll.DeleteMany(t.Context(), bson.D{{Key: "test", Value: true}}))
	}
	// At level moderate, before the first batch.
	p := justBefore(t, s, func(r request) bool { return asks("update", "c")(r) && r.documents > 1 }, inserts)
	command(t, p, "apply", dir, "--write").want(t, failure.ExitOK).prints(t, "the second pass found no old value")
	inserts()
	back := prepared(t, s, "standard", convertFields("standard", "text", "customer"))
	command(t, s, "apply", back, "--write").want(t, failure.ExitUsage).says(t, "is guarded against text in customer")
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// guide runs the commands of one of the two parts of the guide as written, up to the name of the database and the
// server, but for the roll-back of a cutover that was stopped. It calls after behind each with the directory.
func guide(t *testing.T, s target, db *mongo.Database, part int, after func(command, dir string)) {
	t.Helper()
	page := text(t, "../../../docs/changing-representation.md")
	parts := strings.Split(page, "## Another way: switch at the cut-over")
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	dir := filepath.Join(t.TempDir(), "app.d")
	for line := range strings.Lines(parts[part]) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "bsonids ")
		if !ok || strings.Contains(line, "--roll-back") {
			continue
		}
		args := strings.Fields(strings.Replace(strings.Replace(line, "--db app", "--db "+db.Name(), 1), "app.d", dir, 1))
		at := slices.Index(args, "--uri")
		if at < 0 {
			t.Fatalf("no server: %v", args)
		}
		command(t, s, slices.Delete(args, at, at+2)...).want(t, failure.ExitOK)
		after(args[0], dir)
	}
}

// The commands of the first part of the guide convert in place behind a guard.
func TestGuardGuide(t *testing.T) {
	g := startGuarded(t)
	rename(t, g.db, "c", "orders")
	g.coll = g.db.Collection("orders")
	var levels []string
	guide(t, g.s, g.db, 0, func(command, dir string) {
		if command == "plan" {
			edit(t, filepath.Join(dir, "plan.yaml"), "guard: none", "guard: strict")
		}
		levels = append(levels, command+" "+g.settings()[1]+strings.Repeat(" guarded", int(g.recorded())))
	})
	if want := []string{"scan strict", "plan strict", "apply strict", "apply strict guarded", "verify strict guarded", "release strict"}; !slices.Equal(levels, want) {
		t.Errorf("levels %q, want %q", levels, want)
	}
}

// Those of its second part switch at the cutover, and undo it.
func TestCutoverGuide(t *testing.T) {
	c := startCut(t, 0)
	for i := range 40 {
		c.put("customers", cutDoc(i, i))
		c.put("orders", cutDoc(i, i))
	}
	n := 0
	guide(t, c.s, c.db, 1, func(string, string) { n++ })
	if got := c.collections(); n != 6 || got != "customers customers_standard orders orders_standard" {
		t.Errorf("%d commands, collections %s", n, got)
	}
}
