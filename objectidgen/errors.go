package objectidgen

import "errors"

var (
	// ErrExhausted is the error of a [Fixed] source whose ids have all been handed out.
	ErrExhausted = errors.New("objectidgen: the sequence has no more ids")

	// ErrTimeExhausted is the error of a [Generator] that has used up 2106-02-07T06:28:15Z, the last second that the
	// timestamp can hold: no later one exists.
	ErrTimeExhausted = errors.New("objectidgen: the last second of the timestamp, 2106-02-07T06:28:15Z, is used up")

	// ErrTimeRange is the error of [MinAt] and [MaxAt] for a time that the timestamp cannot hold.
	ErrTimeRange = errors.New("the timestamp of an ObjectID holds 1970-01-01T00:00:00Z to 2106-02-07T06:28:15Z")

	// ErrCounterRange is the error of [FromParts] and [WithStart] for a counter of more than 24 bits.
	ErrCounterRange = errors.New("the counter of an ObjectID is at most 16777215, 24 bits")

	// ErrLength is the error of [FromBytes] for anything but 12 octets.
	ErrLength = errors.New("an ObjectID has 12 octets")
)
