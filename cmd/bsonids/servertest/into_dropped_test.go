package servertest

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A copy that somebody has dropped is made again, with its indexes, and status and a dry run say that it is not done: after it was finished, and after a run that
// was stopped when it compared the copy.
func TestCopyDropped(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		s := mongotest.Start(t)
		db := connect(t, s)
		want := seed(t, db.Collection("c"), 30, uuidrep.JavaLegacy, uuidrep.Standard)
		index := mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}, Options: options.Index().SetName("by n")}
		if _, err := db.Collection("c").Indexes().CreateOne(t.Context(), index); err != nil {
			t.Fatal(err)
		}
		file := planned(t, s)
		copyAlso(t, file, "c")
		args := []string{"apply", filepath.Dir(file), "--write", "--batch-timeout", "1s"}
		if stopped {
			var indexed atomic.Bool
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if r.name() == "createIndexes" {
					indexed.Store(true)
				}
				if name, _ := r.command.Lookup("find").StringValueOK(); indexed.Load() && name == "c_standard" {
					return nil
				}
				return pass()
			})
			if r := command(t, p, args...); r.code == failure.ExitOK || !indexed.Load() {
				t.Fatalf("exit code %d: %s", r.code, r.stderr)
			}
		} else {
			command(t, s, args...).want(t, failure.ExitOK)
		}
		made := db.Collection("c_standard")
		if err := made.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, verb := range [][]string{{"status", filepath.Dir(file)}, {"status", "--db", s.Database()}, {"apply", filepath.Dir(file)}} {
			r := command(t, s, append(verb, "--output", "json")...).want(t, failure.ExitOK)
			if !strings.Contains(r.stdout, `"status": "stopped"`) || strings.Contains(r.stdout, `"status": "done"`) {
				t.Errorf("stopped %v: %v: %s", stopped, verb, r.stdout)
			}
		}
		for range 2 { // the second finds that everything is done
			command(t, s, args...).want(t, failure.ExitOK)
			equal(t, all(t, made), want)
			specs, err := made.Indexes().ListSpecifications(t.Context())
			if err != nil || len(specs) != 2 {
				t.Errorf("stopped %v: %d indexes, %v", stopped, len(specs), err)
			}
		}
		command(t, s, "verify", filepath.Dir(file)).want(t, failure.ExitOK)
	}
}
