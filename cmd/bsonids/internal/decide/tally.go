package decide

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// tally counts the distinct values of one field by their versions in the three orders.
type tally struct {
	values  int64                         // including repeated values
	same    int64                         // distinct values that are the same in every order
	classes [classes]uint32               // see class
	cells   [orders][9][cells / 64]uint64 // bit set of the cells of the values, by order and version
	nibbles [orders][9][16]uint32         // values by the four bits next to the version, by order and version
	sixes   [orders][9][64]uint32         // values by the six bits next to the variant, by order and version
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
			t.nibbles[o][n][c>>6]++
			t.sixes[o][n][c&0x3f]++
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
// beginning, count once. The four bits next to the version, and the six next to the variant, count by themselves, too: see
// evenness.
//
// If at least nine tenths of the values have a plausible time, as the UUIDs of the clock of one machine have,
// all are independent. In version 6 the four bits are the end of the time, and count: constant bytes of other ids may look like
// the beginning of one.
func (t *tally) independence(o, version int, k int64) float64 {
	if k == 0 {
		return 1
	}
	dated := int64(t.datable[o][version])*10 >= k*9
	share := 1.0
	if !dated || version == 6 {
		share = evenness(t.nibbles[o][version][:], k)
	}
	if !dated {
		held := 0
		for _, word := range t.cells[o][version] {
			held += bits.OnesCount64(word)
		}
		share = min(share, draws(held, cells)/float64(k), evenness(t.sixes[o][version][:], k))
	}
	return share
}

// uneven is the probability of chance below which the bits of a field are those of a counter, a clock or constants.
const uneven = 1e-4

// evenness returns the share of independent values among k, of which counts holds how many have which bits in some place; it may
// count others, too. If the bits are others less often than chance allows, as those of counters and clocks are, only as many
// values are independent as would have as many others by chance. If more values than chance allows have the most frequent bits,
// these count once.
func evenness(counts []uint32, k int64) float64 {
	var all, held int64
	for _, n := range counts {
		all += int64(n)
		held += int64(min(n, 1))
	}
	share := 1.0
	if fewer(int(held), len(counts), k) < uneven {
		share = min(share, draws(int(held), len(counts))/float64(k))
	}
	most := int64(slices.Max(counts))
	if float64(len(counts))*atLeast(most, all, 1/float64(len(counts))) < uneven {
		share = min(share, float64(all-most+1)/float64(all))
	}
	return share
}

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
