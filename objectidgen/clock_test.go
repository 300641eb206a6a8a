package objectidgen

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// script is a clock that shows the given seconds, one each time it is asked, and the last for ever.
type script struct {
	mu      sync.Mutex
	seconds []int64
	asked   int
}

func (s *script) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return time.Unix(s.seconds[min(s.asked, len(s.seconds))-1], 0)
}

type second24 struct {
	seconds uint32
	counter uint32
}

// draws calls next for each wanted id and compares seconds and counters.
func draws(t *testing.T, g *Generator, want []second24) {
	t.Helper()
	var last bson.ObjectID
	for i, w := range want {
		id := g.NewObjectID()
		p := Decode(id)
		if got := (second24{p.Seconds, p.Counter}); got != w {
			t.Errorf("id %d: second %d counter %d, want %d and %d", i, got.seconds, got.counter, w.seconds, w.counter)
		}
		if i > 0 && p.Counter != 0 && Compare(last, id) >= 0 {
			t.Errorf("id %d: %v is not above %v", i, id, last)
		}
		last = id
	}
}

// The clock's readings and the ids made of them, with four ids a second.
func TestClock(t *testing.T) {
	const last = math.MaxUint32
	for _, test := range []struct {
		name  string
		clock []int64
		want  []second24
		asked int
	}{
		{
			"moves on", []int64{100, 100, 101, 105},
			[]second24{{100, 0}, {100, 1}, {101, 2}, {105, 3}}, 4,
		},
		{
			"steps back: the second is held", []int64{100, 99, 50, 100, 101},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}}, 5,
		},
		{
			// The fifth id is told 100, asks again and is told 100, 100, 101.
			"stands still at a used second: asked until it moves", []int64{100, 100, 100, 100, 100, 100, 100, 101, 101},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}, {101, 1}}, 9,
		},
		{
			"moves on by more while an id waits", []int64{100, 100, 100, 100, 100, 100, 200},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {200, 0}}, 7,
		},
		{
			// The fifth id asks twice, because the reading that counts is the one after its second was found used up.
			"is behind a used second: time moves on by one", []int64{100, 99},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}, {101, 1}, {101, 2}, {101, 3}, {102, 0}}, 11,
		},
		{
			"is set back while an id waits", []int64{100, 100, 100, 100, 100, 100, 42},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}}, 7,
		},
		{
			"steps back, is overtaken, comes back", []int64{100, 90, 90, 90, 90, 90, 100, 101, 101, 101, 102},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}, {101, 1}, {101, 2}, {101, 3}, {102, 0}}, 11,
		},
		{
			"catches up between the two readings", []int64{100, 100, 100, 100, 99, 101},
			[]second24{{100, 0}, {100, 1}, {100, 2}, {100, 3}, {101, 0}}, 6,
		},
		{
			"before 1970", []int64{-1, -1 << 40, -62135596800, 0, 1},
			[]second24{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}}, 5,
		},
		{
			"before 1970, used up: behind, not still", []int64{-7},
			[]second24{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}}, 7,
		},
		{
			"after 2106", []int64{last, last + 1, 1 << 40, math.MaxInt64},
			[]second24{{last, 0}, {last, 1}, {last, 2}, {last, 3}}, 4,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := &script{seconds: test.clock}
			g := newGenerator(t, WithStart([5]byte{1}, 0), WithClock(clock.now))
			g.width = 4
			if clock.asked != 0 {
				t.Errorf("New asked the clock")
			}
			draws(t, g, test.want)
			if clock.asked != test.asked {
				t.Errorf("the clock was asked %d times, want %d", clock.asked, test.asked)
			}
		})
	}
}

