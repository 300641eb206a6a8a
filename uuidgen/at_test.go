package uuidgen

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
)

// stored returns the bytes in which the ids of a Generator are in order.
func (g *Generator) stored(u uuid.UUID) []byte {
	b := g.layout.order.Permute(u)
	return b[:]
}

// Ids for given instants are ordered by the instants to a nanosecond, then by the calls, and hold
// their instant.
func TestNewUUIDAt(t *testing.T) {
	for name := range timed {
		rnd := mathrand.New(mathrand.NewPCG(9, 10))
		for _, opts := range [][]Option{nil, {WithRandom(repeat(0))}, {WithRandom(repeat(0xff))}} {
			g := newTimed(t, name, opts...)
			live := newUUID(t, g)
			type made struct {
				at   time.Time
				call int
				id   uuid.UUID
			}
			var all []made
			base := time.Unix(rnd.Int64N(4e9), rnd.Int64N(1e9))
			for call := range 5000 {
				// Close together, so that many are equal or in one step; some far away.
				at := base.Add(time.Duration(rnd.Int64N(2000)))
				if call%10 == 0 {
					at = time.Unix(rnd.Int64N(9e9), rnd.Int64N(1e9))
				}
				u, err := g.NewUUIDAt(at)
				if err != nil {
					t.Fatal(err)
				}
				if u.Version() != uuid.Version(g.layout.version) || u.Variant() != uuid.RFC4122 ||
					name == "6" && u.NodeID()[0]&1 != 1 {
					t.Fatalf("version %s: %v", name, u)
				}
				step := g.layout.step(binary.BigEndian.Uint64(u[:8]))
				if d := at.Sub(g.layout.time(step)); d < 0 || d >= 245 || name == "6" && d >= 100 {
					t.Fatalf("version %s: %v is %v before its instant", name, u, d)
				}
				all = append(all, made{at, call, u})
			}
			slices.SortFunc(all, func(a, b made) int { return bytes.Compare(g.stored(a.id), g.stored(b.id)) })
			if !slices.IsSortedFunc(all, func(a, b made) int {
				return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.call, b.call))
			}) {
				t.Errorf("version %s: not in the order of instants and calls", name)
			}
			for i := 1; i < len(all); i++ {
				if all[i-1].id == all[i].id {
					t.Errorf("version %s: %v twice", name, all[i].id)
				}
			}
			// They leave the others alone.
			if u := newUUID(t, g); bytes.Compare(g.stored(live), g.stored(u)) >= 0 || g.Ahead() > time.Second {
				t.Errorf("version %s: %v after %v, %v ahead", name, u, live, g.Ahead())
			}
		}
	}
}

func TestNewUUIDAtErrors(t *testing.T) {
	if u, err := newGen(t, 4).NewUUIDAt(time.Unix(0, 0)); !errors.Is(err, ErrNoTime) || u != uuid.Nil {
		t.Errorf("version 4: %v, %v", u, err)
	}
	for name := range timed {
		g := newTimed(t, name)
		for _, at := range []time.Time{{}, time.Unix(1<<40, 0), time.Unix(-1<<60, 0)} {
			if u, err := g.NewUUIDAt(at); !errors.Is(err, ErrTimeRange) || u != uuid.Nil {
				t.Errorf("version %s at %v: %v, %v", name, at, u, err)
			}
		}
		broken := errors.New("broken")
		g = newTimed(t, name, WithRandom(iotest.ErrReader(broken)))
		if u, err := g.NewUUIDAt(time.Unix(0, 0)); !errors.Is(err, broken) || u != uuid.Nil {
			t.Errorf("version %s: %v, %v", name, u, err)
		}
		g = newTimed(t, name, WithRandom(io.LimitReader(repeat(1), 7)))
		if u, err := g.NewUUIDAt(time.Unix(0, 0)); !errors.Is(err, io.ErrUnexpectedEOF) || u != uuid.Nil {
			t.Errorf("version %s: %v, %v", name, u, err)
		}
		g = newTimed(t, name)
		if _, err := g.NewUUIDAt(time.Unix(0, 0)); err != nil {
			t.Error(err)
		}
		g.instants.numbers.Start(1<<54 - 2)
		if _, err := g.NewUUIDAt(time.Unix(0, 0)); err != nil {
			t.Errorf("version %s, the last number: %v", name, err)
		}
		if u, err := g.NewUUIDAt(time.Unix(0, 0)); !errors.Is(err, ErrExhausted) || u != uuid.Nil {
			t.Errorf("version %s, exhausted: %v, %v", name, u, err)
		}
		if err := g.Renew(); err != nil {
			t.Fatal(err)
		}
		if _, err := g.NewUUIDAt(time.Unix(0, 0)); err != nil {
			t.Errorf("version %s, renewed: %v", name, err)
		}
	}
}

func TestNewUUIDAtConcurrently(t *testing.T) {
	g := newTimed(t, "7")
	at := time.Unix(1e9, 0)
	var mu sync.Mutex
	seen := make(map[uuid.UUID]bool)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var last uuid.UUID
			for range 2000 {
				u, err := g.NewUUIDAt(at)
				if err != nil || !less(last, u) {
					t.Errorf("%v after %v, %v", u, last, err)
				}
				last = u
				mu.Lock()
				seen[u] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d of 8000 ids are distinct", len(seen))
	}
}
