package servertest

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A run that continues after a stop has the exit code of the whole conversion: the documents that
// the stopped run skipped are still skipped.
func TestExitCodeAfterResume(t *testing.T) {
	for _, changes := range [][]func(*plan.Plan){nil, {intoNew("c")}} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(-1)}, {Key: "id", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}})
		seed(t, coll, 60, uuidrep.JavaLegacy, uuidrep.Standard)
		var writes atomic.Int32
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" && r.documents > 1 || r.name() == "insert" {
				if writes.Add(1) > 3 {
					return nil
				}
			}
			return pass()
		})
		args := []string{"apply", prepared(t, s, "standard", changes...), "--write", "--batch", "10"}
		command(t, p, args...).want(t, failure.ExitUnreachable)
		for range 3 {
			command(t, s, args...).want(t, failure.ExitIncomplete)
		}
	}
}

// The default batch is 1,000 documents, and FerretDB 1 stops responding when more than a hundred
// updates are in progress.
func TestUpdatesUnderWay(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	if server.WriteLimit(t.Context(), db.Client()) == 0 {
		mongotest.Skip(t, "the command limits updates on FerretDB 1 only")
	}
	want := seed(t, db.Collection("c"), 130, uuidrep.JavaLegacy, uuidrep.Standard)
	var under atomic.Int32
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "update" {
			n := int32(r.documents)
			if under.Add(n) > 100 {
				t.Error("more than 100 updates are under way")
			}
			defer under.Add(-n)
		}
		return pass()
	})
	dir := filepath.Dir(planned(t, s))
	command(t, p, "apply", dir, "--write", "--workers", "8").want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), want)
	command(t, p, "undo", dir, "--write").want(t, failure.ExitOK)
}

// A scan names the views that it did not read, unless the user named the collections.
func TestViewsAreNamed(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() == "listCollections" {
			return r.cursor(s.Database()+".$cmd.listCollections", bson.D{{Key: "name", Value: "c"}, {Key: "type", Value: "collection"}},
				bson.D{{Key: "name", Value: "orders_v"}, {Key: "type", Value: "view"}})
		}
		return pass()
	})
	if r := command(t, p, "scan", "--db", s.Database()).want(t, failure.ExitOK); !strings.Contains(r.stderr, "views are scanned only") || !strings.Contains(r.stderr, "orders_v") {
		t.Error(r.stderr)
	}
	if r := command(t, p, "scan", "--db", s.Database(), "--collection", "c").want(t, failure.ExitOK); strings.Contains(r.problems(), "view") {
		t.Error(r.stderr)
	}
}
