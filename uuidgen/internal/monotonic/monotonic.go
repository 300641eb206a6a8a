// Package monotonic counts upwards from a random start in random steps, so that the numbers of one
// counter are in order and those of two counters differ. See RFC 9562, section 6.2, method 2.
package monotonic

// ids is the binary logarithm of how many numbers a counter gives at least, if its width allows so
// many.
const ids = 33

// A Counter gives numbers of at most 62 bits in ascending order. The zero Counter begins anew. It
// is not safe for concurrent use.
type Counter struct {
	last  uint64
	begun bool
}

// Next returns a number of at most width bits, 2 to 62, which is greater than the numbers before it
// and greater than zero. The random number decides by how much: its low 62 bits are used. Next
// reports false if no such number is left; a counter of 34 bits or more gives at least 2^33
// numbers, a narrower one at least 2^(width-1) - 1.
func (c *Counter) Next(width int, random uint64) (n uint64, ok bool) {
	if !c.begun {
		// The start has its highest bit clear, which leaves half of the numbers.
		n = max(1, random&(1<<(width-1)-1))
	} else {
		n = c.last + 1 + random&(1<<max(0, width-1-ids)-1)
	}
	if n>>width != 0 {
		return 0, false
	}
	c.last, c.begun = n, true
	return n, true
}
