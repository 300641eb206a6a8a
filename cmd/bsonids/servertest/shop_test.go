package servertest

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// shop fills a database with collections that refer to each other: customers, which a C# program
// wrote with UUIDs as _id; orders, invoices and carts of a Java program; files with checksums of
// subtype 3; and countries without UUIDs. It returns what each collection, and the copy of
// customers, must have after the conversion to standard.
func shop(t testing.TB, db *mongo.Database, n int) map[string]map[string]bson.Raw {
	t.Helper()
	want := make(map[string]map[string]bson.Raw)
	type stored = func(uuid.UUID, uuidrep.Representation) bson.Binary
	standard := func(u uuid.UUID, _ uuidrep.Representation) bson.Binary { return in(u, uuidrep.Standard) }
	fill := func(name, converted string, n int, doc func(i int, in stored) bson.D) {
		t.Helper()
		var docs []any
		want[name], want[converted] = make(map[string]bson.Raw), make(map[string]bson.Raw)
		for i := range n {
			docs = append(docs, doc(i, in))
			note(want[name], doc(i, in))
			note(want[converted], doc(i, standard))
		}
		insert(t, db.Collection(name), docs)
	}
	var customers, orders, skus, sessions []uuid.UUID
	for i := range n {
		customers, orders, skus, sessions = append(customers, v4(i)), append(orders, v4(i)), append(skus, v4(i)), append(sessions, v4(i))
	}
	fill("customers", "customers_standard", n, func(i int, in stored) bson.D {
		return bson.D{{Key: "_id", Value: in(customers[i], uuidrep.CSharpLegacy)}, {Key: "name", Value: fmt.Sprint("c", i)}}
	})
	fill("orders", "orders", n, func(i int, in stored) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "number", Value: in(orders[i], uuidrep.JavaLegacy)}, {Key: "customer", Value: in(customers[i], uuidrep.JavaLegacy)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: in(skus[i], uuidrep.JavaLegacy)}}}}}
	})
	fill("invoices", "invoices", n, func(i int, in stored) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "order", Value: in(orders[i], uuidrep.JavaLegacy)}}
	})
	fill("sessions", "sessions", n, func(i int, in stored) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "token", Value: in(sessions[i], uuidrep.Unspecified)}, {Key: "device", Value: in(sessions[n-1-i], uuidrep.PythonLegacy)}}
	})
	fill("files", "files", n, func(i int, _ stored) bson.D {
		sum := md5.Sum([]byte(fmt.Sprint("file", i)))
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "md5", Value: bson.Binary{Subtype: 3, Data: sum[:]}}}
	})
	fill("countries", "countries", 3, func(i int, _ stored) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "name", Value: "x"}}
	})
	return want
}

// planned makes the plan of the database in a new directory, and returns the path of its file.
func planned(t testing.TB, s *mongotest.Server, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop.d")
	command(t, s, append([]string{"plan", dir, "--db", s.Database()}, args...)...).want(t, failure.ExitOK)
	return filepath.Join(dir, plan.PlanFile)
}

// text returns the text of a file.
func text(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// again copies the plan in the file to the new directory dir.
func again(t testing.TB, file, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, plan.PlanFile), text(t, file))
}

// exchanged are the collections of the shop that are copied and exchanged, with the representations in
// which services wrote them.
var exchanged = map[string]uuidrep.Representation{"customers": uuidrep.CSharpLegacy, "orders": uuidrep.JavaLegacy, "invoices": uuidrep.JavaLegacy}

// The way of docs/converting-a-deployment.md: a shop of six collections is planned and converted, its
// copies are put in place, put back, put in place again, proven and released. The processes are killed
// all the time. Services write between the steps, and what they wrote is converted with the rest.
func TestShop(t *testing.T) {
	s, db := started(t, mongotest.CollMod)
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
	kills += untilDone(t, s, append([]string{"cutover", dir, "--roll-back", "--write"}, flags...)...)
	for name := range exchanged {
		equal(t, all(t, db.Collection(name)), old[name])
	}
	kills += untilDone(t, s, append([]string{"cutover", dir, "--write"}, flags...)...)
	for name := range exchanged {
		equal(t, all(t, db.Collection(name)), fresh[name])
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK) // beside the old collections
	command(t, s, "release", dir, "--write").want(t, failure.ExitOK)
	command(t, s, "release", dir, "--write").want(t, failure.ExitOK).prints(t, "was released at")
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, append([]string{"cutover", dir, "--write"}, flags...)...).want(t, failure.ExitOK).says(t, "was released at")
	t.Logf("killed %d times", kills)
	// Another plan leaves what was put away.
	kept := 0
	for _, c := range reread(t, planned(t, s)).Collections {
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
	command(t, s, "verify", dir).want(t, failure.ExitIncomplete).prints(t, "it was inserted since")
	command(t, s, "verify", dir, "--allow-changed").want(t, failure.ExitOK)
	command(t, s, append([]string{"undo", dir, "--write"}, flags...)...).want(t, failure.ExitUsage).says(t, "point of no return")
	for name := range exchanged {
		equal(t, all(t, db.Collection(name)), fresh[name])
		equal(t, all(t, db.Collection(name+"_before_cutover")), old[name])
	}
	for _, name := range []string{"sessions", "files", "countries"} {
		equal(t, all(t, db.Collection(name)), want[name])
	}
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
