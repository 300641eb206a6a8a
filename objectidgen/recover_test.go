package objectidgen

import (
	"crypto/rand"
	"errors"
	"io"
	"math"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
)

// One reading of a clock that is far ahead has no lasting effect.
func TestClockWasFarAhead(t *testing.T) {
	const now = 1_800_000_000
	for name, wrong := range map[string]int64{"in 2200": 7_258_118_400, "an hour ahead": now + 3600, "61 s ahead": now + 61} {
		t.Run(name, func(t *testing.T) {
			clock := &script{seconds: []int64{now, wrong, now, now, now + 1}}
			g := newGenerator(t, WithStart([5]byte{1}, 5), WithClock(clock.now),
				WithRandom(strings.NewReader("BBBBB\x00\x00\x07")))
			for i, want := range []Parts{
				{now, [5]byte{1}, 5},
				{uint32(min(wrong, math.MaxUint32)), [5]byte{1}, 6},
				{now, [5]byte([]byte("BBBBB")), 7},
				{now, [5]byte([]byte("BBBBB")), 8},
				{now + 1, [5]byte([]byte("BBBBB")), 9},
			} {
				if got := Decode(g.NewObjectID()); got != want {
					t.Errorf("id %d: %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

func TestWithMaxRollback(t *testing.T) {
	for _, test := range []struct {
		limit time.Duration
		back  int64
		keeps bool
	}{
		{0, 0, true}, {0, 1, false}, {999 * time.Millisecond, 1, false}, {time.Second, 1, true}, {time.Second, 2, false},
		{time.Hour, 3600, true}, {time.Hour, 3601, false}, {math.MaxInt64, 1_000_000, true},
	} {
		now := int64(1_000_000)
		g := newGenerator(t, WithStart([5]byte{1}, 5), WithMaxRollback(test.limit), WithClock(func() time.Time { return time.Unix(now, 0) }))
		g.NewObjectID()
		now -= test.back
		if got, want := g.Ahead(), time.Duration(test.back)*time.Second; got != want {
			t.Errorf("Ahead() = %v, want %v", got, want)
		}
		p := Decode(g.NewObjectID())
		if test.keeps && p != (Parts{1_000_000, [5]byte{1}, 6}) || !test.keeps && (int64(p.Seconds) != now || p.Process == [5]byte{1}) {
			t.Errorf("limit %v, clock set back by %d s: %+v", test.limit, test.back, p)
		}
		if got := g.Ahead(); got > test.limit {
			t.Errorf("Ahead() = %v, the limit is %v", got, test.limit)
		}
	}
}

// A burst of ids faster than a second allows, on a clock that was set back, runs ahead and never ends the order.
func TestBurstKeepsTheOrder(t *testing.T) {
	now := int64(1000)
	g := newGenerator(t, WithMaxRollback(3*time.Second), WithStart([5]byte{1}, 0), WithClock(func() time.Time { return time.Unix(now, 0) }))
	g.width = 4
	last := g.NewObjectID()
	now -= 3
	for i := range 4000 {
		id := g.NewObjectID()
		if p := Decode(id); p.Process != [5]byte{1} || Compare(last, id) >= 0 && p.Counter != 0 || g.Orders() != 1 {
			t.Fatalf("id %d: %v after %v, %d orders", i, id, last, g.Orders())
		}
		last = id
	}
	if want := 1003 * time.Second; g.Ahead() != want {
		t.Errorf("%v ahead, want %v", g.Ahead(), want)
	}
	now--
	if p := Decode(g.NewObjectID()); int64(p.Seconds) != now || p.Process == [5]byte{1} || g.Orders() != 2 || g.Ahead() != 0 {
		t.Errorf("4 s behind the highest reading: %+v, %d orders, %v ahead", p, g.Orders(), g.Ahead())
	}
}

// Renew takes the timestamp back to the clock's whatever WithMaxRollback says, before and after the ids of 2106 are used up. Then a
// new order begins at the clock.
func TestRenewRecovers(t *testing.T) {
	for _, ids := range []int{1, 4, 5} {
		clock := &script{seconds: []int64{1 << 40}}
		g := newGenerator(t, WithClock(clock.now), WithMaxRollback(math.MaxInt64))
		g.width = 4
		for range ids {
			g.NewObjectID()
		}
		clock.seconds = []int64{1000}
		before := g.NewObjectID()
		if err := g.Renew(); err != nil {
			t.Fatal(err)
		}
		p := Decode(g.NewObjectID())
		if p.Seconds != 1000 || p.Process == Decode(before).Process || (Decode(before).Seconds != math.MaxUint32) != (ids == 4) || g.Ahead() != 0 {
			t.Errorf("after Renew: %+v, %v ahead; before: %+v", p, g.Ahead(), Decode(before))
		}
	}
}

// A renewal of the generator's own does not fail with the reader of WithRandom, nor repeat a process value with it.
func TestRenewalWithBrokenReader(t *testing.T) {
	for name, random := range map[string]string{"ended": "", "constant": strings.Repeat("AAAAAxyz", 100)} {
		t.Run(name, func(t *testing.T) {
			now := int64(1_000_000)
			g := newGenerator(t, WithRandom(strings.NewReader("AAAAAxyz"+random)), WithClock(func() time.Time { return time.Unix(now, 0) }))
			seen := map[[5]byte]bool{}
			for range 50 {
				p := Decode(g.NewObjectID())
				if seen[p.Process] || int64(p.Seconds) != now {
					t.Fatalf("%+v at %d", p, now)
				}
				seen[p.Process] = true
				now -= 1000
			}
		})
	}
}

// However often a generator is renewed, it keeps a limited number of process values.
func TestUsedProcessValues(t *testing.T) {
	g := newGenerator(t, WithClock(at(1000)))
	var processes [][5]byte
	for range 2 * maxUsed {
		processes = append(processes, Decode(g.NewObjectID()).Process)
		if err := g.Renew(); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.used) != maxUsed || cap(g.used) > 2*maxUsed {
		t.Errorf("%d process values are kept, in %d", len(g.used), cap(g.used))
	}
	for _, p := range processes[maxUsed:] {
		if !g.isUsed(p) {
			t.Fatalf("%x can be drawn again", p)
		}
	}
}

// A clock that jumps by years between any two ids.
func TestWildClock(t *testing.T) {
	random := mathrand.New(mathrand.NewPCG(1, 2))
	var mu sync.Mutex
	g := newGenerator(t, WithClock(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Unix([]int64{1 << 33, 1_800_000_000, 1_800_000_059, -5, 0, 1_800_000_000}[random.IntN(6)], 0)
	}))
	g.width = 16
	ids := make([]bson.ObjectID, 40)
	seen := map[bson.ObjectID]bool{}
	for i := range 300 {
		batch := ids[:1+i%40]
		g.Fill(batch)
		for _, id := range batch {
			if seen[id] {
				t.Fatalf("%v is a duplicate", id)
			}
			seen[id] = true
		}
		if i%10 == 0 {
			if err := g.Renew(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The system's clock is set: within a millisecond the process value changes, and the timestamps follow the clock if it
// was set forward, or back by more than a minute.
func TestSystemClockIsSet(t *testing.T) {
	for _, test := range []struct {
		name       string
		wall, mono time.Duration
		renews     bool
		want       time.Duration // from the time before
	}{
		{"forward by a second", time.Second, 0, true, time.Second},
		{"forward by an hour", time.Hour, 0, true, time.Hour},
		{"forward by 150 years", 150 * 365 * 24 * time.Hour, 0, true, time.Unix(math.MaxUint32, 0).Sub(time.Unix(946684800, 0))},
		{"back by 30 s", -30 * time.Second, 0, true, 0},
		{"back by an hour", -time.Hour, 0, true, -time.Hour},
		{"restored, with the monotonic clock of the snapshot", time.Hour, 0, true, time.Hour},
		{"restored on another machine", 0, 24 * time.Hour, true, 0},
		{"restored on another machine that is younger", 0, -24 * time.Hour, true, 0},
		{"not at all", 0, 0, false, 0},
		{"by what NTP adjusts", 500 * time.Microsecond, 0, false, 0},
		{"restored, and both clocks have gone on", time.Hour, time.Hour, false, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // from 2000-01-01T00:00:00Z on
				g := newGenerator(t)
				first := Decode(g.NewObjectID())
				firstAt, err := g.NewObjectIDAt(time.Unix(7, 0))
				if err != nil {
					t.Fatal(err)
				}
				g.system.Disturb(test.wall, test.mono)
				time.Sleep(clock.MaxAge)
				// NewObjectIDAt notices a step too, and both kinds of ids change together.
				at, err := g.NewObjectIDAt(time.Unix(7, 0))
				if err != nil {
					t.Fatal(err)
				}
				p := Decode(g.NewObjectID())
				if got := time.Duration(int64(p.Seconds)-int64(first.Seconds)) * time.Second; got != test.want {
					t.Errorf("the timestamps moved by %v, want %v", got, test.want)
				}
				if (p.Process != first.Process) != test.renews || (Decode(at).Process != Decode(firstAt).Process) != test.renews {
					t.Errorf("%+v and %v, before: %+v and %v", p, at, first, firstAt)
				}
				for i := range uint32(5) { // and then no more
					time.Sleep(time.Second)
					if q := Decode(g.NewObjectID()); q.Process != p.Process || q.Counter != (p.Counter+1+i)&lastCounter {
						t.Errorf("%+v after %+v", q, p)
					}
				}
			})
		})
	}
}

// A wrong time that is corrected within a second leaves no trace on the timestamps that follow.
func TestSystemClockIsCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGenerator(t)
		g.NewObjectID()
		g.system.Disturb(100*365*24*time.Hour, 0)
		time.Sleep(clock.MaxAge)
		if p := Decode(g.NewObjectID()); p.Seconds < 4_000_000_000 {
			t.Fatalf("%+v with the clock in 2099", p)
		}
		g.system.Disturb(-100*365*24*time.Hour, 0)
		time.Sleep(clock.MaxAge)
		if p := Decode(g.NewObjectID()); int64(p.Seconds) != time.Now().Unix() || g.Ahead() != 0 {
			t.Errorf("%+v, %v ahead, with the clock at %d", p, g.Ahead(), time.Now().Unix())
		}
	})
}

// Neither the reader of WithRandom nor the system gives random bytes: a renewal of the generator's own takes the next
// process value that was not used, and does not hold its lock for ever. Renew returns the error.
func TestNoRandomSource(t *testing.T) {
	system := rand.Reader
	defer func() { rand.Reader = system }()
	for _, broken := range []io.Reader{iotest.ErrReader(errors.New("broken")), strings.NewReader("")} {
		now := int64(1_000_000)
		g := newGenerator(t, WithRandom(strings.NewReader("\xFF\xFF\xFF\xFF\xFE\x00\x00\x05"+"\x00\x00\x00\x00\x01\x00\x00\x05")),
			WithClock(func() time.Time { return time.Unix(now, 0) }))
		used := newAt(t, g, time.Unix(1, 0)) // has the process value 1
		g.NewObjectID()
		rand.Reader = broken
		if err := g.Renew(); err == nil {
			t.Error("Renew: no error")
		}
		seen := map[[5]byte]bool{{0xFF, 0xFF, 0xFF, 0xFF, 0xFE}: true, Decode(used).Process: true}
		for i, want := range [][5]byte{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, {}, {4: 2}, {4: 3}} {
			now -= 1000
			p := Decode(g.NewObjectID())
			if p.Process != want || seen[p.Process] || int64(p.Seconds) != now || g.Orders() != uint64(i+2) {
				t.Errorf("%+v, %d orders, want process %x", p, g.Orders(), want)
			}
			seen[p.Process] = true
		}
		rand.Reader = system
	}
}

// A Fill that a new order interrupts starts again, also when every reading of the clock begins one.
func TestFillLiesInOneOrder(t *testing.T) {
	asked := 0
	wild := func() time.Time {
		asked++
		return time.Unix(1_000_000+int64(asked%2)*1000, 0)
	}
	g := newGenerator(t, WithClock(wild))
	g.width = 16
	ids := make([]bson.ObjectID, 3*chunk)
	for range 3 {
		before := g.Orders()
		g.Fill(ids)
		p := Decode(ids[0])
		for i, id := range ids {
			q := Decode(id)
			if q.Process != p.Process || q.Counter != (p.Counter+uint32(i))%16 || i > 0 && q.Seconds < Decode(ids[i-1]).Seconds {
				t.Fatalf("id %d: %+v, the first is %+v", i, q, p)
			}
		}
		if g.Orders() == before {
			t.Error("no new order")
		}
	}
}
