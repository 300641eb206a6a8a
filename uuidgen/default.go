package uuidgen

import "github.com/google/uuid"

// The defaults hold no random bytes until their first use.
var (
	defaults = &config{maxAhead: noLimit, maxRollback: defaultRollback}

	defaultV4 = newGenerator(layoutV4, defaults)
	defaultV6 = newGenerator(layoutV6, defaults)
	defaultV7 = newGenerator(layoutV7, defaults)
)

// NewV4 returns a random UUID (RFC 9562, section 5.4) from [DefaultV4].
func NewV4() (uuid.UUID, error) { return defaultV4.NewUUID() }

// NewV6 returns a UUID of version 6 (RFC 9562, section 5.6) from [DefaultV6].
func NewV6() (uuid.UUID, error) { return defaultV6.NewUUID() }

// NewV7 returns a UUID of version 7 (RFC 9562, section 5.7) from [DefaultV7].
func NewV7() (uuid.UUID, error) { return defaultV7.NewUUID() }

// DefaultV4 returns the Generator that [NewV4] uses.
func DefaultV4() *Generator { return defaultV4 }

// DefaultV6 returns the Generator that [NewV6] uses: all ids of the process from it are in one
// order.
func DefaultV6() *Generator { return defaultV6 }

// DefaultV7 returns the Generator that [NewV7] uses: all ids of the process from it are in one
// order.
func DefaultV7() *Generator { return defaultV7 }
