// Package numbers counts the ids that a generator makes for given instants.
//
// The numbers of one Counter are in the order of the calls, and those of a process and of its copies differ: each
// counter starts at a random number and grows in random steps (RFC 9562, section 6.2, method 2), and the next number
// after a copy was suspected jumps further ahead, so that what the two make from then on lies apart. Nothing takes a
// counter back. See package order for the ids that follow a clock.
package numbers

import "errors"

// ErrExhausted is the error of a generator that has no more ids. Each package exports it and wraps it behind its own
// name. [errors.Is] thus matches across packages.
var ErrExhausted = errors.New("no more ids")

// maxStep is the longest random step. A step takes no more than the part 1/2^calls of the numbers left, and a jump no
// more than 1/jumpShare.
const (
	maxStep   = 1 << 20
	calls     = 33
	jumpShare = 1024
)

// A Counter gives numbers in ascending order. The zero Counter begins at a random number. It is not safe for concurrent
// use.
//
// From 2^54 numbers, it gives 2^33 at least, and 2^32 after 10,000 jumps: a jump leaves 1023/1024 of the numbers, and
// the steps become shorter with what is left.
type Counter struct {
	last  uint64
	begun bool
	jump  bool
}

// Start sets the number before the next one.
func (c *Counter) Start(last uint64) { *c = Counter{last: last, begun: true} }

// Jump makes the next number jump, because the process may be a copy.
func (c *Counter) Jump() { c.jump = true }

// Drawn reports whether the next number needs a random one even without random steps: the first, and one that jumps.
func (c *Counter) Drawn() bool { return !c.begun || c.jump }

// Next returns a number from 1 to last, which is one less than a power of two and 3 at least. The number is greater than
// those before it; the random number decides by how much, and with zero it is the next one. Next reports false if no
// number is left. The Counter then stays as it is.
func (c *Counter) Next(last, random uint64) (n uint64, ok bool) {
	if !c.begun {
		n = max(1, random&(last>>1)) // half of the numbers are left, or more
	} else {
		if c.last >= last {
			return 0, false
		}
		left := last - c.last
		n = c.last + 1
		switch {
		case c.jump:
			n += random % (left/jumpShare + 1) // left is 1 at least, so that this is below left
		case left>>calls >= maxStep:
			n += random & (maxStep - 1)
		default:
			n += random % (left>>calls + 1)
		}
	}
	c.last, c.begun, c.jump = n, true, false
	return n, true
}
