package numbers

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNext(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for width := 2; width <= 64; width++ {
		end := uint64(math.MaxUint64) >> (64 - width)
		for _, random := range []func() uint64{
			rnd.Uint64, func() uint64 { return 0 }, func() uint64 { return 1<<64 - 1 },
		} {
			for _, jumps := range []bool{false, true} {
				var c Counter
				var last uint64
				for i := range min(1<<min(width-1, 20)-1, 10_000) {
					if jumps && i%3 == 1 {
						c.Jump()
					}
					n, ok := c.Next(end, random())
					if !ok && jumps && width < 24 {
						break
					}
					if !ok || n <= last || n > end || i > 0 && !(jumps && i%3 == 1) && n-last > maxStep {
						t.Fatalf("width %d: %d after %d, %t", width, n, last, ok)
					}
					last = n
				}
			}
		}
	}
}

// rest returns a number of calls that a Counter of width bits still answers: less than it does, because every step is
// taken as the longest possible, and the steps only become shorter.
func rest(c Counter, end uint64) float64 {
	calls := 0.0
	for left := end - c.last; left > 0; left /= 2 {
		step := 1 + min(left>>33, 1<<20-1)
		calls += float64(left-left/2) / float64(step)
	}
	return calls
}

// The longest steps from the highest start leave the promised number of numbers, also after the longest jumps.
func TestCapacity(t *testing.T) {
	for _, test := range []struct {
		width, jumps int
		want         float64
	}{
		{54, 0, 1 << 33}, {54, 1000, 1 << 33}, {54, 10_000, 1 << 32}, {62, 0, 1 << 33}, {40, 0, 1 << 33}, {34, 0, 1 << 32},
		{33, 0, 1 << 32}, {16, 0, 1 << 15}, {2, 0, 2},
	} {
		var c Counter
		end := uint64(1)<<test.width - 1
		if _, ok := c.Next(end, math.MaxUint64); !ok {
			t.Fatal("no first number")
		}
		for range test.jumps {
			c.Jump()
			left := end - c.last
			if _, ok := c.Next(end, left/1024); !ok {
				t.Fatalf("%+v: ends in a jump", test)
			}
			if now := end - c.last; float64(left-now) > float64(left)/1024+1 {
				t.Fatalf("%+v: a jump from %d to %d left", test, left, now)
			}
		}
		if got := rest(c, end) + 1; got < test.want {
			t.Errorf("%+v: %g calls are left", test, got)
		}
	}
}

func TestEnd(t *testing.T) {
	var c Counter
	for range 3 { // 1 and 2 and 3 are all numbers of two bits above zero
		c.Next(3, 0)
	}
	for i := range 3 {
		if i == 1 {
			c.Jump()
		}
		if n, ok := c.Next(3, 0); ok || n != 0 {
			t.Errorf("after the end: %d, %t", n, ok)
		}
	}
	c.Start(math.MaxUint64 - 1)
	if n, ok := c.Next(math.MaxUint64, math.MaxUint64); n != math.MaxUint64 || !ok {
		t.Errorf("the last number: %d, %t", n, ok)
	}
	if n, ok := c.Next(math.MaxUint64, 0); ok {
		t.Errorf("after the last number: %d", n)
	}
}

// Two counters go on apart once one has jumped, and those of two copies too, after years of calls as well.
func TestCopiesDiffer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	const end = 1<<54 - 1
	for _, jumps := range []int{0, 100, 3000} {
		var c Counter
		c.Next(end, rnd.Uint64())
		for range jumps {
			c.Jump()
			c.Next(end, rnd.Uint64())
		}
		seen := map[uint64]int{}
		for copies := range 20 {
			d := c
			if copies > 0 {
				d.Jump()
			}
			for range 1000 {
				n, ok := d.Next(end, rnd.Uint64())
				if other, used := seen[n]; !ok || used {
					t.Fatalf("%d jumps: %d of copy %d, %t, is one of copy %d", jumps, n, copies, ok, other)
				}
				seen[n] = copies
			}
		}
	}
}
