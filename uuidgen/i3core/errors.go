package i3core

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/uuidgen"
)

// ErrNull is the error for decoding a NULL UUID: all its bits are zero, and it has no format.
//
// The other errors are those of package uuidgen: [uuidgen.ErrWait] of the notifier format,
// [uuidgen.ErrExhausted] of the sequential one, [uuidgen.ErrTimeRange], [uuidgen.ErrHash] and
// [*uuidgen.FieldError].
var ErrNull = errors.New("i3core: the UUID is NULL")

func fieldError(format, field string, value uint64, want string) error {
	return &uuidgen.FieldError{Format: "i3core: " + format + " format", Field: field, Value: value, Want: want}
}

// fits returns an error for a value of more bits.
func fits(format, field string, value uint64, bits int) error {
	if value>>bits != 0 {
		return fieldError(format, field, value, fmt.Sprintf("at most %d bits", bits))
	}
	return nil
}
