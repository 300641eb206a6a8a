package uuidgen

import (
	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
)

// The defaults hold no random bytes until their first use.
var (
	defaultV4 = newGenerator(layoutV4, idoption.New("uuidgen", ""))
	defaultV7 = newGenerator(layoutV7, idoption.New("uuidgen", ""))
)

// NewV4 returns a random UUID (RFC 9562, section 5.4) from [DefaultV4]. The error is always nil, since
// crypto/rand ends the program rather than return one; NewV4 has it because NewV7 has.
func NewV4() (uuid.UUID, error) { return defaultV4.NewUUID() }

// NewV7 returns a UUID of version 7 (RFC 9562, section 5.7) from [DefaultV7]. It fails with [ErrTimeRange]
// while the system's clock is before 1970: the timestamp cannot hold that time.
func NewV7() (uuid.UUID, error) { return defaultV7.NewUUID() }

// DefaultV4 returns the Generator that [NewV4] uses.
func DefaultV4() *Generator { return defaultV4 }

// DefaultV7 returns the Generator that [NewV7] uses: all ids of the process from it are in one
// order.
func DefaultV7() *Generator { return defaultV7 }
