//go:build !linux

package fork

import "sync/atomic"

// newWord returns an ordinary word: the system has no memory that it clears on fork, or none that can be had without
// calling C.
func newWord() (*atomic.Uint64, bool) {
	return new(atomic.Uint64), false
}
