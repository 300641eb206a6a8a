package objectidgen

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/order"
)

// The model test runs the generator itself, with a counter of no more than two bits, under a scheduler that decides at
// every access to what goroutines share which of them goes on, and when the clock moves. It tries every decision, that
// is every interleaving, and leaves out only what follows from a state that it has seen. It judges by the promises in
// Generator's doc comment; of the code it knows only where a goroutine can be interrupted: at the clock and the hook.
//
// The clock is one of WithClock. Which clock it is decides only when a goroutine looks for a later second, and the
// scripts below let it see any.

// call is one call in a goroutine's program: NewID if it is 1, Fill of so many ids if it is more, or Renew.
type call int

const renew call = 0

type program []call

type scenario struct {
	width    uint64
	rollback int64  // limit of WithMaxRollback in seconds
	start    uint32 // the first counter
	clock    []int64
	programs []program
}

// Where a goroutine stands is a point of the hook, or one of these.
const (
	pointAsk  point = iota + 100 // before the clock is read
	pointTold                    // after it
	pointDone                    // the program is at its end
)

type thread struct {
	resume func() (point, bool)
	stop   func()
	yield  func(point) bool

	at       point
	calls    int             // that have returned
	ids      []bson.ObjectID // of the call in progress
	log      []bson.ObjectID // those of them that are in world.ids
	stale    []bson.ObjectID // those that were given up when a new order interrupted Fill
	renewing bool            // the call in progress is Renew

	inNext   bool   // the clock is read for next, not for draw
	held     int    // which of world.seconds it goes by
	taken    uint64 // how many ids were taken of that when it looked
	told     int64  // what the clock showed
	toldAt   int    // when that was, as an index into the clock's script
	toldFull bool   // whether the second in use was full then
	order    int    // which order it was for
	highest  int64  // the highest reading in that order when the clock was asked
}

type world struct {
	scenario
	t       *testing.T
	path    []int // the decisions
	g       *Generator
	now     int // index into clock
	random  int // how often random bytes were drawn
	drawn   [8]byte
	threads []*thread
	running *thread
	seconds []*second       // in the order of their use
	ids     []bson.ObjectID // in the order in which they were taken
	order   int             // how often a new order has begun
	highest int64           // the highest reading in the present one
	era     Parts           // process value and first counter since NewGenerator or the last Renew
	eraAt   int             // how many ids were taken before
}

// stopped unwinds a goroutine whose run is given up.
type stopped struct{}

// randomBytes are drawn by New and then by each renewal. Process values that are in use come up again.
var randomBytes = [][8]byte{
	{'p', 'r', 'o', 'c', 5},
	{'p', 'r', 'o', 'c', 5, 0, 0, 2},
	{'p', 'r', 'o', 'c', 1, 0, 0, 3},
	{'p', 'r', 'o', 'c', 5, 0, 0, 3},
	{'p', 'r', 'o', 'c', 1, 0, 0, 1},
	{'p', 'r', 'o', 'c', 9, 0, 0, 2},
}

func (w *world) Read(p []byte) (int, error) {
	w.drawn = [8]byte{'m', 'o', 'r', 'e', byte(w.random), 0, 0, byte(w.random)}
	if w.random < len(randomBytes) {
		w.drawn = randomBytes[w.random]
	}
	w.random++
	return copy(p, w.drawn[:]), nil
}

// newWorld starts the generator and takes the decisions of path, as indexes into what ready gives.
func newWorld(t *testing.T, s scenario, path []int) *world {
	w := &world{scenario: s, t: t}
	g, err := NewGenerator(WithRandom(w), WithClock(w.clockFunc))
	if err != nil {
		t.Fatal(err)
	}
	g.width = s.width
	g.hook = w.pause
	w.g = g
	g.maxRollback, g.maxWait = uint64(s.rollback), math.MaxInt64
	first := newSecond(beforeAll, start{g.current.Load().process, s.start}, order.First(), g.system.Origin())
	g.current.Store(first)
	w.seconds = []*second{first}
	w.era = Parts{Process: first.process, Counter: s.start}
	for _, p := range s.programs {
		th := &thread{}
		th.resume, th.stop = iter.Pull(func(yield func(point) bool) {
			th.yield = yield
			defer func() {
				if r := recover(); r != nil && r != (stopped{}) {
					panic(r)
				}
			}()
			for _, c := range p {
				w.do(th, c)
				th.calls++
			}
		})
		w.threads = append(w.threads, th)
		w.run(th)
	}
	for _, d := range path {
		w.decide(d)
	}
	return w
}

func (w *world) close() {
	for _, th := range w.threads {
		th.stop()
	}
}

