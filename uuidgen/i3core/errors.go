package i3core

import (
	"errors"
	"fmt"
)

// The errors of generators and conversions. Match them with [errors.Is].
var (
	// ErrNull is the error of taking a NULL UUID apart: all its bits are zero, and it is of no format.
	ErrNull = errors.New("i3core: the UUID is NULL")

	// ErrText is the error of a text that is not 36 characters xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
	ErrText = errors.New("i3core: not a UUID's text")

	// ErrTimeRange is the error of an instant or timestamp that a format cannot hold.
	ErrTimeRange = errors.New("i3core: the time does not fit the format")

	// ErrWait is the error of a notifier generator whose clock has not come past the last instance sequence, or past
	// the connection's start, for as long as [WithMaxWait] allows: the clock stands still or stepped back.
	ErrWait = errors.New("i3core: the instance sequence has caught up with the clock")

	// ErrCounter is the error of a sequential generator whose octets 10–13 have overflowed: it makes no more UUIDs.
	ErrCounter = errors.New("i3core: the counter has overflowed")

	// ErrRandom is the error of a random source that fails or gives nothing but zeros. The source's own error is
	// wrapped too.
	ErrRandom = errors.New("i3core: the random source failed")
)

// FieldError is the error of a field whose value a format does not allow, in a UUID that is taken apart or among fields
// that are put together. Match it with [errors.As] and a variable of type *FieldError.
type FieldError struct {
	Format string // "time-based", "random", "name-based", "sequential", "legacy interaction id" or "notifier"
	Field  string // the document's name of the field: "version", "variant", "custom", "digit9", …
	Value  uint64 // what came
	Want   string // what the format allows
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("i3core: %s format: field %s is %#x: want %s", e.Format, e.Field, e.Value, e.Want)
}

// fits reports a value that is wider than bits.
func fits(format, field string, value uint64, bits int) error {
	if value>>bits != 0 {
		return &FieldError{format, field, value, fmt.Sprintf("at most %d bits", bits)}
	}
	return nil
}
