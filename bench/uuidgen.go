package bench

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidgen/peabody01"
	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
)

// uuidgenCases returns the cases of package uuidgen. UUIDv4, UUIDv6 and UUIDv7 draw one id at a
// time, UUIDv4Fill and UUIDv7Fill draw a thousand at once. In the cases with x2, two goroutines
// draw at the same time; ours share one generator. UUIDv7At draws ids for a given instant, and
// UUIDv7Draft those of version 7 of the draft of 2021. The standard library's package uuid needs Go
// 1.27. The time is always the time per id. With x2 it
// is the interval between two ids, whichever goroutine draws them.
func uuidgenCases() []Case {
	var cases []Case
	for _, at := range []struct {
		suffix string
		procs  int
	}{{"", 1}, {"x2", 2}} {
		add := func(work, impl string, run func(b *testing.B)) {
			cases = append(cases, Case{Work: work + at.suffix, Impl: impl, Procs: at.procs, Run: run})
		}
		add("UUIDv7", "bsonids", drawOne(uuidgen.NewV7Generator))
		add("UUIDv7", "google-pool", pooled(drawGoogleV7))
		add("UUIDv7", "google", drawGoogleV7)
		add("UUIDv7", "gofrs", drawGofrsV7)
		if drawStdV7 != nil {
			add("UUIDv7", "stdlib", drawStdV7)
		}
		add("UUIDv7", "ulid", drawULID)
		add("UUIDv7", "ulid-make", drawULIDMake)
		add("UUIDv7", "ksuid", drawKSUID)
		add("UUIDv7", "ksuid-sequence", drawKSUIDSequence)
		add("UUIDv7Fill", "bsonids", drawBatch(uuidgen.NewV7Generator))
		add("UUIDv7At", "bsonids", drawAt)
		add("UUIDv7Draft", "bsonids-us", drawDraft(peabody01.Microsecond))
		add("UUIDv7Draft", "bsonids-ns", drawDraft(peabody01.Nanosecond))
		add("UUIDv6", "bsonids", drawOne(uuidgen.NewV6Generator))
		add("UUIDv6", "gofrs", drawGofrsV6)
		add("UUIDv4", "bsonids", drawOne(uuidgen.NewV4Generator))
		add("UUIDv4", "google-pool", pooled(drawGoogleV4))
		add("UUIDv4", "google", drawGoogleV4)
		add("UUIDv4", "gofrs", drawGofrsV4)
		if drawStdV4 != nil {
			add("UUIDv4", "stdlib", drawStdV4)
		}
		add("UUIDv4Fill", "bsonids", drawBatch(uuidgen.NewV4Generator))
	}
	return cases
}

// share calls draw with an equal share of b.N ids on as many goroutines as there are processors.
func share(b *testing.B, draw func(n int) error) {
	b.ReportAllocs()
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			if err := draw((b.N + w) / workers); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

type newGenerator func(...uuidgen.Option) (*uuidgen.Generator, error)

func drawOne(newGenerator newGenerator) func(b *testing.B) {
	return func(b *testing.B) {
		g, err := newGenerator()
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		share(b, func(n int) error {
			for range n {
				if _, err := g.NewUUID(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// drawAt draws ids for a given instant.
func drawAt(b *testing.B) {
	g, err := uuidgen.NewV7Generator()
	if err != nil {
		b.Fatal(err)
	}
	at := time.Date(2020, 1, 1, 0, 0, 0, 123_456_789, time.UTC)
	share(b, func(n int) error {
		for range n {
			if _, err := g.NewUUIDAt(at); err != nil {
				return err
			}
		}
		return nil
	})
}

// drawDraft draws ids of version 7 of the draft.
func drawDraft(p peabody01.Precision) func(b *testing.B) {
	return func(b *testing.B) {
		g, err := peabody01.NewV7Generator(p)
		if err != nil {
			b.Fatal(err)
		}
		share(b, func(n int) error {
			for range n {
				if _, err := g.NewUUID(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func drawBatch(newGenerator newGenerator) func(b *testing.B) {
	return func(b *testing.B) {
		g, err := newGenerator()
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		share(b, func(n int) error {
			ids := make([]uuid.UUID, 1000)
			for ; n > 0; n -= len(ids) {
				if err := g.Fill(ids[:min(n, len(ids))]); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// Each loop below is written out, so that it measures the call that a user writes and not a call
// through a function value.

func drawGoogleV7(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := uuid.NewV7(); err != nil {
				return err
			}
		}
		return nil
	})
}

func drawGoogleV4(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := uuid.NewRandom(); err != nil {
				return err
			}
		}
		return nil
	})
}

func drawGofrsV7(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := gofrs.NewV7(); err != nil {
				return err
			}
		}
		return nil
	})
}

func drawGofrsV6(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := gofrs.NewV6(); err != nil {
				return err
			}
		}
		return nil
	})
}

func drawGofrsV4(b *testing.B) {
	share(b, func(n int) error {
		for range n {
			if _, err := gofrs.NewV4(); err != nil {
				return err
			}
		}
		return nil
	})
}

// pooled runs a case with google/uuid's pool of random bytes. The pool is one switch for the whole
// process and must not be changed while ids are drawn. It is on for this case only, and the cases
// run one after another.
func pooled(run func(b *testing.B)) func(b *testing.B) {
	return func(b *testing.B) {
		uuid.EnableRandPool()
		defer uuid.DisableRandPool()
		run(b)
	}
}
