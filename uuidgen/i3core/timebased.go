package i3core

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/uuidgen"
)

const formatTimeBased = "time-based"

// TimeBased is the fields of an IETF time-based UUID, version 1. It is a plain value, safe to copy.
//
//	memory  0–7 little-endian        8–9 big-endian      10–15
//	        version:4 timestamp:60   10:2 sequence:14    node:48
//
// It is "IETF Format" of the document, simplified; the timestamp's meaning is that of RFC 4122,
// section 4.1.4.
type TimeBased struct {
	Timestamp uint64 // 60 bits: 100 ns units since 1582-10-15T00:00:00Z
	Sequence  uint16 // 14 bits: the clock sequence
	Node      [6]byte
}

// TimeBasedAt returns the fields of a UUID made at t, its timestamp in whole units of 100 ns. An
// instant before 1582-10-15T00:00:00Z or after 5236-03-31T21:21:00Z is [uuidgen.ErrTimeRange].
func TimeBasedAt(t time.Time, sequence uint16, node [6]byte) (TimeBased, error) {
	timestamp, ok := gregorian.Timestamp(t)
	if !ok {
		return TimeBased{}, fmt.Errorf("i3core: %w: %s format at %v", uuidgen.ErrTimeRange, formatTimeBased, t)
	}
	return TimeBased{timestamp, sequence, node}, nil
}

// Time returns the instant of the timestamp, in UTC.
func (f TimeBased) Time() time.Time { return gregorian.Time(f.Timestamp & (1<<gregorian.Bits - 1)) }

// validate returns a [*uuidgen.FieldError] for a field that is wider than its bits.
func (f TimeBased) validate() error {
	if err := fits(formatTimeBased, "timestamp", f.Timestamp, 60); err != nil {
		return err
	}
	return fits(formatTimeBased, "sequence", uint64(f.Sequence), 14)
}

// UUID puts the fields together. A field that is wider than its bits is a [*uuidgen.FieldError].
func (f TimeBased) UUID() (uuid.UUID, error) {
	if err := f.validate(); err != nil {
		return uuid.Nil, err
	}
	return ietf{f.Timestamp, f.Sequence, f.Node}.join(versionTime), nil
}

// DecodeTimeBased returns the fields of u. NULL is [ErrNull], another version or variant a
// [*uuidgen.FieldError].
func DecodeTimeBased(u uuid.UUID) (TimeBased, error) {
	i, err := split(u, formatTimeBased, versionTime)
	if err != nil {
		return TimeBased{}, err
	}
	return TimeBased{i.low, i.mid, i.node}, nil
}
