package bench

import (
	"crypto/rand"
	"runtime"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
)

// Ids of other kinds, beside those of version 7: a ULID has 16 bytes and is in the order of
// milliseconds, an xid has the 12 bytes of an ObjectID, a KSUID has 20 bytes.

// drawStdV7 and drawStdV4 draw with the standard library's package uuid, or are nil before Go 1.27.
var drawStdV7, drawStdV4 func(b *testing.B)

// drawULID draws as ulid.Make does: increasing within a millisecond, under a lock. Its entropy is
// that of crypto/rand, for one with the others; ulid.Make has a generator that is not for secrets.
func drawULID(b *testing.B) {
	entropy := &ulid.LockedMonotonicReader{MonotonicReader: ulid.Monotonic(rand.Reader, 0)}
	share(b, func(n int) error {
		for range n {
			if _, err := ulid.New(ulid.Now(), entropy); err != nil {
				return err
			}
		}
		return nil
	})
}

func drawULIDMake(b *testing.B) {
	share(b, func(n int) error {
		var id ulid.ULID
		for range n {
			id = ulid.Make()
		}
		runtime.KeepAlive(id)
		return nil
	})
}

func drawXID(b *testing.B) {
	share(b, func(n int) error {
		var id xid.ID
		for range n {
			id = xid.New()
		}
		runtime.KeepAlive(id)
		return nil
	})
}

// drawKSUID draws one by one, and the next of a Sequence in order, 65536 for a seed.
func drawKSUID(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := ksuid.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	})
}

// drawKSUIDSequence draws ids in order, 65536 of each seed.
func drawKSUIDSequence(b *testing.B) {
	var mu sync.Mutex
	sequence, left := ksuid.Sequence{}, 0
	share(b, func(n int) error {
		for range n {
			mu.Lock()
			if left == 0 {
				sequence, left = ksuid.Sequence{Seed: ksuid.New()}, 1<<16
			}
			_, err := sequence.Next()
			left--
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		return nil
	})
}
