package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// exchanged are the collections of the shop that are copied and exchanged, with the representations in
// which services wrote them.
var exchanged = map[string]uuidrep.Representation{"customers": uuidrep.CSharpLegacy, "orders": uuidrep.JavaLegacy, "invoices": uuidrep.JavaLegacy}

// The way of docs/converting-a-deployment.md: a shop of six collections is planned and converted, its
// copies are put in place, proven and released, and the cutover is undone. The processes are killed
// all the time. Services write between the steps, and what they wrote is converted with the rest.
func TestShop(t *testing.T) {
	s := mongotest.Start(t)
	s.Require(t, mongotest.CollMod)
	db := connect(t, s)
	want := shop(t, db, 12)
	fresh := map[string]map[string]bson.Raw{"customers": want["customers_standard"], "orders": want["orders"], "invoices": want["invoices"]}
	old := make(map[string]map[string]bson.Raw)
	for name := range exchanged {
		old[name] = all(t, db.Collection(name))
	}

	file := planned(t, s)
	dir := filepath.Dir(file)
	edit(t, file, left...)
	kills := untilDone(t, s, "apply", dir, "--write", "--batch-timeout", "1s")

	// A service writes to the old collections.
	id, customer := v4(0), v4(1)
	write(t, db.Collection("customers"), nil, bson.D{{Key: "_id", Value: in(id, uuidrep.CSharpLegacy)}, {Key: "name", Value: "new"}}, old["customers"])
	note(fresh["customers"], bson.D{{Key: "_id", Value: in(id, uuidrep.Standard)}, {Key: "name", Value: "new"}})
	write(t, db.Collection("invoices"), int32(3), bson.D{{Key: "_id", Value: int32(3)}, {Key: "order", Value: in(customer, uuidrep.JavaLegacy)}}, old["invoices"])
	note(fresh["invoices"], bson.D{{Key: "_id", Value: int32(3)}, {Key: "order", Value: in(customer, uuidrep.Standard)}})

	flags := []string{"--batch-timeout", "5s", "--retry-for", "30s"}
	kills += untilDone(t, s, append([]string{"cutover", dir, "--write"}, flags...)...)
	for name := range exchanged {
		equal(t, all(t, db.Collection(name)), fresh[name])
	}
	if r := command(t, s, append([]string{"cutover", dir, "--roll-back", "--write"}, flags...)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, `the cutover is in the state "switched"`) {
		t.Error(r.stderr)
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK) // beside the old collections
	command(t, s, "release", dir, "--write").want(t, failure.ExitOK)
	command(t, s, "release", dir, "--write").want(t, failure.ExitUsage)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	if r := command(t, s, append([]string{"cutover", dir, "--write"}, flags...)...).want(t, failure.ExitOK); !strings.Contains(r.stderr, `nothing to do, the cutover is in the state "released"`) {
		t.Error(r.stderr)
	}
	t.Logf("killed %d times", kills)
	// Another plan leaves what was put away.
	again, err := plan.Read(planned(t, s))
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, c := range again.Collections {
		for _, f := range c.Fields {
			if _, is := exchanged[strings.TrimSuffix(c.Name, "_before_cutover")]; is && f.Decision != plan.Leave {
				t.Errorf("%s %s: %s", c.Name, f.Path, f.Decision)
			}
		}
		if strings.HasSuffix(c.Name, "_before_cutover") {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("the plan has %d of the 3 collections that were put away", kept)
	}

	// A service writes to the new ones.
	late := v4(2)
	write(t, db.Collection("customers"), nil, bson.D{{Key: "_id", Value: in(late, uuidrep.Standard)}, {Key: "name", Value: "late"}}, fresh["customers"])
	note(old["customers"], bson.D{{Key: "_id", Value: in(late, uuidrep.CSharpLegacy)}, {Key: "name", Value: "late"}})
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete).prints(t, "it was inserted since")
	command(t, s, "verify", dir, "--allow-changed").want(t, failure.ExitOK)
	command(t, s, append([]string{"undo", "--write", "--db", s.Database(), "customers", "orders", "invoices"}, flags...)...).want(t, failure.ExitOK)
	for name := range exchanged {
		equal(t, all(t, db.Collection(name)), old[name])
		equal(t, all(t, db.Collection(name+"_standard")), fresh[name])
	}
	equal(t, all(t, db.Collection("sessions")), want["sessions"])
	equal(t, all(t, db.Collection("files")), want["files"])
	equal(t, all(t, db.Collection("countries")), want["countries"])
}

// copyAlso gives collections of the plan a new one each.
func copyAlso(t *testing.T, file string, names ...string) {
	t.Helper()
	changePlan(t, filepath.Dir(file), intoNew(names...))
}

// write inserts doc, or replaces the document with the _id by it, and notes it in docs.
func write(t *testing.T, coll *mongo.Collection, id any, doc bson.D, docs map[string]bson.Raw) {
	t.Helper()
	var err error
	if id == nil {
		_, err = coll.InsertOne(t.Context(), doc)
	} else {
		_, err = coll.ReplaceOne(t.Context(), bson.D{{Key: "_id", Value: id}}, doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	note(docs, doc)
}

// note adds a document to docs, which have the documents of a collection by _id.
func note(docs map[string]bson.Raw, doc bson.D) {
	raw, err := bson.Marshal(doc)
	if err != nil {
		panic(err)
	}
	docs[bson.Raw(raw).Lookup("_id").String()] = raw
}
