package servertest

import (
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
	args := func(collection string, extra ...string) []string {
		return append([]string{"convert", "--db", s.Database(), "--collection", collection, "--from", "javaLegacy", "--write"}, append(gentle, extra...)...)
	}
	var once sync.Once
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		answer := pass()
		if name, _ := r.command.Lookup("insert").StringValueOK(); name == "b" {
			once.Do(func() {
				for _, args := range [][]string{args("b"), args("b", "--take-over"), args("b", "--into", "c"), args("other", "--into", "b")} {
					if r := command(t, s, args...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "has not ended") {
						t.Error(r.stderr)
					}
				}
			})
		}
		return answer
	})
	command(t, p, args("a", "--into", "b")...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("b")), want)

	var converting sync.Once
	p = startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "a" && r.documents > 1 {
			converting.Do(func() {
				if r := command(t, s, args("other", "--into", "a")...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "has not ended") {
					t.Error(r.stderr)
				}
			})
		}
		return pass()
	})
	command(t, p, args("a")...).want(t, failure.ExitOK)

	// The record of a process that was killed.
	if _, err := db.Collection(record.Name).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "a/1"}},
		bson.D{{Key: "$unset", Value: bson.D{{Key: "ended", Value: true}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, args("b", "--to", "csharpLegacy", "--from", "standard")...).want(t, failure.ExitOK)
}
