package servertest

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// While a conversion copies into a collection, no other one converts this collection or copies into
// it, and while a collection is converted, none copies into it. A run whose process has ended
// without recording it does not count.
func TestIntoLiveTarget(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("a"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	seed(t, db.Collection("other"), 12, uuidrep.JavaLegacy, uuidrep.Standard)
	// apply returns the arguments that convert a collection, in place or into another one, to another order.
	apply := func(collection, from, into string, extra ...string) []string {
		to := map[string]string{"javaLegacy": "standard", "standard": "csharpLegacy"}[from]
		dir := filepath.Dir(planned(t, s, "--to", to, "--collection", collection))
		changePlan(t, dir, convertFields(from, ""), accepted, copiedInto(collection, into))
		return append(append([]string{"apply", dir, "--write"}, gentle...), extra...)
	}
	refused := func(why string, args []string) {
		t.Helper()
		if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, why) {
			t.Error(r.stderr)
		}
	}
	var once, second sync.Once
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		name, _ := r.command.Lookup("insert").StringValueOK()
		if name == "b" { // which has no documents
			once.Do(func() { refused("has not ended", apply("other", "javaLegacy", "b")) })
		}
		answer := pass()
		if name == "b" {
			second.Do(func() {
				refused("has not ended", apply("b", "standard", ""))
				refused("has not ended", apply("b", "standard", "", "--take-over"))
				refused("has not ended", apply("b", "standard", "c"))
				refused("has documents already", apply("other", "javaLegacy", "b"))
			})
		}
		return answer
	})
	command(t, p, apply("a", "javaLegacy", "b")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("b")), want)

	var converting sync.Once
	p = startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "a" && r.documents > 1 {
			converting.Do(func() { refused("has documents already", apply("other", "javaLegacy", "a")) })
		}
		return pass()
	})
	command(t, p, apply("a", "javaLegacy", "")...).want(t, failure.ExitOK)

	// The record of a process that was killed.
	if _, err := db.Collection(record.Name).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a/1"}},
		bson.D{{Key: "$unset", Value: bson.D{{Key: "ended", Value: true}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, apply("b", "standard", "")...).want(t, failure.ExitOK)
}
