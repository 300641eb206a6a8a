package cutover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// released returns a world whose cutover was released. Services write again from then on.
func released(t *testing.T, fresh func() *world, names []string) *world {
	t.Helper()
	w := fresh()
	random := w.random
	w.random = nil
	if state, err, _ := w.run(names, false); err != nil || state != record.Switched {
		t.Fatal(state, err)
	}
	if state, err, _ := w.runAs(names, func(c *Cutover) error { _, err := c.Release(context.Background()); return err }); err != nil || state != record.Released {
		t.Fatal(state, err)
	}
	w.random, w.calls, w.behind = random, 0, 0
	return w
}

func undo(c *Cutover) error { return c.Undo(context.Background()) }

// An undo of a released cutover compares while services write. Behind the fence, it compares what changed
// since, and not everything.
func TestUndoAhead(t *testing.T) {
	names := []string{"a", "b"}
	for _, streams := range []bool{true, false} {
		w := released(t, func() *world { return newWorld(t, false, streams, names...) }, names)
		for _, name := range names {
			for i := range 50 {
				value := fmt.Sprint("write ", i)
				id := fmt.Sprintf("%s/later%d", name, i)
				w.put(name, "+"+id, &value)
				w.truth[id] = value
			}
		}
		if state, err, _ := w.runAs(names, undo); err != nil || state != record.RolledBack {
			t.Fatal(state, err)
		}
		if streams != (w.behind == 0) {
			t.Errorf("streams %v: %d documents were compared behind the fence", streams, w.behind)
		}
		w.check("undone", names, record.RolledBack)
	}
}

// An undo that is killed at any command ends by the same command, as one that is not killed, also if it
// was given up by a release in between.
func TestUndoKilled(t *testing.T) {
	names := []string{"a", "b"}
	variants(t, names, func(t *testing.T, fresh func() *world) {
		w := released(t, fresh, names)
		if state, err, _ := w.runAs(names, undo); err != nil || state != record.RolledBack {
			t.Fatal(state, err)
		}
		calls := w.calls
		w.check("not killed", names, record.RolledBack)
		givenUp := 0
		for first := 1; first <= calls; first++ {
			for _, done := range []bool{false, true} {
				for _, second := range seconds(first, calls) {
					w := released(t, fresh, names)
					what := fmt.Sprintf("killed at %d and %d, done=%v", first, second, done)
					w.die, w.done = first, done
					state, err, dead := w.runAs(names, undo)
					w.calls, w.die = 0, second
					for dead {
						state, err, dead = w.runAs(names, func(c *Cutover) error {
							if c.State == record.RolledBack {
								return nil
							}
							if rand.N(4) == 0 && c.State == record.Undoing || c.State == record.Releasing {
								if _, err := c.Release(context.Background()); err != nil {
									return err
								}
								givenUp++
							}
							return c.Undo(context.Background())
						})
						w.calls, w.die = 0, 0
					}
					if err != nil || state != record.RolledBack {
						t.Fatal(what, state, err)
					}
					w.check(what, names, record.RolledBack)
				}
			}
		}
		if givenUp == 0 {
			t.Error("no undo was given up")
		}
	})
}
