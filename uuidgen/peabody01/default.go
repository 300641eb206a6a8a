package peabody01

import (
	"fmt"

	"github.com/google/uuid"
)

var (
	defaultV6 = mustDefault(NewV6Generator())
	defaultV7 = func() (gs [len(precisions)]*Generator) {
		for p := range gs {
			gs[p] = mustDefault(NewV7Generator(Precision(p)))
		}
		return gs
	}()
)

// mustDefault panics at the start of the program if a constructor without options fails, which none
// does.
func mustDefault(g *Generator, err error) *Generator {
	if err != nil {
		panic(err)
	}
	return g
}

// NewV6 returns a UUID of the draft's version 6 from [DefaultV6].
func NewV6() (uuid.UUID, error) { return defaultV6.NewUUID() }

// NewV7 returns a UUID of the draft's version 7 with the precision p from [DefaultV7]. A value of p
// that is not one of the constants is an error.
//
// It is not a UUID of version 7 of RFC 9562: see the package comment.
func NewV7(p Precision) (uuid.UUID, error) {
	g, err := DefaultV7(p)
	if err != nil {
		return uuid.Nil, err
	}
	return g.NewUUID()
}

// DefaultV6 returns the Generator that [NewV6] uses.
func DefaultV6() *Generator { return defaultV6 }

// DefaultV7 returns the Generator that [NewV7] uses for the precision p. A value of p that is not
// one of the constants is an error.
func DefaultV7(p Precision) (*Generator, error) {
	if int(p) >= len(defaultV7) {
		return nil, fmt.Errorf("peabody01: %v is not a precision", p)
	}
	return defaultV7[p], nil
}
