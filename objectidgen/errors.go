package objectidgen

import (
	"errors"

	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/timerange"
)

var (
	// ErrExhausted is the error of a [Sequence] that has no more ids, and of [Generator.NewObjectIDAt] when no process
	// value is left. It is the same value in all packages of this module: a source has no more ids.
	ErrExhausted = numbers.ErrExhausted

	// ErrTimeRange is the error for an instant that the timestamp of an ObjectID cannot hold: it ranges from
	// 1970-01-01T00:00:00Z to 2106-02-07T06:28:15Z. It is the same value in all packages of this module.
	ErrTimeRange = timerange.Err

	// ErrCounterRange is the error of [Parts.ObjectID] and [WithStart] for a counter of more than 24 bits.
	ErrCounterRange = errors.New("the counter of an ObjectID is at most 16777215 (24 bits)")

	// ErrLength is the error of [FromBytes] for a slice that is not 12 bytes long.
	ErrLength = errors.New("an ObjectID has 12 bytes")
)

var errNotMade = errors.New("objectidgen: a Generator is made by NewGenerator")
