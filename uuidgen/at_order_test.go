package uuidgen

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// Ids for one instant are in the order of the calls after idle time, however long, and after the clock was set, whether
// the Generator has a clock of its own or not, and with ids that follow the clock in between or not.
func TestNewUUIDAtAfterIdleTime(t *testing.T) {
	rounds := 100
	if raceEnabled {
		rounds = 10
	}
	instant := time.Unix(1e9, 0)
	for name := range timed {
		for _, between := range []bool{false, true} {
			for _, own := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					for range rounds {
						shift := time.Duration(0)
						var opts []Option
						if own {
							opts = append(opts, WithClock(func() time.Time { return time.Now().Add(shift) }))
						}
						g := newTimed(t, name, opts...)
						var last uuid.UUID
						for i, pause := range []time.Duration{0, 1100 * time.Millisecond, time.Hour, 1100 * time.Millisecond, 0} {
							time.Sleep(pause)
							if i == 3 {
								shift = -61 * time.Second
							}
							if between {
								newUUID(t, g)
							}
							u, err := g.NewUUIDAt(instant)
							if err != nil {
								t.Fatal(err)
							}
							if bytes.Compare(g.stored(last), g.stored(u)) >= 0 {
								t.Fatalf("version %s, ids between %t, own clock %t: %v after %v", name, between, own, u, last)
							}
							last = u
						}
					}
				})
			}
		}
	}
}

// numberOf returns the number of an id of version 7 for a given instant.
func numberOf(u uuid.UUID) uint64 { return binary.BigEndian.Uint64(u[8:]) & (1<<atBits - 1) }

// A restored copy of the process is found by its clocks, on the system's clock and on one of its own. Its numbers then lie
// far ahead of those of the original, in order after those before, whatever the two draw; otherwise neighbours are near.
func TestNewUUIDAtInCopies(t *testing.T) {
	const old = 2 * time.Millisecond // the last reading of the wall clock is not used any more
	instant := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		wall, mono, idle time.Duration
		found            bool
	}{
		"the monotonic clock goes on":    {time.Hour, old, 0, true},
		"another machine":                {time.Hour, -24 * time.Hour, 0, true},
		"the wall clock goes on":         {0, time.Hour, 0, true},
		"both show the present, or idle": {old, old, time.Hour, false},
		"both show the present, at once": {old, old, 0, false},
		"less than a millisecond later":  {time.Millisecond / 2, 0, 0, false},
	} {
		for _, opts := range [][]Option{nil, {WithClock(func() time.Time { return instant })}, {WithRandom(rand.Reader)}} {
			seen := map[uuid.UUID]bool{}
			for range 50 {
				g := newTimed(t, "7", opts...)
				at := func() uuid.UUID {
					u, err := g.NewUUIDAt(instant)
					if err != nil || seen[u] {
						t.Fatalf("%s: %v, %v", name, u, err)
					}
					seen[u] = true
					return u
				}
				before := numberOf(at())
				for range 3 {
					n := numberOf(at())
					if n <= before || n-before > 1<<20 {
						t.Fatalf("%s: %d after %d", name, n, before)
					}
					before = n
				}
				g.instants.stock.Disturb(test.wall, test.mono, test.idle)
				n := numberOf(at())
				if n <= before || n-before > (1<<54-before)/1024+1 || n-before > 1<<20 != test.found {
					t.Fatalf("%s: %d after %d in a copy", name, n, before)
				}
				if next := numberOf(at()); next <= n || next-n > 1<<20 {
					t.Fatalf("%s: %d after %d, later", name, next, n)
				}
			}
		}
	}
}
