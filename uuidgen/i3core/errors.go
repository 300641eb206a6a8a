package i3core

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/internal/wait"
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
	// with GODEBUG=fips140=only.
	ErrHash = errors.New("i3core: MD5 is not available")
)

// FieldError is the error for a field with a value that a format does not allow, in a UUID that is
// decoded or in fields that are put together. Match it with [errors.As] and a variable of type
// *FieldError.
type FieldError struct {
	Format string // "time-based", "random", "name-based", "sequential", "legacy interaction id" or "notifier"
	Field  string // the document's name of the field: "version", "variant", "custom", "digit9", …
	Value  uint64 // the value
	Want   string // what the format allows
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("i3core: %s format: field %s is %#x: want %s", e.Format, e.Field, e.Value, e.Want)
}

// fits returns an error for a value of more bits.
func fits(format, field string, value uint64, bits int) error {
	if value>>bits != 0 {
		return &FieldError{format, field, value, fmt.Sprintf("at most %d bits", bits)}
	}
	return nil
}
