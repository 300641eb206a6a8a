package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/uuidrep"
)

// If a user lacks a privilege, the command says so in one sentence, and the data is not changed.
func TestDenied(t *testing.T) {
	s, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db := connectTo(t, s, "d")
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	if _, err := db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	before := all(t, db.Collection("c"))

	var denied atomic.Pointer[string]
	var sampled atomic.Bool
	p := startProxy(t, s.Addr(), func(r request, pass func() []byte) []byte {
		if r.name() != *denied.Load() {
			if r.name() == "count" && sampled.Load() {
				return ofMany(r)
			}
			return pass()
		}
		return r.fail(13, "not authorized on d to execute command "+r.command.String())
	})

	want := func(what string, r result) {
		t.Helper()
		_, r.stderr, _ = strings.Cut(r.stderr, " ERROR ") // behind the progress and what was not read
		if r.code != failure.ExitDenied || strings.Count(strings.Split(r.stderr, " changed: ")[0], "\n") != 1 || !strings.Contains(r.stderr, "the user lacks a privilege: (Unauthorized) not authorized on d to execute command") ||
			strings.Contains(r.stderr, "{") {
			t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.stdout, r.stderr)
		}
	}
	plan := func(into string) []string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "d.d")
		command(t, s, "plan", dir, "--db", "d").want(t, failure.ExitOK)
		changePlan(t, dir, convertFields("javaLegacy", ""), copiedInto("c", into))
		return []string{"apply", dir}
	}
	done := plan("")[1]
	ns := []string{"--db", "d", "--collection", "c"}
	check := func(args []string, commands ...string) {
		t.Helper()
		for _, name := range commands {
			denied.Store(&name)
			want(fmt.Sprintf("%q without %s", args, name), command(t, p, args...))
			equal(t, all(t, db.Collection("c")), before)
			// Indexes are created after the documents. Every other missing privilege is found before.
			if n := len(all(t, db.Collection("new"))); n > 0 && name != "createIndexes" {
				t.Errorf("%q without %s: %d documents in the new collection", args, name, n)
			}
			drop(t, db.Collection("new"))
		}
	}
	sampled.Store(true)
	check(append([]string{"scan"}, ns...), "listCollections", "count", "aggregate")
	sampled.Store(false)
	check(append([]string{"scan", "--all"}, ns...), "listCollections", "count", "find")
	check([]string{"scan"}, "listDatabases")
	check([]string{"plan", filepath.Join(t.TempDir(), "other.d"), "--db", "d"}, "listCollections")
	check(plan(""), "listCollections", "count", "find")
	check(append(plan(""), "--write"), "listCollections", "update", "count", "find")
	check(append(plan("new"), "--write"), "listCollections", "count", "find", "listIndexes", "create", "insert", "createIndexes")
	command(t, s, append([]string{"apply", done, "--write"}, gentle...)...).want(t, failure.ExitOK)
	before = all(t, db.Collection("c"))
	check([]string{"verify", done}, "listCollections", "count", "find")
	check([]string{"undo", done, "--write"}, "find", "update")
}