// The same for Fill, which may take what is left of a second and go on in the next.
func TestFillAcrossSeconds(t *testing.T) {
	clock := &script{seconds: []int64{100, 100, 100, 100, 101, 99, 99}}
	g := newGenerator(t, WithStart([5]byte{1}, 2), WithClock(clock.now))
	g.width = 4
	ids := make([]bson.ObjectID, 11)
	g.Fill(ids)
	var got []second24
	for _, id := range ids {
		got = append(got, second24{Decode(id).Seconds, Decode(id).Counter})
	}
	want := []second24{{100, 2}, {100, 3}, {100, 0}, {100, 1}, {101, 2}, {101, 3}, {101, 0}, {101, 1}, {102, 2}, {102, 3}, {102, 0}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// After the 2^24 ids of the last second of 2106 there is no later one: a new order begins at the clock.
func TestLastSecond(t *testing.T) {
	for name, clock := range map[string]int64{
		"clock is later": math.MaxUint32 + 1000, "clock is later by far": 1 << 40,
	} {
		t.Run(name, func(t *testing.T) {
			seconds := []int64{math.MaxUint32, clock}
			next := uint32(min(clock, math.MaxUint32))
			g := newGenerator(t, WithStart([5]byte{1}, 0), WithClock((&script{seconds: seconds}).now),
				WithRandom(strings.NewReader("BBBBB\x00\x00\x00CCCCC\x00\x00\x00")))
			g.width = 4
			draws(t, g, []second24{{math.MaxUint32, 0}, {math.MaxUint32, 1}, {math.MaxUint32, 2}, {math.MaxUint32, 3}})
			for _, process := range [][5]byte{[5]byte([]byte("BBBBB")), [5]byte([]byte("CCCCC"))} {
				for i := range uint32(4) {
					id, err := g.NewID()
					if err != nil {
						t.Fatal(err)
					}
					if p, want := Decode(id.(bson.ObjectID)), (Parts{next, process, i}); p != want {
						t.Errorf("%+v, want %+v", p, want)
					}
				}
			}
			// The source of random bytes has ended: the next process value is crypto/rand's.
			for range 4 {
				id, err := g.NewID()
				if err != nil {
					t.Fatal(err)
				}
				switch p := Decode(id.(bson.ObjectID)); {
				case p.Seconds != next, string(p.Process[:]) == "BBBBB", string(p.Process[:]) == "CCCCC":
					t.Errorf("%+v, want another process", p)
				}
			}
		})
	}
}

// The clock is behind when the ids of the last second are used up: the new order is at the clock, and goes on by itself.
func TestLastSecondBehind(t *testing.T) {
	clock := &script{seconds: []int64{math.MaxUint32, math.MaxUint32 - 5}}
	g := newGenerator(t, WithStart([5]byte{1}, 0), WithClock(clock.now), WithMaxWait(0))
	g.width = 4
	for i := range uint32(12) {
		p := Decode(g.NewObjectID())
		want := uint32(math.MaxUint32)
		if i >= 4 {
			want -= 5
		}
		if p.Seconds != want || g.Orders() != uint64(i/4+1) {
			t.Errorf("id %d: %+v, %d orders", i, p, g.Orders())
		}
	}
	ids := make([]bson.ObjectID, 10) // cannot lie in one order
	g.Fill(ids)
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			t.Errorf("%v twice", id)
		}
	}
}

// The real number of ids in one second, on a clock that stands still until it is asked for the 20th time since.
func TestWaitsAtFullWidth(t *testing.T) {
	asked := 0
	waiting := false
	g := newGenerator(t, WithStart([5]byte{1}, 7), WithClock(func() time.Time {
		if waiting {
			asked++
		}
		return time.Unix(100+int64(asked/20), 0)
	}))
	buf := make([]bson.ObjectID, 1<<18)
	for range 1 << 6 {
		g.Fill(buf)
	}
	if got := Decode(buf[len(buf)-1]); got != (Parts{100, [5]byte{1}, 6}) {
		t.Errorf("the last of 2^24: %+v", got)
	}
	waiting = true
	if got := Decode(g.NewObjectID()); got != (Parts{101, [5]byte{1}, 7}) {
		t.Errorf("the next: %+v", got)
	}
	if asked != 20 {
		t.Errorf("the clock was asked %d times, want 20", asked)
	}
}

