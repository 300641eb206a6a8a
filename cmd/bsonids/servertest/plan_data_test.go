package servertest

import (
	"crypto/md5"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	fill := func(name, converted string, n int, doc func(i int, stored func(uuid.UUID, uuidrep.Representation) bson.Binary) bson.D) {
		t.Helper()
		var docs []any
		want[converted] = make(map[string]bson.Raw)
		if converted != name {
			want[name] = make(map[string]bson.Raw)
		}
		for i := range n {
			docs = append(docs, doc(i, in))
			raw, err := bson.Marshal(doc(i, func(u uuid.UUID, _ uuidrep.Representation) bson.Binary { return in(u, uuidrep.Standard) }))
			if err != nil {
				t.Fatal(err)
			}
			want[converted][bson.Raw(raw).Lookup("_id").String()] = raw
			if converted != name {
				old, err := bson.Marshal(docs[i])
				if err != nil {
					t.Fatal(err)
				}
				want[name][bson.Raw(old).Lookup("_id").String()] = old
			}
		}
		insert(t, db.Collection(name), docs)
	}
	type stored = func(uuid.UUID, uuidrep.Representation) bson.Binary
	customers, orders := make([]uuid.UUID, n), make([]uuid.UUID, n)
	for i := range n {
		customers[i], orders[i] = v4(i), v4(i)
	}
	skus := make([]uuid.UUID, n)
	for i := range skus {
		skus[i] = v4(i)
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
	sessions := make([]uuid.UUID, n)
	for i := range sessions {
		sessions[i] = v4(i)
	}
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
	b, err := os.ReadFile(file)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, plan.PlanFile), b, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}
