package decide

import (
	"math"
	"math/bits"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// tally counts the distinct values of one field by their versions in the three orders.
type tally struct {
	values  int64                         // including repeated values
	same    int64                         // distinct values that are the same in every order
	classes [classes]uint32               // see class
	cells   [orders][9][cells / 64]uint64 // bit set of the cells of the values, by order and version
	datable [orders][9]uint32             // values with a plausible time
	sample  sample
}

const (
	classes = 9 * 9 * 9 * 2 * 2
	cells   = 1 << 10
)

// digit returns the version that the digit at its place in order o says, from 1 to 8, or 0.
func digit(v *[16]byte, o int) int {
	if n := int(v[places[o].version] >> 4); n <= 8 {
		return n
	}
	return 0
}

// class returns a number for the digits of v in the three orders, and for whether it has the variant: in
// Java order, and in the others, which have it in the same place.
func class(v *[16]byte) int {
	c := 0
	for o := range orders {
		c = c*9 + digit(v, o)
	}
	for _, o := range []int{network, java} {
		c *= 2
		if hasVariant(v, o) {
			c++
		}
	}
	return c
}

// shape is what a class says about a value, by order.
type shape struct {
	digits  [orders]int
	variant [orders]bool
}

// ofClass is the inverse of class.
func ofClass(c int) (s shape) {
	s.variant[java], s.variant[network], s.variant[csharp] = c%2 == 1, c/2%2 == 1, c/2%2 == 1
	c /= 4
	for o := orders - 1; o >= 0; o-- {
		s.digits[o] = c % 9
		c /= 9
	}
	return s
}

// versions returns the versions in the three orders, which are 0 if the value does not fit.
func (s shape) versions() (versions [orders]int) {
	for o, n := range s.digits {
		if s.variant[o] {
			versions[o] = n
		}
	}
	return versions
}

// add adds a new distinct value of the field.
func (t *tally) add(v [16]byte, now time.Time) {
	if kinds.Symmetric(&v) {
		t.same++
		return
	}
	t.classes[class(&v)]++
	t.sample.add(v)
	for o := range orders {
		if n := version(&v, o); n > 0 {
			c := cell(&v, o)
			t.cells[o][n][c/64] |= 1 << (c % 64)
			if plausible(&v, o, n, now) {
				t.datable[o][n]++
			}
		}
	}
}

// count holds how many of some distinct values fit one order.
type count struct {
	n        int64    // number of values
	variant  int64    // number with the variant
	versions [9]int64 // number by version; versions[0] is unused
	digits   [9]int64 // number with the digit of a version, also without the variant; digits[0] is unused
}

// fits returns the number of values that fit.
func (c *count) fits() int64 { return sum(c.versions) }

// without takes the values of a version out of the count.
func (c *count) without(version int) {
	k := c.versions[version]
	c.n, c.variant = c.n-k, c.variant-k
	c.digits[version], c.versions[version] = c.digits[version]-k, 0
}

func sum(versions [9]int64) (n int64) {
	for _, k := range versions[1:] {
		n += k
	}
	return n
}

// count counts the values that fit order o, among those whose versions in the three orders are
// selected; nil selects all.
func (t *tally) count(o int, selected func(versions [orders]int) bool) count {
	var c count
	for i, n := range t.classes {
		if n == 0 {
			continue
		}
		s := ofClass(i)
		if selected != nil && !selected(s.versions()) {
			continue
		}
		c.n += int64(n)
		c.digits[s.digits[o]] += int64(n)
		if s.variant[o] {
			c.variant += int64(n)
			c.versions[s.digits[o]] += int64(n)
		}
	}
	return c
}

// independence returns the share of independent values among those that have a version in an order.
// Values with the same ten bits next to the version and the variant, such as keys with a fixed
// beginning, count once. If the four bits next to the version, or the six next to the variant, are others
// less often than chance allows, as those of counters and clocks are, only as many values count as would
// have as many others by chance. All values are independent if at least nine tenths of them have a
// plausible time, as the UUIDs of the clock of one machine have.
func (t *tally) independence(o, version int, k int64) float64 {
	if k == 0 || int64(t.datable[o][version])*10 >= k*9 {
		return 1
	}
	held := 0
	var nibbles [1 << 4]bool
	var sixes [1 << 6]bool
	for i, word := range t.cells[o][version] {
		for ; word != 0; word &= word - 1 {
			c := i*64 + bits.TrailingZeros64(word)
			nibbles[c>>6], sixes[c&0x3f] = true, true
			held++
		}
	}
	worth := draws(held, cells)
	for _, part := range [][]bool{nibbles[:], sixes[:]} {
		held := 0
		for _, is := range part {
			if is {
				held++
			}
		}
		if fewer(held, len(part), k) < uneven {
			worth = min(worth, draws(held, len(part)))
		}
	}
	return min(1, worth/float64(k))
}

// uneven is the probability of chance below which the bits of a field are those of a counter or a clock.
const uneven = 1e-4

// draws returns about how many values at random hold as many of the cells.
func draws(held, cells int) float64 {
	if held == cells {
		return math.Inf(1)
	}
	return math.Log1p(-float64(held)/float64(cells)) / math.Log1p(-1/float64(cells))
}

// fewer returns a bound of the probability that k values at random hold no more than so many of the cells.
func fewer(held, cells int, k int64) float64 {
	return math.Exp(logChoose(int64(cells), int64(held)) + float64(k)*math.Log(float64(held)/float64(cells)))
}
