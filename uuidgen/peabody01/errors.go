package peabody01

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/internal/wait"
	"github.com/bsonids/bsonids/uuidgen"
)

// The errors of generators and conversions. Match them with [errors.Is].
var (
	// ErrClockRollback is the error of a Generator of version 7 or 8 whose clock is further behind
	// the last timestamp than [WithMaxRollback] allows. When the clock has caught up, the Generator
	// goes on; [Generator.Renew] does not wait for that.
	ErrClockRollback = errors.New("peabody01: the clock was set back")

	// ErrWait is the error of a Generator that waited for a new timestamp as long as [WithMaxWait]
	// allows: the sequence is used up, or the timestamps of version 6 are as far ahead of the clock
	// as [WithMaxAhead] allows. The packages of this module share it.
	ErrWait = wait.Err

	// ErrExhausted is the error of [Generator.NewUUIDAt] when no number is left;
	// [Generator.Renew] begins anew. The packages of this module share it: a source has no more
	// ids.
	ErrExhausted = numbers.ErrExhausted

	// ErrTimeRange is the error for an instant or timestamp that a format cannot hold. The packages
	// of this module share it.
	ErrTimeRange = timerange.Err
)

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
