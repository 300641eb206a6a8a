// Package ids has sources of ids for other packages.
package ids

import "github.com/google/uuid"

// Numbers counts.
type Numbers struct{ last int64 }

func (n *Numbers) NewID() (any, error) { // want NewID:"ids: a number"
	n.last++
	return n.last, nil
}

// Random makes version 4.
func Random() (any, error) { return uuid.NewRandom() } // want Random:"ids: a UUID"

// Either makes ids of two kinds.
func Either(text bool) func() (any, error) {
	return func() (any, error) {
		if text {
			return uuid.NewString(), nil
		}
		return uuid.New(), nil
	}
}
