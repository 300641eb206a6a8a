package objectidgen

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
)

// image is what the memory of a process holds of a generator: it and the second in use.
type image struct {
	g       Generator
	current second
	at      time.Time
}

// save copies the memory while no call is in progress.
func save(g *Generator) *image {
	i := &image{at: time.Now()}
	copyMemory(&i.g, g)
	copyMemory(&i.current, g.current.Load())
	i.g.used = slices.Clone(g.used)
	return i
}

// restore returns the generator as it was. The monotonic clock continues where it was and the wall clock shows the
// present, moved by the given duration.
func (i *image) restore(wall time.Duration) *Generator {
	g, current := new(Generator), new(second)
	copyMemory(g, &i.g)
	copyMemory(current, &i.current)
	g.used = slices.Clone(g.used)
	g.current.Store(current)
	g.system.Disturb(wall, -time.Since(i.at))
	return g
}

func copyMemory[T any](to, from *T) {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
}

// Copies that are restored later than the image was made repeat no id from the first comparison of the clocks on, which
// comes within a millisecond. Before it they repeat what the original made in that millisecond, and no more.
func TestRestoredCopies(t *testing.T) {
	for _, rate := range []int{1, 10, 1000, 16000} { // ids a millisecond
		synctest.Test(t, func(t *testing.T) {
			g := newGenerator(t)
			g.Fill(make([]bson.ObjectID, 1000))
			saved := save(g)
			seen := map[bson.ObjectID]int{}
			run := func(g *Generator) (repeated int) {
				ids := make([]bson.ObjectID, rate/min(rate, 10))
				for range 5 {
					for range min(rate, 10) {
						g.Fill(ids)
						for _, id := range ids {
							if seen[id]++; seen[id] > 1 {
								repeated++
							}
						}
						time.Sleep(time.Millisecond / time.Duration(min(rate, 10)))
					}
				}
				return repeated
			}
			if n := run(g); n != 0 {
				t.Fatalf("%d ids of one generator are equal", n)
			}
			for copies := range 3 {
				n := run(saved.restore(time.Duration(copies) * time.Minute))
				t.Logf("%d ids a millisecond, copy %d: %d ids repeated", rate, copies+1, n)
				if limit := rate * int(clock.MaxAge/time.Millisecond); n > limit {
					t.Errorf("%d ids a millisecond: %d ids repeated, limit %d", rate, n, limit)
				}
			}
		})
	}
}

// A copy with clocks that both continue where they were, or both show the present, is not found; Renew makes it differ.
func TestCopyThatNoClockGivesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t)
		g.NewObjectID()
		saved := save(g)
		want := g.NewObjectID()
		if got := saved.restore(-time.Since(saved.at)).NewObjectID(); got != want {
			t.Errorf("%v, the original made %v: a copy is found after all", got, want)
		}
		restored := saved.restore(-time.Since(saved.at))
		if err := restored.Renew(); err != nil {
			t.Fatal(err)
		}
		if got := restored.NewObjectID(); Decode(got).Process == Decode(want).Process {
			t.Errorf("%v after Renew, the original made %v", got, want)
		}
	})
}
