package cutover

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// switched returns a world whose new collections are in place. Services write from then on.
func switched(t *testing.T, fresh func() *world, names []string) *world {
	t.Helper()
	w := fresh()
	random := w.random
	w.random = nil
	if state, err, _ := w.run(names, false); err != nil || state != record.Switched {
		t.Fatal(state, err)
	}
	w.random, w.calls, w.behind = random, 0, 0
	return w
}

func putBack(accept bool) func(*Cutover) error {
	return func(c *Cutover) error {
		c.Accept = accept
		return c.PutBack(context.Background(), "on request")
	}
}

// What was written to a new collection in spite of the fence forbids the way back and the release, unless it is accepted. What
// was deleted there is deleted from the old collection.
func TestWrittenInSpite(t *testing.T) {
	names := []string{"a", "b"}
	for _, streams := range []bool{true, false} {
		fresh := func() *world { return newWorld(t, false, streams, names...) }
		for _, id := range []string{"+a/0", "+a/inserted", "a/old form"} {
			w := switched(t, fresh, names)
			value := "new written"
			w.put("a", id, &value)
			w.truth[base(id)] = "written"
			if state, err, _ := w.runAs(names, putBack(false)); err == nil || !strings.Contains(err.Error(), "1 documents were inserted or changed") || state != record.Switched {
				t.Error(id, state, err)
			}
			if len(w.colls["a old"].docs) != 2 || w.asides[base(id)] != "written" {
				t.Error(id, w.colls["a old"].docs, w.asides)
			}
			if state, err, _ := w.runAs(names, putBack(true)); err != nil || state != record.RolledBack {
				t.Fatal(id, state, err)
			}
			w.check(id, names, record.RolledBack)
			if w.colls["a new"].docs[id] != value || w.saw != 1 {
				t.Errorf("%s: %v, %d", id, w.colls["a new"].docs, w.saw)
			}
		}
		w := switched(t, fresh, names)
		w.put("b", "+b/1", nil)
		delete(w.truth, "b/1")
		if state, err, _ := w.runAs(names, putBack(false)); err != nil || state != record.RolledBack || len(w.asides) > 0 {
			t.Fatal(state, err, w.asides)
		}
		w.check("deleted", names, record.RolledBack)
	}
}

// A roll-back after the exchange that is killed at any command ends by the same command, as one that is not killed.
func TestPutBackKilled(t *testing.T) {
	names := []string{"a", "b"}
	variants(t, names, func(t *testing.T, fresh func() *world) {
		w := switched(t, fresh, names)
		if state, err, _ := w.runAs(names, putBack(true)); err != nil || state != record.RolledBack {
			t.Fatal(state, err)
		}
		calls := w.calls
		w.check("not killed", names, record.RolledBack)
		for first := 1; first <= calls; first++ {
			for _, done := range []bool{false, true} {
				for _, second := range seconds(first, calls) {
					w := switched(t, fresh, names)
					what := fmt.Sprintf("killed at %d and %d, done=%v", first, second, done)
					w.die, w.done = first, done
					state, err, dead := w.runAs(names, putBack(true))
					w.calls, w.die = 0, second
					for dead {
						state, err, dead = w.runAs(names, putBack(true))
						w.calls, w.die = 0, 0
					}
					if err != nil || state != record.RolledBack {
						t.Fatal(what, state, err)
					}
					w.check(what, names, record.RolledBack)
				}
			}
		}
	})
}

// A collection that was released stays in place, with the old one as it was.
func TestReleasedStays(t *testing.T) {
	names := []string{"a"}
	w := switched(t, func() *world { return newWorld(t, false, true, names...) }, names)
	if state, err, _ := w.runAs(names, func(c *Cutover) error { _, err := c.Release(context.Background()); return err }); err != nil || state != record.Released {
		t.Fatal(state, err)
	}
	old := w.colls["a old"]
	if state, err, _ := w.runAs(names, putBack(true)); err == nil || state != record.Released || w.colls["a old"] != old || w.colls["a new"] != nil || len(old.docs) != 2 {
		t.Error(state, err, w.colls)
	}
}

// What programs write to a new collection while the others are exchanged is counted, if a stream shows it, or if the server
// dropped the fence.
func TestCountsWrittenInSpite(t *testing.T) {
	names := []string{"a", "b"}
	for _, quirks := range []bool{false, true} {
		for _, streams := range []bool{false, true} {
			w := newWorld(t, quirks, streams, names...)
			w.after = func(from, to string) {
				if to != "b" {
					return
				}
				for id, value := range map[string]string{"+a/0": "new written", "+a/more": "new more"} {
					w.put("a", id, &value)
					w.truth[base(id)] = strings.TrimPrefix(value, "new ")
				}
				w.put("a", "+a/1", nil)
				delete(w.truth, "a/1")
			}
			if state, err, _ := w.run(names, false); err != nil || state != record.Switched {
				t.Fatal(state, err)
			}
			want := int64(2)
			if !quirks && !streams {
				want = 0
			}
			if c := w.record(); c.Conflicts() != want {
				t.Errorf("quirks %v, streams %v: %d documents", quirks, streams, c.Conflicts())
			}
			_, err, _ := w.runAs(names, func(c *Cutover) error { _, err := c.Release(context.Background()); return err })
			if (err == nil) != (want == 0) {
				t.Errorf("quirks %v, streams %v: released: %v", quirks, streams, err)
			}
		}
	}
}
