package decide

import (
	"math"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// tally counts the distinct values of one field by their versions in the three orders.
type tally struct {
	values  int64 // including repeated values
	same    int64 // distinct values that are the same in every order
	classes [classes]uint32
	cells   [orders][9][cells / 64]uint64 // bit set of the cells of the values, by order and version
	datable [orders][9]uint32             // values with a plausible time
}

const (
	classes = (1 + 81) * 9
	cells   = 1 << 10
)

// class returns a number for the versions of a value in the three orders, which are 0 if it does
// not fit, and for whether it has the variant at the position that network and C# order share.
func class(v *[16]byte) int {
	shared := 0
	if hasVariant(v, network) {
		shared = 1 + version(v, network)*9 + version(v, csharp)
	}
	return shared*9 + version(v, java)
}

// ofClass is the inverse of class.
func ofClass(c int) (versions [orders]int, variant bool) {
	versions[java] = c % 9
	if c /= 9; c > 0 {
		versions[network], versions[csharp], variant = (c-1)/9, (c-1)%9, true
	}
	return versions, variant
}

// add adds a new distinct value of the field.
func (t *tally) add(v [16]byte, now time.Time) {
	if kinds.Symmetric(&v) {
		t.same++
		return
	}
	t.classes[class(&v)]++
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
}

func (c *count) fits() (n int64) {
	for _, k := range c.versions[1:] {
		n += k
	}
	return n
}

// count counts the values that fit order o, among those whose versions in the three orders are
// selected.
func (t *tally) count(o int, selected func(versions [orders]int) bool) count {
	var c count
	for i, n := range t.classes {
		if n == 0 {
			continue
		}
		versions, shared := ofClass(i)
		if !selected(versions) {
			continue
		}
		c.n += int64(n)
		if o != java && shared {
			c.variant += int64(n)
		}
		if v := versions[o]; v > 0 {
			c.versions[v] += int64(n)
		}
	}
	return c
}

// independence returns the share of independent values among those that have a version in an order.
// Values with the same ten bits next to the version and the variant, such as keys with a fixed
// beginning, count once. All values are independent if at least nine tenths of them have a
// plausible time, as the UUIDs of the clock of one machine have.
func (t *tally) independence(o, version int, k int64) float64 {
	if k == 0 || int64(t.datable[o][version])*10 >= k*9 {
		return 1
	}
	held := 0
	for _, word := range t.cells[o][version] {
		for ; word != 0; word &= word - 1 {
			held++
		}
	}
	if held == cells {
		return 1
	}
	worth := math.Log1p(-float64(held)/cells) / math.Log1p(-1.0/cells)
	return min(1, worth/float64(k))
}
