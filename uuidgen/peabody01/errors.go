package peabody01

import (
	"errors"
	"fmt"
)

// The errors of generators and conversions. Match them with [errors.Is].
var (
	// ErrClockRollback is the error of a generator whose clock stands further behind the last timestamp than
	// [WithMaxRollback] lets it. No UUID is made and the generator's state stays: once the clock is back, it goes on.
	ErrClockRollback = errors.New("peabody01: the clock stepped back")

	// ErrExhausted is the error of a generator whose sequence is used up while the clock has not come to a new
	// timestamp for as long as [WithMaxWait] allows.
	ErrExhausted = errors.New("peabody01: the sequence is used up and the clock does not move on")

	// ErrTimeRange is the error of an instant or timestamp that a format cannot hold.
	ErrTimeRange = errors.New("peabody01: the time does not fit the format")

	// ErrRandom is the error of a random source that fails or gives nothing but zeros. The source's own error is
	// wrapped too.
	ErrRandom = errors.New("peabody01: the random source failed")
)

// FieldError is the error of a field whose value a format does not allow, in a UUID that is decoded or among fields
// that are put together. Match it with [errors.As] and a variable of type *FieldError.
type FieldError struct {
	Version int    // of the format: 1, 6, 7 or 8
	Field   string // the draft's name of the field: "ver", "var", "unixts", "node", …
	Value   uint64 // what came
	Want    string // what the format allows
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("peabody01: version %d: field %s is %#x: want %s", e.Version, e.Field, e.Value, e.Want)
}

// fits reports a value that is wider than bits.
func fits(version int, field string, value uint64, bits int) error {
	if value>>bits != 0 {
		return &FieldError{version, field, value, fmt.Sprintf("at most %d bits", bits)}
	}
	return nil
}
