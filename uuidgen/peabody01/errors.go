package peabody01

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/uuidgen"
)

// ErrClockRollback is the error of a Generator of version 7 or 8 whose clock is further behind the
// last timestamp than [uuidgen.WithMaxRollback] allows. When the clock has caught up, the Generator
// goes on; [uuidgen.Generator.Renew] does not wait for that.
//
// The other errors are those of package uuidgen: [uuidgen.ErrWait], [uuidgen.ErrTimeRange]
// and [*uuidgen.FieldError].
var ErrClockRollback = errors.New("peabody01: the clock was set back")

func fieldError(version int, field string, value uint64, want string) error {
	return &uuidgen.FieldError{Format: fmt.Sprintf("peabody01: version %d", version), Field: field, Value: value, Want: want}
}

// fits returns an error for a value of more bits.
func fits(version int, field string, value uint64, bits int) error {
	if value>>bits != 0 {
		return fieldError(version, field, value, fmt.Sprintf("at most %d bits", bits))
	}
	return nil
}
