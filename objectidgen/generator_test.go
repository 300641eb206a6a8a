package objectidgen

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func newGenerator(t testing.TB, opts ...Option) *Generator {
	t.Helper()
	g, err := NewGenerator(opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func at(seconds int64) func() time.Time {
	return func() time.Time { return time.Unix(seconds, 0) }
}

// TestCounterOverflow is the second item of the specification's test plan: "the Counter field successfully overflows
// its sequence from 0xFFFFFF to 0x000000".
func TestCounterOverflow(t *testing.T) {
	process := [5]byte{1, 2, 3, 4, 5}
	want := []uint32{0xFFFFFE, 0xFFFFFF, 0x000000, 0x000001}
	check := func(t *testing.T, ids []bson.ObjectID, seconds ...uint32) {
		t.Helper()
		for i, id := range ids {
			if got := Decode(id); got != (Parts{seconds[i], process, want[i]}) {
				t.Errorf("id %d: %+v, want counter %#x, second %d", i, got, want[i], seconds[i])
			}
		}
	}
	t.Run("NewObjectID", func(t *testing.T) {
		g := newGenerator(t, WithStart(process, 0xFFFFFE), WithClock(at(100)))
		check(t, []bson.ObjectID{g.NewObjectID(), g.NewObjectID(), g.NewObjectID(), g.NewObjectID()}, 100, 100, 100, 100)
	})
	t.Run("NewID", func(t *testing.T) {
		g := newGenerator(t, WithStart(process, 0xFFFFFE), WithClock(at(100)))
		var ids []bson.ObjectID
		for range want {
			id, err := g.NewID()
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id.(bson.ObjectID))
		}
		check(t, ids, 100, 100, 100, 100)
	})
	t.Run("Fill", func(t *testing.T) {
		g := newGenerator(t, WithStart(process, 0xFFFFFE), WithClock(at(100)))
		ids := make([]bson.ObjectID, 4)
		g.Fill(ids)
		check(t, ids, 100, 100, 100, 100)
	})
	t.Run("with the second", func(t *testing.T) {
		now := int64(100)
		g := newGenerator(t, WithStart(process, 0xFFFFFE), WithClock(func() time.Time { return time.Unix(now, 0) }))
		ids := []bson.ObjectID{g.NewObjectID(), g.NewObjectID()}
		now = 200
		ids = append(ids, g.NewObjectID(), g.NewObjectID())
		check(t, ids, 100, 100, 200, 200)
	})
}

// All of a counter's values, taken for real, then the first of them again: in the next second only.
func TestWholeCycle(t *testing.T) {
	const first = 0xABCDEF
	now := int64(100)
	var asked int
	g := newGenerator(t, WithStart([5]byte{}, first), WithClock(func() time.Time {
		asked++
		return time.Unix(now, 0)
	}))
	ids := make([]bson.ObjectID, 1<<16)
	counter := uint32(first)
	for range 1 << 8 {
		g.Fill(ids)
		for _, id := range ids {
			if got := Decode(id); got != (Parts{100, [5]byte{}, counter}) {
				t.Fatalf("%+v, want counter %#x", got, counter)
			}
			counter = (counter + 1) & 0xFFFFFF
		}
	}
	if counter != first {
		t.Fatalf("counter %#x", counter)
	}
	if want := 1 << 24 / chunk; asked != want {
		t.Errorf("the clock was asked %d times, want %d", asked, want)
	}
	now = 101
	if got := Decode(g.NewObjectID()); got != (Parts{101, [5]byte{}, first}) {
		t.Errorf("after a whole cycle: %+v", got)
	}
}

func TestStart(t *testing.T) {
	t.Run("WithRandom", func(t *testing.T) {
		g := newGenerator(t, WithRandom(strings.NewReader("\x01\x02\x03\x04\x05\xab\xcd\xefrest")), WithClock(at(7)))
		if got := Decode(g.NewObjectID()); got != (Parts{7, [5]byte{1, 2, 3, 4, 5}, 0xABCDEF}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("WithRandom, byte by byte", func(t *testing.T) {
		r := iotest.OneByteReader(strings.NewReader("\x01\x02\x03\x04\x05\xab\xcd\xef"))
		g := newGenerator(t, WithRandom(r), WithClock(at(7)))
		if got := Decode(g.NewObjectID()); got != (Parts{7, [5]byte{1, 2, 3, 4, 5}, 0xABCDEF}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("WithStart", func(t *testing.T) {
		for _, counter := range []uint32{0, 1, 0x800000, 0xFFFFFF} {
			// No random bytes are read.
			g := newGenerator(t, WithStart([5]byte{9, 8, 7, 6, 5}, counter), WithClock(at(7)), WithRandom(iotest.ErrReader(io.EOF)))
			if got := Decode(g.NewObjectID()); got != (Parts{7, [5]byte{9, 8, 7, 6, 5}, counter}) {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("default", func(t *testing.T) {
		// Two generators alike in the 5 bytes, or of many with the top bit of the counter alike, would be a defect:
		// 1 in 2^40, 1 in 2^99.
		a, b := Decode(newGenerator(t).NewObjectID()), Decode(newGenerator(t).NewObjectID())
		if a.Process == b.Process {
			t.Errorf("the process value %x came twice", a.Process)
		}
		high := 0
		for range 100 {
			if Decode(newGenerator(t).NewObjectID()).Counter >= 0x800000 {
				high++
			}
		}
		if high == 0 || high == 100 {
			t.Errorf("%d of 100 counters start in the upper half", high)
		}
	})
}

func TestNewErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		opt  Option
		want error
		text string
	}{
		{"failing source", WithRandom(iotest.ErrReader(broken)), broken, ""},
		{"empty source", WithRandom(strings.NewReader("")), io.EOF, ""},
		{"7 bytes", WithRandom(strings.NewReader("1234567")), io.ErrUnexpectedEOF, ""},
		{"fails after 5 bytes", WithRandom(io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(broken))), broken, ""},
		{"counter of 25 bits", WithStart([5]byte{}, 1<<24), ErrCounterRange, ""},
		{"counter of 32 bits", WithStart([5]byte{}, math.MaxUint32), ErrCounterRange, ""},
		{"no clock", WithClock(nil), nil, "objectidgen: WithClock: nil function"},
		{"no source", WithRandom(nil), nil, "objectidgen: WithRandom: nil reader"},
		{"no option", nil, nil, "objectidgen: nil Option"},
		{"negative limit", WithMaxRollback(-time.Second), nil, "objectidgen: WithMaxRollback: negative duration -1s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Valid options around it do not hide the error.
			g, err := NewGenerator(WithMaxRollback(time.Hour), test.opt, WithMaxRollback(time.Hour), WithClock(time.Now))
			if err == nil || g != nil {
				t.Fatalf("New = %v, %v", g, err)
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if !strings.HasPrefix(err.Error(), "objectidgen: ") || test.text != "" && err.Error() != test.text {
				t.Errorf("%q, want %q", err, test.text)
			}
		})
	}
}

// Of an option that is given twice, the last one counts.
func TestOptionTwice(t *testing.T) {
	g := newGenerator(t, WithStart([5]byte{1}, 1), WithClock(at(1)), WithStart([5]byte{2}, 2), WithClock(at(2)))
	if got := Decode(g.NewObjectID()); got != (Parts{2, [5]byte{2}, 2}) {
		t.Errorf("%+v", got)
	}
}

func TestDefault(t *testing.T) {
	var wg sync.WaitGroup
	got := make([]*Generator, 8)
	for i := range got {
		wg.Go(func() { got[i] = Default() })
	}
	wg.Wait()
	for _, g := range got {
		if g != Default() {
			t.Fatal("Default is not one generator")
		}
	}
	before := time.Now().Truncate(time.Second)
	a, b := NewObjectID(), Default().NewObjectID()
	if pa, pb := Decode(a), Decode(b); pa.Process != pb.Process || (pa.Counter+1)&0xFFFFFF != pb.Counter {
		t.Errorf("%v, then %v", a, b)
	}
	if at := a.Timestamp(); at.Before(before) || at.After(time.Now()) {
		t.Errorf("made at %v, it says %v", before, at)
	}
}

func TestRenew(t *testing.T) {
	now := int64(100)
	g := newGenerator(t, WithStart([5]byte{9}, 0xFFFFFF), WithClock(func() time.Time { return time.Unix(now, 0) }),
		WithRandom(strings.NewReader("\x01\x02\x03\x04\x05\x00\x00\x07"+"AAAAAabc"+"short")))
	expect := func(want Parts) {
		t.Helper()
		if got := Decode(g.NewObjectID()); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	expect(Parts{100, [5]byte{9}, 0xFFFFFF})
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	expect(Parts{100, [5]byte{1, 2, 3, 4, 5}, 7})
	expect(Parts{100, [5]byte{1, 2, 3, 4, 5}, 8})
	now = 99 // Renew takes the timestamp back.
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	expect(Parts{99, [5]byte{'A', 'A', 'A', 'A', 'A'}, 0x616263})
	if err := g.Renew(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Renew with 5 bytes left: %v", err)
	}
	if err := g.Renew(); !errors.Is(err, io.EOF) {
		t.Errorf("Renew with none left: %v", err)
	}
	expect(Parts{99, [5]byte{'A', 'A', 'A', 'A', 'A'}, 0x616264}) // continues as before
	now = 101
	expect(Parts{101, [5]byte{'A', 'A', 'A', 'A', 'A'}, 0x616265})
}

func TestRenewBeforeFirstID(t *testing.T) {
	g := newGenerator(t, WithClock(at(50)), WithStart([5]byte{9}, 1), WithRandom(strings.NewReader("BBBBB\x00\x00\x02")))
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	if got := Decode(g.NewObjectID()); got != (Parts{50, [5]byte{'B', 'B', 'B', 'B', 'B'}, 2}) {
		t.Errorf("%+v", got)
	}
}

// A process value that was used with the second in use is not taken again.
func TestRenewRepeatedValue(t *testing.T) {
	random := "AAAAA\x00\x00\x01" + "AAAAA\x00\x00\x01" + "BBBBB\x00\x00\x02" + "AAAAA\x00\x00\x00" + "BBBBB\x00\x00\x03" + "CCCCC\x00\x00\x04"
	now := int64(100)
	g := newGenerator(t, WithClock(func() time.Time { return time.Unix(now, 0) }),
		WithRandom(io.MultiReader(strings.NewReader(random), bytes.NewReader(bytes.Repeat([]byte("C"), 100)))))
	for _, want := range []byte("ABC") {
		if got := Decode(g.NewObjectID()).Process[0]; got != want {
			t.Errorf("process %c, want %c", got, want)
		}
		if want == 'C' {
			break
		}
		if err := g.Renew(); err != nil {
			t.Fatal(err)
		}
	}
	err := g.Renew()
	if err == nil || !strings.Contains(err.Error(), "same process value") {
		t.Errorf("Renew with a constant source: %v", err)
	}
	if got := Decode(g.NewObjectID()); got != (Parts{100, [5]byte{'C', 'C', 'C', 'C', 'C'}, 5}) {
		t.Errorf("%+v", got)
	}
}

func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	now := int64(100)
	for name, g := range map[string]*Generator{
		"system clock": newGenerator(t),
		"WithClock":    newGenerator(t, WithClock(func() time.Time { return time.Unix(now, 0) })),
	} {
		if n := testing.AllocsPerRun(10000, func() { g.NewObjectID() }); n != 0 {
			t.Errorf("%s: NewObjectID allocates %v times", name, n)
		}
		ids := make([]bson.ObjectID, 2*chunk)
		if n := testing.AllocsPerRun(100, func() { g.Fill(ids) }); n != 0 {
			t.Errorf("%s: Fill allocates %v times", name, n)
		}
	}
	if n := testing.AllocsPerRun(10000, func() { NewObjectID() }); n != 0 {
		t.Errorf("Default: NewObjectID allocates %v times", n)
	}
}

func TestFillNothing(t *testing.T) {
	g := newGenerator(t, WithStart([5]byte{}, 5), WithClock(at(1)))
	g.Fill(nil)
	g.Fill([]bson.ObjectID{})
	if got := Decode(g.NewObjectID()).Counter; got != 5 {
		t.Errorf("an empty Fill took %d ids", got-5)
	}
}

// Everything at once, for the race detector and for duplicates.
func TestConcurrent(t *testing.T) {
	var tick struct {
		sync.Mutex
		n int64
	}
	g := newGenerator(t, WithClock(func() time.Time {
		tick.Lock()
		defer tick.Unlock()
		tick.n++
		return time.Unix(1000+tick.n/50-tick.n%3, 0) // on, and back again and again
	}))
	g.width = 32
	var mu sync.Mutex
	seen := map[bson.ObjectID]bool{}
	add := func(ids ...bson.ObjectID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%v is a duplicate", id)
			}
			seen[id] = true
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ids := make([]bson.ObjectID, 40)
			for i := range 300 {
				add(g.NewObjectID())
				id, err := g.NewID()
				if err != nil {
					t.Error(err)
				}
				add(id.(bson.ObjectID))
				g.Fill(ids[:i%len(ids)])
				add(ids[:i%len(ids)]...)
				if i%50 == 0 {
					if err := g.Renew(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// The zero Generator makes no ids: a method that has an error returns it, the others panic, and what tells a number tells 0.
func TestZeroGenerator(t *testing.T) {
	var g Generator
	_, e1 := g.NewID()
	_, e2 := g.NewObjectIDAt(time.Unix(1000, 0))
	for i, err := range []error{e1, e2, g.Renew()} {
		if err == nil || !strings.HasPrefix(err.Error(), "objectidgen: ") {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if g.Ahead() != 0 || g.Orders() != 0 {
		t.Errorf("%v ahead, %d orders", g.Ahead(), g.Orders())
	}
	for i, call := range []func(){
		func() { g.NewObjectID() }, func() { g.Fill(make([]bson.ObjectID, 1)) },
		func() {
			for range g.ObjectIDs(1) {
				t.Error("an id")
			}
		},
	} {
		func() {
			defer func() {
				if r := recover(); r != errNotMade {
					t.Errorf("call %d: %v", i, r)
				}
			}()
			call()
		}()
	}
	g.Fill(nil)
}

// A clock before 1970 counts as that instant: nothing is ahead of it by 2000 years.
func TestAheadBefore1970(t *testing.T) {
	now := time.Unix(-1e9, 0)
	g := newGenerator(t, WithClock(func() time.Time { return now }))
	if d := g.Ahead(); d != 0 {
		t.Errorf("%v ahead before the first id", d)
	}
	g.NewObjectID()
	if d := g.Ahead(); d != 0 {
		t.Errorf("%v ahead with the clock before 1970", d)
	}
	now = time.Unix(10, 0)
	g.NewObjectID()
	now = time.Unix(-1e9, 0)
	if d := g.Ahead(); d != 10*time.Second {
		t.Errorf("%v ahead of a clock set back before 1970, want 10s", d)
	}
}
