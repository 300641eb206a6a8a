package kinds

import (
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

// A UUID has one canonical value in every order, and different UUIDs have different ones.
func TestCanonical(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	seen := make(map[[16]byte]bool)
	for range 10_000 {
		var u [16]byte
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		want := Canonical(u)
		for _, o := range Orders {
			for _, p := range Orders {
				if got := Canonical(p.Permute(o.Permute(u))); got != want {
					t.Fatalf("%x in %v and %v: %x, want %x", u, o, p, got, want)
				}
			}
		}
		if seen[want] {
			t.Fatalf("%x: another UUID has %x", u, want)
		}
		seen[want] = true
	}
	for _, u := range []uuid.UUID{uuid.Nil, uuid.Max} {
		v := [16]byte(u)
		if Canonical(v) != v || !Symmetric(&v) {
			t.Error(u)
		}
	}
}