// do makes one call in the goroutine of th.
func (w *world) do(th *thread, c call) {
	th.ids, th.log, th.stale, th.renewing = nil, nil, nil, c == renew
	switch c {
	case renew:
		if err := w.g.Renew(); err != nil {
			w.fatalf("Renew: %v", err)
		}
	case 1:
		id, err := w.g.NewID()
		if err != nil {
			w.fatalf("NewID: %v", err)
		}
		th.ids = []bson.ObjectID{id.(bson.ObjectID)}
	default:
		th.ids = make([]bson.ObjectID, c)
		w.g.Fill(th.ids)
	}
	w.observe()
	if !slices.Equal(th.log, th.ids) {
		w.fatalf("ids were not set: %v", th.ids)
	}
	last := slices.Max(w.clock) >= lastSecond // an order may have too few seconds left
	for _, id := range th.ids {
		if Decode(id).Process != Decode(th.ids[0]).Process && !last {
			w.fatalf("one Fill in two orders: %v", th.ids)
		}
	}
}

func (w *world) clockFunc() time.Time {
	th := w.running
	th.order, th.highest = w.order, w.highest
	w.pause(pointAsk)
	th.told, th.toldAt, th.toldFull = w.clock[w.now], w.now, w.full()
	w.pause(pointTold)
	if th.order == w.order {
		w.highest = max(w.highest, min(max(th.told, 0), lastSecond))
	}
	return time.Unix(th.told, 0)
}

func (w *world) full() bool {
	return w.g.current.Load().taken.Load()&^closed == w.width
}

// pause lets another goroutine run.
func (w *world) pause(p point) {
	w.observe()
	th := w.running
	switch p {
	case pointAsk:
		if th.inNext = th.at == pointNext; !th.inNext {
			th.held = len(w.seconds) - 1
		}
	case pointTake, pointNext:
		// The second is still the one that draw has loaded, or the one that turn or next has returned just now.
		if th.at != pointTake && th.at != pointWait && (th.at != pointTold || th.inNext) {
			th.held = len(w.seconds) - 1
		}
		th.taken = w.seconds[th.held].taken.Load()
	case pointWait:
		if !th.toldFull || th.told != w.g.current.Load().seconds {
			w.fatalf("waits though the clock is not in the second that is used up")
		}
	}
	if !th.yield(p) {
		panic(stopped{})
	}
}

// observe records what the running goroutine has done since it was resumed, while no other one ran.
func (w *world) observe() {
	th := w.running
	if cur, last := w.g.current.Load(), w.seconds[len(w.seconds)-1]; cur != last {
		w.seconds = append(w.seconds, cur)
		told := min(max(th.told, 0), lastSecond)
		later := last.seconds + 1
		tooFar := th.order == w.order && th.highest-told > w.rollback
		usedUp := th.toldFull && th.told != last.seconds
		if cur.process != last.process {
			w.era = Parts{Process: cur.process, Counter: uint32(w.drawn[7])}
			w.eraAt = len(w.ids)
			w.order++
			w.highest = cur.seconds
			switch {
			case th.renewing && cur.seconds == told:
			case tooFar && cur.seconds == told:
			case usedUp && cur.seconds == told && later > lastSecond:
			case th.stale != nil && cur.seconds == last.seconds && later > lastSecond: // does not look at the clock
			default:
				w.fatalf("is renewed from second %d to %d with the clock at %d", last.seconds, cur.seconds, th.told)
			}
		} else {
			switch {
			case cur.seconds == told && told > last.seconds:
			case cur.seconds == later && usedUp && th.told < last.seconds && !tooFar:
			case cur.seconds == later && th.stale != nil: // does not look at the clock
			default:
				w.fatalf("goes from second %d to %d with the clock at %d, all ids taken: %t",
					last.seconds, cur.seconds, th.told, th.toldFull)
			}
		}
	}
	if len(th.log) > 0 && th.ids[0] != th.log[0] { // Fill starts again
		th.log, th.stale = nil, append(th.stale, th.log...)
	}
	for n := len(th.log); n < len(th.ids) && th.ids[n] != bson.NilObjectID; n++ {
		if slices.Contains(th.stale, th.ids[n]) {
			break
		}
		w.take(th.ids[n])
		th.log = append(th.log, th.ids[n])
	}
}

// take checks the promises for the next id.
func (w *world) take(id bson.ObjectID) {
	if slices.Contains(w.ids, id) {
		w.fatalf("%v is a duplicate", id)
	}
	parts := Decode(id)
	want := uint32((uint64(w.era.Counter) + uint64(len(w.ids)-w.eraAt)) % w.width)
	if parts.Process != w.era.Process || parts.Counter != want {
		w.fatalf("%v: want process %x, counter %d", id, w.era.Process, want)
	}
	if len(w.ids) > 0 {
		last := w.ids[len(w.ids)-1]
		if len(w.ids) > w.eraAt && parts.Seconds < Decode(last).Seconds {
			w.fatalf("%v is of an earlier second than %v", id, last)
		}
		if len(w.ids) > w.eraAt && parts.Counter != 0 && Compare(last, id) >= 0 {
			w.fatalf("%v is not above %v", id, last)
		}
	}
	w.ids = append(w.ids, id)
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nscenario %+v\ndecisions %v\nids %v", fmt.Sprintf(format, args...), w.scenario, w.path, w.ids)
}

