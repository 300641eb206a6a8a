package monotonic

import (
	"math/rand/v2"
	"testing"
)

func TestNext(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := 2; width <= 62; width++ {
		for _, random := range []func() uint64{
			rnd.Uint64, func() uint64 { return 0 }, func() uint64 { return 1<<64 - 1 },
		} {
			var c Counter
			var last uint64
			for range min(1<<min(width-1, 20)-1, 10_000) {
				n, ok := c.Next(width, random())
				if !ok || n <= last || n>>width != 0 {
					t.Fatalf("width %d: %d after %d, %t", width, n, last, ok)
				}
				last = n
			}
		}
	}
}

// The longest steps from the highest start leave the promised number of numbers.
func TestCapacity(t *testing.T) {
	for width := 2; width <= 62; width++ {
		step := uint64(1) << max(0, width-1-ids)
		left := (uint64(1)<<width - 1 - (1<<(width-1) - 1)) / step
		if want := uint64(1) << min(width-1, ids); left+1 < want {
			t.Errorf("width %d: %d numbers, want %d", width, left+1, want)
		}
	}
}

func TestEnd(t *testing.T) {
	var c Counter
	for range 3 { // 1 and 2 and 3 are all numbers of two bits above zero
		c.Next(2, 0)
	}
	for range 3 {
		if n, ok := c.Next(2, 0); ok || n != 0 {
			t.Errorf("after the end: %d, %t", n, ok)
		}
	}
	c = Counter{}
	if n, ok := c.Next(2, 0); n != 1 || !ok {
		t.Errorf("anew: %d, %t", n, ok)
	}
}
