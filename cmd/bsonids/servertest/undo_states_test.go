package servertest

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// migrating is a migration of a collection that is copied, and of one that is converted in place.
type migrating struct{ *cut }

// killedAt carries out the cutover, or the undo, in its own process, and kills it before or after its nth rename.
func (m *migrating) killedAt(t *testing.T, verb string, n int, after bool) {
	t.Helper()
	killed, out := m.killed(t, func(r request) bool {
		if r.rename() != "" {
			n--
		}
		return n == 0
	}, after, verb, m.dir, "--write", "--batch-timeout", "1s")
	if !killed {
		t.Fatalf("it was not killed: %s", out)
	}
}

// killed runs a command in its own process, and kills it before or after the server carries out the
// first request that at reports. It reports whether there was one, and returns what the command printed.
func (c *cut) killed(t *testing.T, at func(request) bool, after bool, args ...string) (killed bool, printed string) {
	t.Helper()
	process := make(chan *exec.Cmd, 1)
	var mu sync.Mutex
	var dead bool
	p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
		mu.Lock()
		if dead || !at(r) {
			mu.Unlock()
			return pass()
		}
		defer mu.Unlock()
		if after {
			pass()
		}
		_ = (<-process).Process.Kill()
		dead = true
		return nil
	})
	cmd, out := start(t, p, args...)
	process <- cmd
	_ = cmd.Wait()
	mu.Lock()
	defer mu.Unlock()
	return dead, out.String()
}

// undo DIR in each state of a migration: it restores what was converted in place, puts the old collection of a
// cutover back, also if it is killed meanwhile, and leaves the copy. Without --write it changes nothing.
func TestUndoStates(t *testing.T) {
	run := func(args ...string) func(*testing.T, *migrating) {
		return func(t *testing.T, m *migrating) {
			command(t, m.s, append([]string{args[0], m.dir}, args[1:]...)...).want(t, failure.ExitOK)
		}
	}
	killed := func(verb string, after bool) func(*testing.T, *migrating) {
		return func(t *testing.T, m *migrating) { m.killedAt(t, verb, 1, after) }
	}
	apply, cutover := run("apply", "--write"), run("cutover", "--write")
	for _, tt := range []struct {
		state   string // as the table of docs/converting-a-deployment.md has it
		reach   []func(*testing.T, *migrating)
		cutover string // the state of the cutover, if it has not ended
		renames bool   // undo renames the collections
	}{
		{"in place, in part", []func(*testing.T, *migrating){func(t *testing.T, m *migrating) {
			command(t, lostAfter(t, m.s, 1, writesTo("b")), "apply", m.dir, "--write", "--batch", "5", "--workers", "1", "--batch-timeout", "1s").want(t, failure.ExitUnreachable)
		}}, "", false},
		{"in place and copied", []func(*testing.T, *migrating){apply}, "", false},
		{"fenced", []func(*testing.T, *migrating){apply, killed("cutover", false)}, record.Switching, false},
		{"exchanged in part", []func(*testing.T, *migrating){apply, killed("cutover", true)}, record.Switching, true},
		{"exchanged", []func(*testing.T, *migrating){apply, cutover}, record.Switched, true},
		{"put back", []func(*testing.T, *migrating){apply, cutover, func(t *testing.T, m *migrating) {
			command(t, m.s, m.lineByID("undo", "--write")...).want(t, failure.ExitOK)
		}}, "", false},
		{"rolled back", []func(*testing.T, *migrating){apply, cutover, run("cutover", "--roll-back", "--write")}, "", false},
	} {
		t.Run(tt.state, func(t *testing.T) {
			m := &migrating{cut: startCut(t, 0)}
			insert(t, m.db.Collection("a"), cutDocs(20))
			seed(t, m.db.Collection("b"), 20, uuidrep.JavaLegacy)
			before := m.contents()
			m.dir = prepared(t, m.s.(*mongotest.Server))
			for _, reach := range tt.reach {
				reach(t, m)
			}
			if got := statusCutovers(t, m.s, "--db", m.db.Name()); got != tt.cutover {
				t.Fatalf("the state of the cutover is %q", got)
			}
			reached := m.contents()
			command(t, m.s, "undo", m.dir).want(t, failure.ExitOK).prints(t, "dry run")
			if got := statusCutovers(t, m.s, "--db", m.db.Name()); got != tt.cutover {
				t.Fatalf("the state of the cutover is %q after a dry run", got)
			}
			equalAll(t, m.contents(), reached)
			for _, after := range []bool{false, true} {
				if tt.renames {
					m.killedAt(t, "undo", 1, after)
				}
			}
			for range 2 {
				command(t, m.s, "undo", m.dir, "--write", "--batch-timeout", "1s").want(t, failure.ExitOK).prints(t, "drop a_standard")
				got := m.contents()
				delete(got, "a_standard")
				equalAll(t, got, before)
			}
		})
	}
}

// contents returns the documents of each collection, without the record.
func (m *migrating) contents() map[string]map[string]bson.Raw {
	m.Helper()
	out := make(map[string]map[string]bson.Raw)
	for _, name := range strings.Fields(m.collections()) {
		out[name] = all(m, m.db.Collection(name))
	}
	return out
}

func equalAll(t testing.TB, got, want map[string]map[string]bson.Raw) {
	t.Helper()
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the collections are %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name, docs := range want {
		equal(t, got[name], docs)
	}
}
