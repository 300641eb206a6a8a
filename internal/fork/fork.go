// Package fork tells a process from the copies of itself that fork(2) makes.
//
// State that must not be shared with a copy, such as a random value that has been drawn, is kept together with the
// [Generation] in which it was made. When the generation is another one, the state was made before a fork and is
// discarded:
//
//	if s.generation != fork.Generation() {
//		s = newState() // calls Generation before it draws, and stores the result
//	}
//
// On Linux 4.14 and later the generation lies in a page of memory that the kernel clears in a forked process
// (MADV_WIPEONFORK), so that Generation is a load from memory and no system call. Elsewhere [Check] compares the
// process id, and Generation returns what the last Check found: call Check from time to time, for instance when the
// system's clock is read.
//
// Threads, and the children of vfork(2) until they execute another program, share their memory with the process and
// are not copies. A copy that is restored from a snapshot or a checkpoint keeps the page and the process id; package
// clock finds some of those.
package fork

import (
	"os"
	"sync/atomic"
)

var (
	// word holds the current generation. The kernel sets it to 0 in a fork.
	word, wiped = newWord()

	// last is the highest generation in use, in memory that a fork copies.
	last atomic.Uint64

	// pid is the id of the process that the generation belongs to, if the kernel does not clear word.
	pid atomic.Int64
)

func init() {
	pid.Store(int64(os.Getpid()))
}

// Generation returns a number above 0. It stays the same as long as the process lives, and is another one in each
// process that is forked from it, than that of any of its ancestors. The generations of two processes that are not
// ancestors of each other may be equal. It is safe for concurrent use.
//
// If the system does not clear memory on fork, a fork is noticed by the next call of [Check].
func Generation() uint64 {
	if n := word.Load(); n != 0 {
		return n
	}
	return advance()
}

// Check is Generation, but compares the process id if the system does not clear memory on fork, which takes a system
// call.
func Check() uint64 {
	if !wiped {
		if id := int64(os.Getpid()); pid.Load() != id {
			word.Store(0) // before pid, so that no concurrent Check returns the old generation
			pid.Store(id)
		}
	}
	return Generation()
}

// advance begins a new generation. It takes no lock: a lock that another thread held when the process was forked would
// never be released.
//
//go:noinline
func advance() uint64 {
	for {
		// The number is used up before it is visible, so that a fork between the two steps takes a higher one.
		word.CompareAndSwap(0, last.Add(1))
		if n := word.Load(); n != 0 {
			return n
		}
	}
}
