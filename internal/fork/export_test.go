package fork

import (
	"sync/atomic"
	"testing"
)

func Wiped() bool { return wiped }

// UseProcessID puts the word into ordinary memory, as on a system that clears none.
func UseProcessID(t *testing.T) {
	oldWord, oldWiped := word, wiped
	word, wiped = new(atomic.Uint64), false
	t.Cleanup(func() { word, wiped = oldWord, oldWiped })
}
