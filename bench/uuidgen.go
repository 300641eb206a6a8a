package bench

import (
	"runtime"
	"sync"
	"testing"

	"github.com/bsonids/bsonids/uuidgen"
	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
)

// uuidgenCases returns the cases of package uuidgen: UUIDv4, UUIDv6 and UUIDv7 draw one id at a time, UUIDv7Fill draws a
// thousand at once and counts each; with x2 two goroutines draw from the same generator, and an id is counted once,
// whichever made it.
func uuidgenCases() []Case {
	var cases []Case
	for _, at := range []struct {
		suffix string
		procs  int
	}{{"", 1}, {"x2", 2}} {
		add := func(work, impl string, run func(b *testing.B)) {
			cases = append(cases, Case{Work: work + at.suffix, Impl: impl, Procs: at.procs, Run: run})
		}
		add("UUIDv7", "bsonids", drawOurs(uuidgen.NewV7))
		add("UUIDv7", "google-pool", pooled(draw(uuid.NewV7)))
		add("UUIDv7", "google", draw(uuid.NewV7))
		add("UUIDv7", "gofrs", draw(gofrs.NewV7))
		add("UUIDv7Fill", "bsonids", fillOurs(uuidgen.NewV7))
		add("UUIDv6", "bsonids", drawOurs(uuidgen.NewV6))
		add("UUIDv6", "gofrs", draw(gofrs.NewV6))
		add("UUIDv4", "bsonids", drawOurs(uuidgen.NewV4))
		add("UUIDv4", "google-pool", pooled(draw(uuid.NewRandom)))
		add("UUIDv4", "google", draw(uuid.NewRandom))
		add("UUIDv4", "gofrs", draw(gofrs.NewV4))
		add("UUIDv4Fill", "bsonids", fillOurs(uuidgen.NewV4))
	}
	return cases
}

// draw measures one id at a time on as many goroutines as there are processors.
func draw[U uuid.UUID | gofrs.UUID](newUUID func() (U, error)) func(b *testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := newUUID(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
}

func drawOurs(newGenerator func(...uuidgen.Option) (*uuidgen.Generator, error)) func(b *testing.B) {
	return func(b *testing.B) {
		g, err := newGenerator()
		if err != nil {
			b.Fatal(err)
		}
		draw(g.NewUUID)(b)
	}
}

func fillOurs(newGenerator func(...uuidgen.Option) (*uuidgen.Generator, error)) func(b *testing.B) {
	return func(b *testing.B) {
		g, err := newGenerator()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		var wg sync.WaitGroup
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			wg.Go(func() {
				ids := make([]uuid.UUID, 1000)
				for left := (b.N + w) / workers; left > 0; left -= len(ids) {
					if err := g.Fill(ids[:min(left, len(ids))]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
}

// pooled runs a case with google/uuid's pool of random octets. The pool is one switch for the whole process and must not
// be thrown while ids are drawn: it is on for this case only, and cases run one after another.
func pooled(run func(b *testing.B)) func(b *testing.B) {
	return func(b *testing.B) {
		uuid.EnableRandPool()
		defer uuid.DisableRandPool()
		run(b)
	}
}
