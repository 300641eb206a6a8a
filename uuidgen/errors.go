package uuidgen

import (
	"errors"
	"fmt"

	"github.com/bsonids/bsonids/internal/namehash"
	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/internal/wait"
)

// The errors of the package. Match them with [errors.Is].
var (
	// ErrTimeRange is the error for an instant that the timestamp of a version cannot hold: before
	// 1970-01-01 or after 10889-08-02 in versions 7 and 8, before 1582-10-15 or after 5236-03-31 in
	// version 6. The packages of this module share it.
	ErrTimeRange = timerange.Err

	// ErrNoTime is the error for a UUID without a timestamp that the function can read.
	ErrNoTime = errors.New("uuidgen: no timestamp")

	// ErrWait is the error of a [Generator] whose timestamps are as far ahead of its clock as
	// [WithMaxAhead] allows, after the wait that [WithMaxWait] allows. The packages of this module
	// share it: a call waited for the clock as long as it may.
	ErrWait = wait.Err

	// ErrExhausted is the error of [Generator.NewUUIDAt] when no number is left; [Generator.Renew]
	// begins anew. The packages of this module share it: a source has no more ids.
	ErrExhausted = numbers.ErrExhausted

	// ErrOrder is the error of [Range.Filter] for a representation that does not store the ids in
	// the order of time.
	ErrOrder = errors.New("uuidgen: the representation does not keep the order of time")

	// ErrHash is the error of a name-based UUID whose hash function is not available, such as SHA-1
	// in a program that runs with GODEBUG=fips140=only. The packages of this module share it.
	ErrHash = namehash.Err
)

// FieldError is the error of packages peabody01 and i3core for a field with a value that a format
// does not allow, in a UUID that is decoded or in fields that are put together. Match it with
// [errors.As] and a variable of type *FieldError.
type FieldError struct {
	Format string // "peabody01: version 7" or "i3core: sequential format", for instance
	Field  string // the document's name of the field: "ver", "custom", "digit9", …
	Value  uint64 // the value
	Want   string // what the format allows
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: field %s is %#x: want %s", e.Format, e.Field, e.Value, e.Want)
}
