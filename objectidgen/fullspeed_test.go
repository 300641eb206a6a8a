package objectidgen

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ledger holds one bit for every id that a generator can make within some seconds: 2 MiB a second at full width.
type ledger struct {
	process [5]byte
	width   uint64 // at least 64
	first   uint32 // the first second that has a place
	seconds []atomic.Pointer[[]uint64]
	taken   atomic.Uint64
}

// taker is one goroutine that draws ids.
type taker struct {
	last    bson.ObjectID
	wrapped bool // the counter has passed 0 within the second of last
}

// add notes ids in the order in which taker was given them. It reports whether they are as promised.
//
// It must be faster than the generator to see it at its limit, so it goes by runs: ids that are alike but for a counter
// that goes up by one, and whose bits are in one word.
func (l *ledger) add(t *testing.T, taker *taker, ids []bson.ObjectID) bool {
	l.taken.Add(uint64(len(ids)))
	for len(ids) > 0 {
		id := ids[0]
		p, before := Decode(id), Decode(taker.last)
		at := p.Seconds - l.first
		if p.Process != l.process || uint64(p.Counter) >= l.width || at >= uint32(len(l.seconds)) {
			t.Errorf("%v: not one of the ids in question", id)
			return false
		}
		switch {
		case taker.last == bson.NilObjectID || p.Seconds > before.Seconds:
			taker.wrapped = false
		case p.Seconds < before.Seconds || p.Counter <= before.Counter && taker.wrapped:
			t.Errorf("%v after %v", id, taker.last)
			return false
		case p.Counter <= before.Counter:
			taker.wrapped = true
		}
		high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint32(id[8:])
		run, limit := 1, min(len(ids), 64-int(low%64))
		for run < limit && binary.BigEndian.Uint64(ids[run][:8]) == high &&
			binary.BigEndian.Uint32(ids[run][8:]) == low+uint32(run) {
			run++
		}
		second := l.seconds[at].Load()
		if second == nil {
			made := make([]uint64, l.width/64)
			l.seconds[at].CompareAndSwap(nil, &made)
			second = l.seconds[at].Load()
		}
		mask := ^uint64(0) >> (64 - run) << (low % 64)
		if twice := atomic.OrUint64(&(*second)[p.Counter/64], mask) & mask; twice != 0 {
			t.Errorf("%v or one of the %d after it is a duplicate", id, run-1)
			return false
		}
		taker.last = ids[run-1]
		ids = ids[run:]
	}
	return true
}

// check looks at all ids together: each second's are counted on, without a gap, from where the last one's end.
func (l *ledger) check(t *testing.T, start uint32) {
	t.Helper()
	var total, seconds, full uint64
	next := uint64(start)
	for i := range l.seconds {
		second := l.seconds[i].Load()
		if second == nil {
			continue
		}
		count := uint64(0)
		for _, word := range *second {
			count += uint64(bits.OnesCount64(word))
		}
		for n := range count {
			if c := (next + n) % l.width; (*second)[c/64]&(1<<(c%64)) == 0 {
				t.Fatalf("second %d has %d ids from counter %#x on, but not %#x", i, count, next, c)
			}
		}
		next = (next + count) % l.width
		total += count
		seconds++
		if count == l.width {
			full++
		}
	}
	if total != l.taken.Load() {
		t.Fatalf("%d ids taken, %d different ones", l.taken.Load(), total)
	}
	t.Logf("%d ids in %d seconds, %d of them used up", total, seconds, full)
}

// run draws ids on every processor for the given time, in one goroutine with Fill and in the others one by one.
func (l *ledger) run(t *testing.T, g *Generator, d time.Duration) {
	var stop atomic.Bool
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	defer timer.Stop()
	var wg sync.WaitGroup
	for i := range max(2, runtime.GOMAXPROCS(0)) + 1 {
		wg.Go(func() {
			var taker taker
			buf := make([]bson.ObjectID, 10000)
			for !stop.Load() {
				ids := buf[:1+rand.IntN(len(buf))]
				if i == 0 {
					g.Fill(ids)
				} else {
					for j := range ids {
						ids[j] = g.NewObjectID()
					}
				}
				if !l.add(t, &taker, ids) {
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
}

// The system's clock, for some seconds as fast as this machine can, every id checked.
func TestFullSpeed(t *testing.T) {
	d := 500 * time.Millisecond
	if long(t) && !raceEnabled {
		d = 3 * time.Second
	}
	process := [5]byte{1, 2, 3, 4, 5}
	start := rand.Uint32N(1 << 24)
	g := newGenerator(t, WithStart(process, start))
	l := newLedger(process, 1<<24, time.Now().Unix(), int(d/time.Second)+100)
	l.run(t, g, d)
	l.check(t, start)
	if ahead := int64(Decode(g.NewObjectID()).Seconds) - time.Now().Unix(); ahead > 0 {
		t.Errorf("the last id is %d s ahead of the clock", ahead)
	}
}

// A clock that jumps to and fro, and a counter so small that seconds are used up all the time.
func TestFullSpeedWithJumpingClock(t *testing.T) {
	const base, width = 1_000_000, 1 << 10
	var asked atomic.Int64
	clock := func() time.Time {
		n := asked.Add(1)
		return time.Unix(base+n/2000+rand.Int64N(7)-3, n%1e9)
	}
	for range 4 {
		process := [5]byte{1, 2, 3, 4, 5}
		start := rand.Uint32N(width)
		asked.Store(0)
		g := newGenerator(t, WithStart(process, start), WithClock(clock), WithMaxRollback(math.MaxInt64))
		g.width = width
		l := newLedger(process, width, base-3, 1<<18)
		l.run(t, g, 250*time.Millisecond)
		l.check(t, start)
	}
}

func newLedger(process [5]byte, width uint64, first int64, seconds int) *ledger {
	l := &ledger{process: process, width: width, first: uint32(first)}
	l.seconds = make([]atomic.Pointer[[]uint64], seconds)
	return l
}
