package objectidgen

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func newAt(t testing.TB, g *Generator, at time.Time) bson.ObjectID {
	t.Helper()
	id, err := g.NewObjectIDAt(at)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The timestamps are those of the instants, and ids of equal seconds are in the order of the calls, whatever lies
// between them.
func TestNewObjectIDAt(t *testing.T) {
	g := newGenerator(t)
	random := rand.New(rand.NewPCG(1, 2))
	last := map[int64]bson.ObjectID{}
	seen := map[bson.ObjectID]bool{}
	for range 20000 {
		at := time.Unix(random.Int64N(50)+1_000_000, random.Int64N(1e9))
		id := newAt(t, g, at)
		if got := id.Timestamp(); !got.Equal(at.Truncate(time.Second)) {
			t.Fatalf("%v at %v", got, at)
		}
		if before, ok := last[at.Unix()]; ok && Compare(before, id) >= 0 {
			t.Fatalf("%v after %v", id, before)
		}
		live := g.NewObjectID()
		if seen[id] || seen[live] || id == live || Decode(id).Process == Decode(live).Process {
			t.Fatalf("%v, %v: made twice", id, live)
		}
		seen[id], seen[live], last[at.Unix()] = true, true, id
	}
}

func TestNewObjectIDAtRange(t *testing.T) {
	g := newGenerator(t)
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(math.MaxUint32, 999999999)} {
		if id := newAt(t, g, at); id.Timestamp().Unix() != at.Unix() {
			t.Errorf("%v at %v", id, at)
		}
	}
	for _, at := range []time.Time{{}, time.Unix(0, -1), time.Unix(math.MaxUint32+1, 0)} {
		if id, err := g.NewObjectIDAt(at); !errors.Is(err, ErrTimeRange) || id != bson.NilObjectID {
			t.Errorf("%v: %v, %v", at, id, err)
		}
	}
}

func TestNewObjectIDAtWithStart(t *testing.T) {
	g := newGenerator(t, WithStart([5]byte{1, 2, 3, 4, 0xFF}, 0xFFFFFE))
	for _, want := range []Parts{
		{1000, [5]byte{1, 2, 3, 5, 0}, 0xFFFFFE},
		{1000, [5]byte{1, 2, 3, 5, 0}, 0xFFFFFF},
		{1000, [5]byte{1, 2, 3, 5, 1}, 0},
		{1000, [5]byte{1, 2, 3, 5, 1}, 1},
	} {
		if got := Decode(newAt(t, g, time.Unix(1000, 0))); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// The process values of the other ids are passed over, those of the past too, and a renewal draws none of the numbers'.
func TestNewObjectIDAtProcess(t *testing.T) {
	g := newGenerator(t, WithClock(at(1000)), WithRandom(strings.NewReader(
		"\x00\x00\x00\x00\x01\x00\x00\x00"+ // New
			"\x00\x00\x00\x00\x04\x00\x00\x00"+ // Renew
			"\x00\x00\x00\x00\x01\xFF\xFF\xFE"+ // NewObjectIDAt: used
			"\x00\x00\x00\x00\x02\x00\x00\x00"+"\x00\x00\x00\x00\x03\x00\x00\x00"+"\x00\x00\x00\x00\x06\x00\x00\x00")))
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []byte{2, 2, 3} {
		if got := Decode(newAt(t, g, time.Unix(1000, 0))).Process; got != [5]byte{4: want} {
			t.Errorf("process %x, want %d", got, want)
		}
	}
	g.instants.numbers.Start(0x04_000000 - 1)
	if got := Decode(newAt(t, g, time.Unix(1000, 0))); got.Process != [5]byte{4: 5} || got.Counter != 0 {
		t.Errorf("%+v beside live ids with process value 4", got)
	}
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	if got := Decode(g.NewObjectID()).Process; got != [5]byte{4: 6} {
		t.Errorf("process %x after Renew, with 1 to 5 in use", got)
	}
	if id, err := g.NewObjectIDAt(time.Unix(1000, 0)); !errors.Is(err, io.EOF) || id != bson.NilObjectID {
		t.Errorf("%v, %v without random bytes", id, err)
	}
}

func TestNewObjectIDAtConcurrent(t *testing.T) {
	g := newGenerator(t)
	var mu sync.Mutex
	seen := map[bson.ObjectID]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				id, err := g.NewObjectIDAt(time.Unix(1000, 0))
				if i%100 == 0 {
					if err := g.Renew(); err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				if err != nil || seen[id] {
					t.Errorf("%v, %v: made twice", id, err)
				}
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