// A clock that stands still for ever keeps a caller waiting as long as WithMaxWait says, 2 s by default. Then a new order
// begins in the same second, and the other callers go on in it.
func TestFrozenClock(t *testing.T) {
	for _, limit := range []time.Duration{-1, 0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			opts := []Option{WithClock(at(100))}
			if limit >= 0 {
				opts = append(opts, WithMaxWait(limit))
			} else {
				limit = 2 * time.Second
			}
			g := newGenerator(t, opts...)
			g.width = 4
			first := g.NewObjectID()
			g.Fill(make([]bson.ObjectID, 3))
			began := time.Now()
			var group sync.WaitGroup
			ids := make([]bson.ObjectID, 3)
			for i := range ids {
				group.Go(func() { ids[i] = g.NewObjectID() })
			}
			group.Wait()
			if d := time.Since(began); d < limit || d > limit+10*time.Millisecond {
				t.Errorf("limit %v: waited for %v", limit, d)
			}
			slices.SortFunc(ids, Compare)
			for i, id := range ids {
				if p := Decode(id); p.Seconds != 100 || p.Process == Decode(first).Process || p.Process != Decode(ids[0]).Process ||
					i > 0 && id == ids[i-1] {
					t.Errorf("limit %v: %v after %v", limit, id, first)
				}
			}
			if g.Orders() != 2 {
				t.Errorf("limit %v: %d orders", limit, g.Orders())
			}
		})
	}
}

// A clock that stands still keeps every caller waiting, without burning the processor.
func TestStoppedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, asked := int64(100), 0
		g := newGenerator(t, WithStart([5]byte{1}, 0), WithMaxWait(time.Hour), WithClock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return time.Unix(now, 0)
		}))
		g.width = 4
		g.Fill(make([]bson.ObjectID, 4))
		var ids []bson.ObjectID
		for range 3 {
			go func() {
				id := g.NewObjectID()
				mu.Lock()
				defer mu.Unlock()
				ids = append(ids, id)
			}()
		}
		time.Sleep(time.Minute) // of the bubble's time
		mu.Lock()
		if len(ids) != 0 {
			t.Errorf("ids %v while the clock stands still", ids)
		}
		// Each of the three asks some hundred times in the first second, and then every 5 ms.
		if limit := 3*(200*60+300) + 1; asked < 1000 || asked > limit {
			t.Errorf("the clock was asked %d times in a minute, at most %d expected", asked, limit)
		}
		now = 101
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.SortFunc(ids, Compare)
		for i := range 3 {
			if len(ids) != 3 || Decode(ids[i]) != (Parts{101, [5]byte{1}, uint32(i)}) {
				t.Fatalf("ids %v after the clock moved on", ids)
			}
		}
	})
}

// The system's clock, on the time of a bubble.
func TestSystemClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t, WithStart([5]byte{1}, 0))
		g.width = 4
		base := time.Now() // at the start of a second
		expect := func(seconds int64, counter uint32) {
			t.Helper()
			want := Parts{uint32(base.Unix() + seconds), [5]byte{1}, counter}
			if got := Decode(g.NewObjectID()); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		expect(0, 0)
		time.Sleep(time.Second - time.Nanosecond)
		expect(0, 1)
		time.Sleep(time.Nanosecond)
		expect(1, 2)
		time.Sleep(time.Second - time.Nanosecond)
		expect(1, 3)
		time.Sleep(time.Nanosecond)
		expect(2, 0)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		expect(12, 1)
		expect(12, 2)
		expect(12, 3)
		expect(12, 0)
		expect(13, 1) // waits
		if waited := time.Since(base); waited < 13*time.Second || waited > 13*time.Second+5*time.Millisecond {
			t.Errorf("an id of the second 13 came at %v", waited)
		}
	})
}

// A generator may be used in and out of a bubble of testing/synctest, which has its own time.
func TestSystemClockAfterBubble(t *testing.T) {
	g := newGenerator(t)
	synctest.Test(t, func(*testing.T) { g.NewObjectID() }) // 2000-01-01
	before := time.Now().Unix()
	if got := int64(Decode(g.NewObjectID()).Seconds); got < before || got > time.Now().Unix() {
		t.Errorf("second %d, the clock shows %d", got, before)
	}
}
