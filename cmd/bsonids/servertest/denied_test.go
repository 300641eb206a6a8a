package servertest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	db := client.Database("d")
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	if _, err := db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	before := all(t, db.Collection("c"))

	var denied atomic.Pointer[string]
	p := startProxy(t, s.Addr(), func(r request, pass func() []byte) []byte {
		if r.name() != *denied.Load() {
			return pass()
		}
		return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(13)}, {Key: "codeName", Value: "Unauthorized"},
			{Key: "errmsg", Value: "not authorized on d to execute command " + r.command.String()}})
	})

	want := func(what string, r result) {
		t.Helper()
		r.stderr = r.problems()
		// The note on the decision of an earlier run comes first.
		if first, rest, _ := strings.Cut(r.stderr, "\n"); strings.Contains(first, "--decide-anew") {
			r.stderr = rest
		}
		if r.code != failure.ExitDenied || strings.Count(strings.Split(r.stderr, " changed: ")[0], "\n") != 1 || !strings.Contains(r.stderr, "the user lacks a privilege: (Unauthorized) not authorized on d to execute command") ||
			strings.Contains(r.stderr, "{") {
			t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.stdout, r.stderr)
		}
	}
	dir := t.TempDir()
	ns := []string{"--db", "d", "--collection", "c"}
	conv := append(append([]string{"convert"}, ns...), "--from", "javaLegacy")
	inPlace := append(append([]string{}, conv...), "--write")
	for i, tt := range []struct {
		args     []string
		commands []string
	}{
		{append([]string{"scan", "--sample", "5"}, ns...), []string{"listCollections", "count", "aggregate"}},
		{append([]string{"scan", "--all"}, ns...), []string{"listCollections", "count", "find"}},
		{[]string{"scan"}, []string{"listDatabases"}},
		{conv, []string{"listCollections", "count", "find"}},
		{inPlace, []string{"listCollections", "update", "count", "find"}},
		{append(inPlace, "--into", "new"), []string{"listCollections", "count", "find", "listIndexes", "create", "insert", "createIndexes"}},
		{append(append([]string{"verify"}, ns...), "--from", "javaLegacy"), []string{"listCollections", "count", "find"}},
	} {
		for _, name := range tt.commands {
			denied.Store(&name)
			args := append([]string{}, tt.args...)
			for _, flag := range []string{"--state", "--undo-log"} {
				if slices.Contains(args, "--write") && (flag == "--state" || !slices.Contains(args, "--into")) {
					args = append(args, flag, filepath.Join(dir, fmt.Sprint(i, name, flag)))
				}
			}
			want(fmt.Sprintf("%q without %s", tt.args, name), command(t, p, args...))
			equal(t, all(t, db.Collection("c")), before)
			// Indexes are created after the documents. Every other missing privilege is found
			// before.
			if copied := len(all(t, db.Collection("new"))); copied > 0 && name != "createIndexes" {
				t.Errorf("%q without %s: %d documents in the new collection", tt.args, name, copied)
			}
			if err := db.Collection("new").Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}

	undo := filepath.Join(dir, "undo")
	command(t, s, append(append(inPlace, "--undo-log", undo), gentle...)...).want(t, failure.ExitOK)
	before = all(t, db.Collection("c"))
	for _, name := range []string{"find", "update"} {
		denied.Store(&name)
		want("undo without "+name, command(t, p, "undo", undo, "--write"))
		equal(t, all(t, db.Collection("c")), before)
	}
}
