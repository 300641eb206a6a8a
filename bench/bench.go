// Package bench compares bsonids with the alternatives, side by side in one process.
//
// A [Case] is one implementation of one piece of work. The command cmd/run interleaves all cases in rounds and
// prints Go's benchmark format; the command cmd/table turns that into medians and ratios.
package bench

import "testing"

// Case is one implementation of one piece of work.
//
// Work names what is done, Impl who does it; both are single words in Go's benchmark names. Procs is the GOMAXPROCS
// that the case runs with, 1 where it is zero. Run is an ordinary benchmark body.
type Case struct {
	Work, Impl string
	Procs      int
	Run        func(b *testing.B)
}

// All returns every case. Cases of the same work stand together, so that a round measures them close in time.
func All() []Case {
	var all []Case
	for _, cases := range [][]Case{codecCases(), autoIDCases(), uuidgenCases(), insertCases(), objectIDCases()} {
		all = append(all, cases...)
	}
	return all
}
