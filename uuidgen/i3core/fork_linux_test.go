package i3core

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"

	"github.com/bsonids/bsonids/internal/fork/forktest"
)

var forked *uuidgen.Generator

// A process and its forks make different UUIDs, also at one timestamp.
func TestFork(t *testing.T) {
	out := forktest.Run(t, func(part int) []byte {
		if part == forktest.Before {
			forked, _ = NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(func() time.Time { return someTime }))
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
	seen := make(map[uuid.UUID]bool)
	for _, b := range out {
		for i := 0; i+16 <= len(b); i += 16 {
			seen[uuid.UUID(b[i:i+16])] = true
		}
	}
	if len(seen) != 300*len(out) {
		t.Errorf("%d of %d UUIDs are distinct", len(seen), 300*len(out))
	}
}
