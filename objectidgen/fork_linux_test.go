package objectidgen

import (
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/fork/forktest"
)

// A process, its fork and the fork of that make no id twice, from the first id on, by all methods.
func TestFork(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	makers := map[string]func(g *Generator) bson.ObjectID{
		"NewObjectID": (*Generator).NewObjectID,
		"Fill": func(g *Generator) bson.ObjectID {
			var ids [1]bson.ObjectID
			g.Fill(ids[:])
			return ids[0]
		},
		"NewObjectIDAt": func(g *Generator) bson.ObjectID {
			id, _ := g.NewObjectIDAt(now())
			return id
		},
	}
	for name, next := range makers {
		for clock, g := range map[string]*Generator{
			"system clock": newGenerator(t), "WithClock": newGenerator(t, WithClock(now)), "Default": Default(),
			"WithRandom": newGenerator(t, WithRandom(new(countingReader)), WithClock(now)),
		} {
			t.Run(name+", "+clock, func(t *testing.T) {
				noRepeats(t, true, func() bson.ObjectID { return next(g) })
			})
		}
	}
	// The control: a generator that does not notice. Its seconds may differ by chance.
	t.Run("the driver's", func(t *testing.T) {
		noRepeats(t, false, func() bson.ObjectID {
			id := bson.NewObjectID()
			clear(id[:4])
			return id
		})
	})
}

// countingReader is copied by a fork, and then gives the same bytes in both processes.
type countingReader byte

func (r *countingReader) Read(b []byte) (int, error) {
	for i := range b {
		*r++
		b[i] = byte(*r)
	}
	return len(b), nil
}

func noRepeats(t *testing.T, want bool, next func() bson.ObjectID) {
	out := forktest.Run(t, func(int) []byte {
		b := make([]byte, 0, forktest.MaxOutput)
		for range 2000 {
			id := next()
			b = append(b, id[:]...)
		}
		return b
	})
	seen := map[bson.ObjectID]bool{}
	repeated := 0
	for _, b := range out {
		for ; len(b) > 0; b = b[12:] {
			if id := bson.ObjectID(b[:12]); seen[id] {
				repeated++
			} else {
				seen[id] = true
			}
		}
	}
	if (repeated == 0) != want {
		t.Errorf("%d of %d ids came twice", repeated, repeated+len(seen))
	}
}
