package order

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

// The three cases of the rule, at their limits.
func TestContinues(t *testing.T) {
	for _, test := range []struct {
		highest, reading, limit uint64
		continues               bool
		want                    uint64
	}{
		{0, 0, 0, true, 0}, {0, 5, 0, true, 5}, {100, 101, 0, true, 101}, {100, 100, 0, true, 100}, {100, 99, 0, false, 100},
		{100, 90, 10, true, 100}, {100, 89, 10, false, 100}, {100, 0, 100, true, 100}, {100, 0, 99, false, 100},
		{math.MaxUint64, 0, math.MaxUint64, true, math.MaxUint64}, {1, math.MaxUint64, 0, true, math.MaxUint64},
	} {
		o := First().Next(test.highest)
		if got := o.Continues(test.reading, o.Highest(), test.limit); got != test.continues || o.Highest() != test.want {
			t.Errorf("%+v: %t, R is %d", test, got, o.Highest())
		}
		if o.Number() != 2 || o.Next(7).Number() != 3 || o.Next(7).Highest() != 7 || First().Number() != 1 {
			t.Errorf("%+v: numbers %d and %d", test, o.Number(), o.Next(7).Number())
		}
	}
}

// R is the highest reading, whatever goroutines add at once, and a reading that waited while R rose continues.
func TestConcurrentReadings(t *testing.T) {
	o := First()
	var highest [4]uint64
	var group sync.WaitGroup
	for i := range highest {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for range 10_000 {
				before := o.Highest()
				reading := before + rnd.Uint64N(50)
				highest[i] = max(highest[i], reading)
				if !o.Continues(reading, before, 0) {
					t.Errorf("%d does not continue after %d", reading, before)
				}
			}
		})
	}
	group.Wait()
	if want := max(highest[0], highest[1], highest[2], highest[3]); o.Highest() != want {
		t.Errorf("R is %d, want %d", o.Highest(), want)
	}
}
