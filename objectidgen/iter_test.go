package objectidgen

import (
	"slices"
	"testing"
	"time"
)

func TestObjectIDs(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 255, 256, 257, 1000} {
		g := newGenerator(t, WithStart([5]byte{1}, 0), WithClock(at(1000)))
		ids := slices.Collect(g.ObjectIDs(n))
		if len(ids) != max(n, 0) {
			t.Fatalf("%d ids, want %d", len(ids), n)
		}
		for i, id := range ids {
			if Decode(id) != (Parts{1000, [5]byte{1}, uint32(i)}) {
				t.Fatalf("id %d of %d: %v", i, n, id)
			}
		}
	}
}

// The iterator gives other ids when it runs again, crosses seconds, and discards what a loop does not take.
func TestObjectIDsAgain(t *testing.T) {
	now := int64(1000)
	g := newGenerator(t, WithStart([5]byte{1}, 0), WithClock(func() time.Time { now++; return time.Unix(now, 0) }))
	g.width = 4
	seq := g.ObjectIDs(6)
	var got []Parts
	for range 2 {
		for id := range seq {
			got = append(got, Decode(id))
		}
	}
	for id := range seq {
		got = append(got, Decode(id))
		break
	}
	got = append(got, Decode(g.NewObjectID()))
	seen := map[Parts]bool{}
	for i, p := range got {
		if seen[p] || i > 0 && p.Seconds < got[i-1].Seconds {
			t.Errorf("%+v", got)
		}
		seen[p] = true
	}
	if len(got) != 14 {
		t.Errorf("%d ids", len(got))
	}
}
