package servertest

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// migrating is a migration of a collection that is copied, and of one that is converted in place.
type migrating struct {
	*cut
	dir string
}

// killedAt carries out the cutover in its own process, and kills it before or after its nth rename.
func (m *migrating) killedAt(t *testing.T, n int, after bool) {
	t.Helper()
	killed, out := m.killed(t, func(r request) bool {
		if r.rename() != "" {
			n--
		}
		return n == 0
	}, after, "cutover", m.dir, "--write", "--batch-timeout", "1s")
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

// nextCommand matches the first command with --write that a message names.
var nextCommand = regexp.MustCompile(`bsonids ([a-z]+ [^;,]*?--write)`)

// undo DIR in each state of a migration: it restores what was converted in place, and leaves a copy; or it
// changes nothing and names a command. The commands that it names, one after the other, lead to an undo that
// restores everything.
func TestUndoStates(t *testing.T) {
	run := func(args ...string) func(*testing.T, *migrating) {
		return func(t *testing.T, m *migrating) {
			command(t, m.s, append([]string{args[0], m.dir}, args[1:]...)...).want(t, failure.ExitOK)
		}
	}
	apply, cutover, release := run("apply", "--write"), run("cutover", "--write"), run("release", "--write")
	for _, tt := range []struct {
		state    string // as the table of docs/converting-a-deployment.md has it
		reach    []func(*testing.T, *migrating)
		cutover  string   // the state of the cutover, if it has not ended
		commands []string // that undo names until it is carried out
	}{
		{"in place, in part", []func(*testing.T, *migrating){func(t *testing.T, m *migrating) {
			var batches atomic.Int32
			p := startProxy(t, host(t, m.s), func(r request, pass func() []byte) []byte {
				if of, _ := r.command.Lookup("update").StringValueOK(); of == "b" && isBatch(r) && batches.Add(1) > 1 {
					return nil
				}
				return pass()
			})
			command(t, p, "apply", m.dir, "--write", "--batch", "5", "--workers", "1", "--batch-timeout", "1s").want(t, failure.ExitUnreachable)
		}}, "", nil},
		{"in place and copied", []func(*testing.T, *migrating){apply}, "", nil},
		{"following", []func(*testing.T, *migrating){func(t *testing.T, m *migrating) {
			m.s.(*mongotest.Server).Require(t, mongotest.ChangeStreams)
			b := inBackground(t, m.s, "apply", m.dir, "--follow", "--write")
			b.until(following)
			if r := command(t, m.s, "undo", m.dir, "--write").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "in use by another process") {
				t.Error(r.stderr)
			}
			b.interrupt().want(t, failure.ExitOK)
		}}, "", nil},
		{"fenced", []func(*testing.T, *migrating){apply, func(t *testing.T, m *migrating) { m.killedAt(t, 1, false) }},
			record.Switching, []string{"cutover --db DB a --roll-back --write"}},
		{"exchanged in part", []func(*testing.T, *migrating){apply, func(t *testing.T, m *migrating) { m.killedAt(t, 1, true) }},
			record.Switching, []string{"cutover --db DB a --roll-back --write"}},
		{"exchanged", []func(*testing.T, *migrating){apply, cutover},
			record.Switched, []string{"release --db DB a --write", "undo --db DB a --write"}},
		{"released", []func(*testing.T, *migrating){apply, cutover, release}, "", []string{"undo --db DB a --write"}},
		{"put back", []func(*testing.T, *migrating){apply, cutover, release, func(t *testing.T, m *migrating) {
			command(t, m.s, m.line("undo", "--write")...).want(t, failure.ExitOK)
		}}, "", nil},
	} {
		t.Run(tt.state, func(t *testing.T) {
			m := &migrating{cut: startCut(t, 0)}
			m.names = []string{"a"}
			var docs []any
			for i := range 20 {
				docs = append(docs, cutDoc(i, 0))
			}
			insert(t, m.db.Collection("a"), docs)
			seed(t, m.db.Collection("b"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
			before := m.contents()
			m.dir = prepared(t, m.s.(*mongotest.Server), "standard")
			for _, reach := range tt.reach {
				reach(t, m)
			}
			if got := statusCutovers(t, m.s, "--db", m.db.Name()); got != tt.cutover {
				t.Fatalf("the state of the cutover is %q", got)
			}
			undo := []string{"undo", m.dir}
			for _, next := range tt.commands {
				reached := m.contents()
				for _, more := range [][]string{nil, {"--write"}} {
					r := command(t, m.s, append(undo, more...)...).want(t, failure.ExitUsage)
					named := nextCommand.FindStringSubmatch(r.stderr)
					if named == nil || strings.ReplaceAll(named[1], m.db.Name(), "DB") != next {
						t.Fatalf("%q is named, want %q: %s", named, next, r.stderr)
					}
				}
				m.want(reached)
				args := strings.Fields(strings.ReplaceAll(next, "DB", m.db.Name()))
				if args[0] != "release" {
					args = append(args, "--batch-timeout", "1s")
				}
				command(t, m.s, args...).want(t, failure.ExitOK)
			}
			reached := m.contents()
			command(t, m.s, undo...).want(t, failure.ExitOK)
			m.want(reached)
			for range 2 {
				if r := command(t, m.s, append(undo, "--write")...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "drop a_standard") {
					t.Error(r.stdout)
				}
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

// want compares all collections.
func (m *migrating) want(want map[string]map[string]bson.Raw) {
	m.Helper()
	equalAll(m, m.contents(), want)
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
