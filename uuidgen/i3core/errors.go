package i3core

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/internal/namehash"
	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/internal/wait"
	"github.com/bsonids/bsonids/uuidgen"
)

// The errors of generators and conversions. Match them with [errors.Is].
var (
	// ErrNull is the error for decoding a NULL UUID: all its bits are zero, and it has no format.
	ErrNull = errors.New("i3core: the UUID is NULL")

	// ErrTimeRange is the error for an instant or timestamp that a format cannot hold. The packages
	// of this module share it.
	ErrTimeRange = timerange.Err

	// ErrWait is the error of a notifier [Generator] that waited as long as [WithMaxWait] allows,
	// and whose clock has not passed the last instance sequence or the start of the connection: it
	// does not advance, or was set back. The packages of this module share it.
	ErrWait = wait.Err

	// ErrExhausted is the error of a sequential [Generator] whose counter has come to its end. With
	// [DBMSBinary] the next timestamp ends it, with [DBMSSQLServer], and in
	// [Generator.NewUUIDAt], only [Generator.Renew] does. The packages of this module share it: a
	// source has no more ids.
	ErrExhausted = numbers.ErrExhausted

	// ErrHash is the error for a name-based UUID if MD5 is not available, as in a program that runs
	// with GODEBUG=fips140=only. The packages of this module share it.
	ErrHash = namehash.Err
)

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
