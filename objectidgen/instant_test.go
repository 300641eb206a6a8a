package objectidgen

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
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

// A new order of the other ids, idle time and a clock that was set back leave the numbers for given instants alone: ids of one
// second are in the order of the calls. Renew draws them again.
func TestNewObjectIDAtAcrossOrders(t *testing.T) {
	for range 400 {
		now := int64(1_000_000)
		g := newGenerator(t, WithClock(func() time.Time { return time.Unix(now, 0) }))
		g.NewObjectID()
		last := newAt(t, g, time.Unix(7, 0))
		for _, step := range []int64{-61, 3600, -7200, 1 << 30, -1 << 30} {
			now += step
			g.NewObjectID()
			id := newAt(t, g, time.Unix(7, 0))
			if p, q := Decode(last), Decode(id); p.Process != q.Process && q.Counter != 0 || Compare(last, id) >= 0 {
				t.Fatalf("clock set by %d s: %+v after %+v", step, q, p)
			}
			if Decode(id).Process == Decode(g.NewObjectID()).Process {
				t.Fatalf("%v has the process value of other ids", id)
			}
			last = id
		}
		if g.Orders() < 3 {
			t.Fatalf("%d orders", g.Orders())
		}
	}
}

// In copies the numbers jump ahead, each by another amount: the order goes on, and copies differ.
func TestNewObjectIDAtInCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t)
		g.NewObjectID()
		last := newAt(t, g, time.Unix(7, 0))
		saved := save(g)
		seen := map[bson.ObjectID]bool{last: true}
		for range 50 {
			restored := saved.restore(time.Minute)
			time.Sleep(clock.MaxAge)
			before := last
			for i := range 100 {
				id := newAt(t, restored, time.Unix(7, 0))
				p, q := startOf(binary.BigEndian.Uint64(before[4:])), startOf(binary.BigEndian.Uint64(id[4:]))
				jump := q.number() - p.number()
				if seen[id] || Compare(before, id) >= 0 || i == 0 && jump > (math.MaxUint64-p.number())/1024+1<<24 || i > 0 && jump != 1 && q.counter != 0 {
					t.Fatalf("%v after %v, made before: %t", id, before, seen[id])
				}
				seen[id], before = true, id
			}
			if seen[restored.NewObjectID()] {
				t.Fatal("an id of both kinds")
			}
		}
	})
}

// The numbers end, and do not wrap, until Renew. What is left near the end is passed over if other ids have it.
func TestNewObjectIDAtEnd(t *testing.T) {
	g := newGenerator(t, WithClock(at(1000)))
	newAt(t, g, time.Unix(7, 0))
	g.instants.numbers.Start(math.MaxUint64 - 2)
	g.instants.first = math.MaxUint64 - 2 // as after a jump: the process values before it can be drawn again
	for _, want := range []uint32{0xFFFFFE, 0xFFFFFF} {
		if p := Decode(newAt(t, g, time.Unix(7, 0))); p.Process != [5]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF} || p.Counter != want {
			t.Errorf("%+v, want counter %#x", p, want)
		}
	}
	for range 3 {
		if id, err := g.NewObjectIDAt(time.Unix(7, 0)); !errors.Is(err, ErrExhausted) || id != bson.NilObjectID {
			t.Errorf("after the last number: %v, %v", id, err)
		}
		g.instants.numbers.Jump()
	}
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	if p := Decode(newAt(t, g, time.Unix(7, 0))); p.Process[0] > 0x7F {
		t.Errorf("%+v after Renew, want the lower half", p)
	}

	// The last process value is that of other ids.
	g = newGenerator(t, WithClock(at(1000)), WithStart([5]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, 5))
	if p := Decode(newAt(t, g, time.Unix(7, 0))); p != (Parts{7, [5]byte{}, 5}) {
		t.Errorf("%+v, want process value 0", p)
	}
	g.instants.numbers.Start(math.MaxUint64 - 1<<24)
	if id, err := g.NewObjectIDAt(time.Unix(7, 0)); !errors.Is(err, ErrExhausted) {
		t.Errorf("%v, %v, want ErrExhausted", id, err)
	}
}
