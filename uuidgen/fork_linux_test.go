package uuidgen

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/bsonids/bsonids/internal/fork/forktest"
)

// forked is what TestFork makes ids with, in a process and its forks.
var forked *Generator

// A process and its forks draw different random bytes, also for given instants.
func TestFork(t *testing.T) {
	for version, newGenerator := range constructors {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			const ids = 300
			out := forktest.Run(t, func(part int) []byte {
				if part == forktest.Before {
					forked, _ = newGenerator()
				}
				var b []byte
				for i := range ids {
					u, err := forked.NewUUID()
					if version != 4 && i%2 == 0 {
						u, err = forked.NewUUIDAt(time.Unix(1e9, 0))
					}
					if err != nil {
						return []byte(err.Error())
					}
					b = append(b, u[:]...)
				}
				return b
			})
			// Those for given instants go on in the order of the calls, in the process and in its forks.
			for _, path := range [][]int{{forktest.Before, forktest.Parent}, {forktest.Before, forktest.Child, forktest.Grandchild}} {
				var last uint64
				for _, part := range path {
					for i := 0; i < ids && version != 4; i += 2 {
						n := binary.BigEndian.Uint64(out[part][i*16+8:])
						if n <= last {
							t.Fatalf("part %d, id %d: %#x after %#x", part, i, n, last)
						}
						last = n
					}
				}
			}
			// The last eight bytes without the timestamp: in version 4 they are half of the random
			// ones.
			seen := make(map[[8]byte]string)
			for part, b := range out {
				if len(b) != ids*16 {
					t.Fatalf("part %d: %s", part, b)
				}
				for i := range ids {
					id := fmt.Sprintf("part %d, id %d", part, i)
					if other, ok := seen[[8]byte(b[i*16+8:])]; ok {
						t.Fatalf("%s has the random bytes of %s", id, other)
					}
					seen[[8]byte(b[i*16+8:])] = id
				}
			}
		})
	}
}
