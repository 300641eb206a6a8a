package cutover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// merged reports whether the document was written between the two renames.
func (w *world) merged(name, id string) bool {
	for other, c := range w.colls {
		if _, ok := c.docs[id]; ok && strings.HasPrefix(other, name+"_between_") {
			return true
		}
	}
	return false
}

// run runs the command once, and reports whether it was killed.
func (w *world) run(names []string, back bool) (state string, err error, dead bool) {
	return w.runAs(names, func(c *Cutover) error {
		if back || c.State == record.RollingBack {
			if c.Token == "" {
				return nil
			}
			return putBack(true)(c)
		}
		return c.Run(context.Background())
	})
}

func (w *world) runAs(names []string, do func(*Cutover) error) (state string, err error, dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
			if w.forgets {
				w.oldest = w.clock
			}
		}
	}()
	c := &Cutover{Cutover: &record.Cutover{}, DB: w, Notice: func(string) {}}
	if w.saved != nil {
		if err := bson.Unmarshal(w.saved, c.Cutover); err != nil {
			w.t.Fatal(err)
		}
	} else {
		var exchanges []record.Exchange
		for _, name := range names {
			old, fresh := w.colls[name], w.colls[name+" new"]
			exchanges = append(exchanges, record.Exchange{Name: name, New: name + " new", Kept: name + " old", OldID: &old.id, NewID: &fresh.id, OldHad: old.settings, NewHad: fresh.settings})
		}
		c.Cutover = &record.Cutover{Saved: record.Saved{ID: "test/cutover", State: record.Comparing}, Collections: exchanges}
	}
	// Once a collection may have been renamed, writes are refused until the release, or until all are put back.
	w.indexed, w.late = make(map[string]bool), c.asked() || c.State == record.RollingBack
	err = do(c)
	return c.State, err, false
}

