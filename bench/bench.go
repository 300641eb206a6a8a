// Package bench compares bsonids with the alternatives, side by side in one process.
//
// A [Case] is one implementation of one task. The command cmd/run interleaves all cases in rounds
// and prints Go's benchmark format. The command cmd/table turns that into medians and ratios.
package bench

import "testing"

// Case is one implementation of one task.
//
// Work names the task and Impl the implementation. Both are single words in Go's benchmark names.
// Procs is the GOMAXPROCS of the case; 0 means 1. Run is an ordinary benchmark body.
type Case struct {
	Work, Impl string
	Procs      int
	Run        func(b *testing.B)
}

// All returns every case. Cases of the same task are adjacent, so that a round measures them close
// in time.
func All() []Case {
	var all []Case
	for _, cases := range [][]Case{codecCases(), wholeCases(), optionCases(), autoIDCases(), uuidgenCases(), insertCases(), objectIDCases(), auditCases()} {
		all = append(all, cases...)
	}
	return all
}
