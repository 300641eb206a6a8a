package peabody01

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"

	"github.com/bsonids/bsonids/internal/fork/forktest"
)

var forked *uuidgen.Generator

// A process and its forks make different UUIDs at one instant, and other clock sequences.
func TestFork(t *testing.T) {
	out := forktest.Run(t, func(part int) []byte {
		if part == forktest.Before {
			forked, _ = NewV6Generator(uuidgen.WithClock(func() time.Time { return someTime }))
		}
		var b []byte
		for range 300 {
			u, err := forked.NewUUID()
			if err != nil {
				return []byte(err.Error())
			}
			b = append(b, u[:]...)
		}
		return b
	})
	seen := make(map[uuid.UUID]string)
	sequences := make(map[uint16]int)
	for part, b := range out {
		for i := 0; i+16 <= len(b); i += 16 {
			u := uuid.UUID(b[i : i+16])
			if other, ok := seen[u]; ok {
				t.Errorf("%v in part %d and %s", u, part, other)
			}
			seen[u] = fmt.Sprintf("part %d, id %d", part, i/16)
		}
		f, err := DecodeV6(uuid.UUID(b[:16]))
		must(t, err)
		sequences[f.ClockSequence]++
	}
	if len(seen) != 300*len(out) || len(sequences) < 2 {
		t.Errorf("%d UUIDs, clock sequences %v", len(seen), sequences)
	}
}