// record returns the document of the cutover.
func (w *world) record() (c record.Cutover) {
	w.t.Helper()
	if err := bson.Unmarshal(w.saved, &c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// check fails the test unless the cutover has ended in the state, and nothing was lost.
func (w *world) check(what string, names []string, state string) {
	w.t.Helper()
	w.die, w.random = 0, nil
	at := func(name string) string {
		c := w.colls[name]
		if c == nil {
			return "nothing"
		}
		return strings.Trim(fmt.Sprint(c.settings.Level, " ", c.settings.Action, " ", string(c.settings.Validator)), " ")
	}
	for _, name := range names {
		c := w.colls[name]
		if c == nil {
			w.t.Fatalf("%s: there is no %s", what, name)
		}
		n := 0
		for id, v := range w.truth {
			if !strings.HasPrefix(id, name+"/") {
				continue
			}
			got, ok := c.docs[id]
			if n, is := c.docs["+"+id]; is && !ok {
				got, ok = n, true
			}
			if ok {
				n++
			}
			if left, is := w.asides[id]; is && state == record.RolledBack && left == v {
				continue // it is in the new collection
			}
			if strings.TrimPrefix(got, "new ") != v || !ok {
				w.t.Fatalf("%s: %s is %q, and was written as %q", what, id, got, v)
			}
			if v == "first" && (state == record.Switched) != (got == newForm(v)) {
				w.t.Fatalf("%s: %s is %q in the state %s", what, id, got, state)
			}
		}
		if n != len(c.docs) {
			w.t.Fatalf("%s: %s has %d documents, want %d: %v, %v", what, name, len(c.docs), n, c.docs, w.truth)
		}
		_, old := w.colls[name+" old"]
		_, fresh := w.colls[name+" new"]
		if (state == record.Switched) != old || (state == record.Switched) == fresh {
			w.t.Fatalf("%s: old %v, new %v in the state %s", what, old, fresh, state)
		}
		switch {
		case state == record.Switched && !c.settings.Equal(Fence()):
			w.t.Fatalf("%s: %s has no fence: %s", what, name, at(name))
		case state != record.Switched && (at(name) != "moderate warn "+name || at(name+" new") != "off error"):
			w.t.Fatalf("%s: %s and %s new have %s, %s", what, name, name, at(name), at(name+" new"))
		}
	}
	c := w.record()
	if w.saw = c.Conflicts(); state != record.Switched {
		return
	}
	if left, err := (&Cutover{Cutover: &c, DB: w, Accept: true}).Release(context.Background()); err != nil || len(left) > 0 || c.State != record.Released {
		w.t.Fatal(what, left, err, c.State)
	}
	for _, name := range names {
		if at(name) != "off error" {
			w.t.Fatalf("%s: %s was released and has %s", what, name, at(name))
		}
	}
}

// variants calls f for each kind of server, without and with a writer.
func variants(t *testing.T, names []string, f func(t *testing.T, fresh func() *world)) {
	for _, quirks := range []bool{false, true} {
		for _, streams := range []string{"kept", "forgotten", "none"} {
			if quirks && streams != "kept" && *seeds <= 2 {
				continue
			}
			for seed := range uint64(*seeds) {
				t.Run(fmt.Sprintf("quirks=%v streams=%v seed=%d", quirks, streams, seed), func(t *testing.T) {
					t.Parallel()
					f(t, func() *world {
						w := newWorld(t, quirks, streams != "none", names...)
						w.forgets = streams == "forgotten"
						if seed > 0 {
							w.random = rand.New(rand.NewPCG(seed, 0))
						}
						return w
					})
				})
			}
		}
	}
}

// seconds returns the calls at which a process that continues is killed again; 0 is none.
func seconds(first, calls int) []int {
	both := []int{0, 1 + first*13%calls}
	if *seeds > 2 {
		return both
	}
	return both[first%2 : first%2+1]
}

var group = []string{"a", "b", "c"}

// A cutover that is killed at any command, before or after the server carried it out, and a second
// time at another one, ends as one that is not killed: by the same command, or by a roll-back.
func TestKilled(t *testing.T) {
	names := []string{"a", "b"}
	variants(t, names, func(t *testing.T, fresh func() *world) {
		w := fresh()
		if state, err, _ := w.run(names, false); err != nil || state != record.Switched {
			t.Fatal(state, err)
		}
		calls := w.calls
		w.check("not killed", names, record.Switched)
		ends := make(map[string]int)
		for first := 1; first <= calls; first++ {
			for _, done := range []bool{false, true} {
				for _, back := range []bool{false, true} {
					for _, second := range seconds(first, calls) {
						w := fresh()
						what := fmt.Sprintf("killed at %d and %d, done=%v, back=%v", first, second, done, back)
						w.die, w.done = first, done
						state, err, dead := w.run(names, false)
						if !dead && state != record.Switched {
							t.Fatal(what, state, err)
						}
						w.calls, w.die = 0, second
						if dead {
							state, err, dead = w.run(names, back)
						}
						w.calls, w.die = 0, 0
						if dead {
							state, err, dead = w.run(names, back)
						}
						if back && w.saved == nil {
							continue // nothing was begun
						}
						switch {
						case dead || err != nil || state != record.Switched && (!back || state != record.RolledBack):
							t.Fatal(what, state, err)
						}
						ends[state]++
						w.check(what, names, state)
					}
				}
			}
		}
		if ends[record.RolledBack] == 0 {
			t.Error("no cutover was rolled back")
		}
	})
}

// A cutover that goes on after it was killed at any command makes its index before the fence, also if nothing changes before that,
// unless a collection may have been renamed.
func TestIndexedBeforeFence(t *testing.T) {
	w := newWorld(t, false, true, "a")
	if state, err, _ := w.run(w.names, false); err != nil || state != record.Switched {
		t.Fatal(state, err)
	}
	for at := range w.calls {
		w := newWorld(t, false, true, "a")
		w.die, w.done = at, true
		if _, _, dead := w.run(w.names, false); !dead {
			continue
		}
		w.calls, w.die = 0, 0
		w.fenced = func(name string) {
			if name == "a" {
				w.put("a", "a/0", nil)
				delete(w.truth, "a/0")
			}
		}
		if state, err, _ := w.run(w.names, false); err != nil || state != record.Switched {
			t.Fatal(at, state, err)
		}
		w.check(fmt.Sprintf("killed at %d", at), w.names, record.Switched)
	}
}

// A process is killed before it has set the fence, and a person then removes the validator of a collection: a run that goes on does
// not bring it back.
func TestRemovedBeforeFence(t *testing.T) {
	w := newWorld(t, false, true, "a")
	if state, err, _ := w.run(w.names, false); err != nil || state != record.Switched {
		t.Fatal(state, err)
	}
	met := 0
	for at := range w.calls {
		w := newWorld(t, false, true, "a")
		w.die = at
		_, _, dead := w.run(w.names, false)
		c := w.colls["a"]
		if !dead || w.saved == nil || c == nil || c.settings.Equal(Fence()) || w.colls["a new"] == nil {
			continue
		}
		met++
		none := server.Settings{Level: "strict", Action: "error"}
		c.settings = none
		w.calls, w.die = 0, 0
		if state, err, _ := w.run(w.names, false); err != nil || state != record.Switched {
			t.Fatal(at, state, err)
		}
		var saved record.Cutover
		if err := bson.Unmarshal(w.saved, &saved); err != nil || !saved.Collections[0].OldHad.Equal(none) {
			t.Errorf("killed at %d: %+v, %v", at, saved.Collections[0].OldHad, err)
		}
	}
	if met == 0 {
		t.Error("no kill was before the fence")
	}
}

// A process is killed behind the fence, and the next one when it has lifted it. If a collection is then dropped, the cutover is
// rolled back, as before the fence, and a validator that a person has removed meanwhile stays away.
func TestDroppedAfterLift(t *testing.T) {
	saved := func(w *world) (c record.Cutover) {
		if err := bson.Unmarshal(w.saved, &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	met := 0
	for at := range 100 {
		w := newWorld(t, false, true, "a")
		w.die = at
		if _, _, dead := w.run(w.names, false); !dead || w.saved == nil || saved(w).State != record.Fencing || saved(w).FencedAt == nil {
			continue
		}
		for w.die = 1; saved(w).State == record.Fencing; w.die++ {
			w.calls = 0
			if _, _, dead := w.run(w.names, false); !dead {
				t.Fatal(at, "it was not killed")
			}
		}
		if saved(w).State != record.Comparing {
			t.Fatal(at, saved(w).State)
		}
		met++
		none := server.Settings{Level: "strict", Action: "error"}
		w.colls["a"].settings = none
		delete(w.colls, "a new")
		w.calls, w.die = 0, 0
		if state, err, _ := w.run(w.names, false); err == nil || state != record.RolledBack || !w.colls["a"].settings.Equal(none) {
			t.Error(at, state, err, w.colls["a"].settings)
		}
	}
	if met == 0 {
		t.Error("no process was killed behind the fence")
	}
}

// If the second of three collections cannot be renamed away, or in, all are rolled back, also if the
// process is killed at any command.
func TestFails(t *testing.T) {
	for _, fails := range []string{"b to b old", "b new to b"} {
		variants(t, group, func(t *testing.T, fresh func() *world) {
			refusing := func() *world {
				w := fresh()
				w.refuse = fails
				return w
			}
			end := func(w *world, what string) {
				t.Helper()
				state, err, dead := w.run(group, false)
				for dead { // killed again
					w.calls, w.die = 0, 0
					state, err, dead = w.run(group, false)
				}
				if state != record.RolledBack {
					t.Fatal(what, state, err)
				}
				w.check(what, group, record.RolledBack)
			}
			w := refusing()
			end(w, "not killed")
			for at := 1; at <= w.calls; at++ {
				for _, done := range []bool{false, true} {
					if *seeds <= 2 && done != (at%2 == 0) {
						continue
					}
					w := refusing()
					w.die, w.done = at, done
					end(w, fmt.Sprintf("killed at %d, done=%v", at, done))
				}
			}
		})
	}
}

// If somebody drops a copy behind the fence, a roll-back puts the other collections back and removes the fences.
func TestDroppedBehindFence(t *testing.T) {
	names := []string{"a", "b"}
	variants(t, names, func(t *testing.T, fresh func() *world) {
		w := fresh()
		w.run(names, false)
		fenced, exchanged := 0, 0
		for at := 1; at <= w.calls; at++ {
			w := fresh()
			w.die = at
			w.run(names, false)
			w.die, w.random = 0, nil
			if w.colls["b"] == nil || w.colls["b old"] != nil || !w.colls["b"].settings.Equal(Fence()) {
				continue
			}
			fenced++
			if w.colls["a old"] != nil {
				exchanged++
			}
			what := fmt.Sprintf("killed at %d", at)
			delete(w.colls, "b new")
			// Where a rename changes UUIDs, none shows that a copy that was filled again is another one.
			if state, err, _ := w.run(names, w.quirks); !w.quirks && (err == nil || state == record.Switched) {
				t.Fatal(what, state, err)
			}
			if state, err, _ := w.run(names, true); err != nil || state != record.RolledBack {
				t.Fatal(what, state, err)
			}
			if w.colls["b new"] == nil { // check expects one
				w.create("b new")
			}
			w.colls["b new"].settings = server.Settings{Level: "off", Action: "error"} // of the copy, which another one need not have
			w.check(what, names, record.RolledBack)
		}
		if fenced == 0 || exchanged == 0 {
			t.Errorf("dropped %d times, %d of them after an exchange", fenced, exchanged)
		}
	})
}
