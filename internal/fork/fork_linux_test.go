package fork_test

import (
	"encoding/binary"
	"testing"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/internal/fork/forktest"
)

// A process, its fork and the fork of that have three generations; the parent keeps its own.
func TestFork(t *testing.T) {
	test := func(generation func() uint64) func(*testing.T) {
		return func(t *testing.T) {
			out := forktest.Run(t, func(int) []byte {
				return binary.BigEndian.AppendUint64(nil, generation())
			})
			var got [len(out)]uint64
			for i, b := range out {
				got[i] = binary.BigEndian.Uint64(b)
			}
			if got[forktest.Before] != got[forktest.Parent] {
				t.Errorf("the parent has generation %d, before %d", got[forktest.Parent], got[forktest.Before])
			}
			if got[0] == got[forktest.Child] || got[0] == got[forktest.Grandchild] || got[forktest.Child] == got[forktest.Grandchild] {
				t.Errorf("generations %d", got)
			}
		}
	}
	t.Run("Generation", func(t *testing.T) {
		if !fork.Wiped() {
			t.Skip("the kernel does not clear memory on fork")
		}
		test(fork.Generation)(t)
	})
	t.Run("Check", test(fork.Check))
	t.Run("Check without a cleared page", func(t *testing.T) {
		fork.UseProcessID(t)
		test(fork.Check)(t)
	})
}