// ready returns the goroutines that can go on, and nil for the clock if it can move.
func (w *world) ready() []*thread {
	var ready []*thread
	if w.now+1 < len(w.clock) {
		ready = append(ready, nil)
	}
	for _, th := range w.threads {
		switch th.at {
		case pointDone:
			continue
		case pointTurn, pointNext, pointRenew:
			if !w.g.mu.TryLock() {
				continue
			}
			w.g.mu.Unlock()
		case pointWait: // would be told the same again
			if th.toldAt == w.now && w.seconds[th.held] == w.g.current.Load() {
				continue
			}
		}
		ready = append(ready, th)
	}
	return ready
}

func (w *world) decide(d int) {
	w.path = append(w.path, d)
	if th := w.ready()[d]; th != nil {
		w.run(th)
	} else {
		w.now++
	}
}

func (w *world) run(th *thread) {
	w.running = th
	at, ok := th.resume()
	if !ok {
		at = pointDone
	}
	th.at = at
}

// atEnd checks the end of a run: a goroutine that has not come to its own may only wait for the clock.
func (w *world) atEnd() {
	for _, th := range w.threads {
		if th.at != pointDone && th.at != pointWait {
			w.fatalf("deadlock")
		}
	}
}

// key tells states apart: the same key, the same future.
func (w *world) key() string {
	var b []byte
	add := func(values ...int64) {
		for _, v := range values {
			b = binary.AppendVarint(b, v)
		}
	}
	add(int64(w.order), w.highest, int64(w.now), int64(w.random), int64(w.eraAt), int64(len(w.seconds)), int64(len(w.ids)))
	for _, s := range w.seconds {
		add(s.seconds, int64(s.start), int64(s.process[4]), int64(s.taken.Load()))
	}
	for _, id := range w.ids {
		b = append(b, id[:]...)
	}
	for _, th := range w.threads {
		inNext, full := 0, 0
		if th.inNext {
			inNext = 1
		}
		if th.toldFull {
			full = 1
		}
		add(int64(th.at), int64(th.calls), int64(len(th.log)), int64(len(th.stale)), int64(th.order), th.highest, int64(inNext), int64(th.held), int64(th.taken), th.told,
			int64(th.toldAt), int64(full))
	}
	return string(b)
}

// explore tries every decision and returns the number of different states and of runs that came to an end.
func explore(t *testing.T, s scenario) (states, ends int) {
	seen := map[string]bool{}
	todo := [][]int{nil}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		w := newWorld(t, s, path)
		for key := w.key(); !seen[key]; key = w.key() {
			seen[key] = true
			ready := w.ready()
			if len(ready) == 0 {
				w.atEnd()
				ends++
				break
			}
			for d := 1; d < len(ready); d++ {
				todo = append(todo, append(slices.Clone(w.path), d))
			}
			w.decide(0)
		}
		w.close()
	}
	return len(seen), ends
}

func TestModel(t *testing.T) {
	for _, test := range []struct {
		name     string
		width    uint64
		rollback int64 // limit of WithMaxRollback in seconds
		programs []program
		large    bool
	}{
		{"one id a second", 1, 60, []program{{1, 1}, {1, 1}}, false},
		{"two ids a second", 2, 60, []program{{1, 1}, {1, 1}}, false},
		{"four ids a second", 4, 60, []program{{1, 1, 1}, {1, 2}}, false},
		{"fill across seconds", 2, 60, []program{{3}, {1, 2}}, false},
		{"renew", 2, 60, []program{{1, renew}, {1, 1}}, false},
		{"renew twice", 2, 60, []program{{1, renew, 1}, {2, renew}}, false},
		{"no step back", 2, 0, []program{{1, 1}, {1, 1}}, false},
		{"a second back", 1, 1, []program{{1, 1}, {1, 1}}, false},
		{"no step back, fill", 2, 0, []program{{3}, {1, 2}}, false},
		{"no step back, renew", 1, 0, []program{{1, renew}, {1, 1}}, false},
		{"three goroutines", 2, 60, []program{{1}, {1}, {1}}, true},
		{"three goroutines, no step back", 1, 0, []program{{1}, {1}, {1}}, true},
		{"three goroutines, renew", 1, 60, []program{{1}, {1}, {renew}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scripts := [][]int64{{0}, {0, 1}, {1, 0}}
			if raceEnabled { // finds nothing here: one goroutine runs at a time
				scripts = scripts[1:2]
			}
			if long(t) && !raceEnabled {
				scripts = append(scripts, [][]int64{{2, 0}, {0, 1, 0}, {1, 0, 1}, {1, 0, 2}, {2, 0, 1}}...)
			} else if test.large {
				t.Skip("takes seconds, with the race detector minutes; " + longVariable + " runs it")
			}
			states, ends := 0, 0
			for _, base := range []int64{100, -1, lastSecond - 1} {
				for i, steps := range scripts {
					if base != 100 && i >= 4 {
						break
					}
					s := scenario{width: test.width, rollback: test.rollback, start: uint32(test.width - 1), programs: test.programs}
					for _, step := range steps {
						s.clock = append(s.clock, base+step)
					}
					n, m := explore(t, s)
					states, ends = states+n, ends+m
				}
			}
			t.Logf("%d states, %d ends", states, ends)
		})
	}
}
