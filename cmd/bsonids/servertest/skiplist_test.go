package servertest

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// lines returns the lines of a file, sorted.
func lines(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(strings.Lines(string(b)))
}

// A conversion that stopped does not continue without the list that it wrote, in place or as a copy. With
// it, each value is listed once.
func TestSkipListContinued(t *testing.T) {
	for _, changes := range [][]func(*plan.Plan){nil, {intoNew("c")}} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		const n = 40
		var docs []any
		for i := range n {
			// Text fits no order, and is left.
			odd := bson.Binary{Subtype: 3, Data: []byte("0123456789abcde" + string(rune('A'+i)))}
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: bson.A{in(v4(i), uuidrep.JavaLegacy), odd}}})
		}
		insert(t, coll, docs)
		dir := prepared(t, s, "standard", append([]func(*plan.Plan){convertFields("javaLegacy", "")}, changes...)...)
		var calls atomic.Int32
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() != "update" && r.name() != "insert" || r.documents != 5 {
				return pass()
			}
			if calls.Add(1) < 4 {
				return pass()
			}
			return r.refuse(11601, "it was Interrupted")
		})
		args := []string{"apply", dir, "--write", "--batch", "5", "--workers", "1"}
		command(t, p, args...).want(t, failure.ExitFailed)
		list := skipList(t, dir)
		b, err := os.ReadFile(list)
		if err != nil || strings.Count(string(b), "\n") < 15 {
			t.Fatalf("%q, %v", b, err)
		}
		before := all(t, coll)
		for how, spoil := range map[string]func() error{
			"missing": func() error { return os.Remove(list) },
			"empty":   func() error { return os.WriteFile(list, nil, 0o600) },
			"cut":     func() error { return os.WriteFile(list, b[:len(b)/2], 0o600) },
			"edited":  func() error { return os.WriteFile(list, append([]byte("{\"x\":1}\n"), b...), 0o600) },
		} {
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			r := command(t, s, args...).want(t, failure.ExitUsage)
			if !strings.Contains(r.stderr, list) || !strings.Contains(r.stderr, "put the file back") {
				t.Errorf("%s: %s", how, r.stderr)
			}
			equal(t, all(t, coll), before)
		}
		if err := os.WriteFile(list, b, 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, s, args...).want(t, failure.ExitIncomplete)
		is := lines(t, list)
		if len(is) != n || len(slices.Compact(slices.Clone(is))) != n {
			t.Errorf("%d lines of %d values", len(is), n)
		}
	}
}
