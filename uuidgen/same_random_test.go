package uuidgen

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/uuid"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Two machines that are restored from one snapshot get the same bytes of the kernel's random source
// for a while, also after Renew.
func TestSameRandomSource(t *testing.T) {
	kernel := rand.Reader
	defer func() { rand.Reader = kernel }()
	rand.Reader = zeros{}
	at := time.Unix(1_700_000_000, 0)
	for name, next := range map[string]func(*Generator) ([]uuid.UUID, error){
		"NewUUID": func(g *Generator) ([]uuid.UUID, error) { u, err := g.NewUUID(); return []uuid.UUID{u}, err },
		"Fill": func(g *Generator) ([]uuid.UUID, error) {
			us := make([]uuid.UUID, 2*bulk)
			return us, g.Fill(us)
		},
	} {
		seen := map[uuid.UUID]bool{}
		for range 4 {
			g, err := NewV4Generator()
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				us, err := next(g)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range us {
					if seen[u] {
						t.Fatalf("%s: %v was made twice", name, u)
					}
					seen[u] = true
				}
				if err := g.Renew(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	seen := map[uuid.UUID]bool{}
	for range 8 {
		g, err := NewV7Generator()
		if err != nil {
			t.Fatal(err)
		}
		u, err := g.NewUUIDAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if seen[u] {
			t.Fatalf("NewUUIDAt: %v was made twice", u)
		}
		seen[u] = true
	}
}
