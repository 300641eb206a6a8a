package i3core

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

const formatTimeBased = "time-based"

// TimeBased is the fields of an IETF time-based UUID, version 1. It is a plain value, safe to copy.
//
//	memory  0–7 little-endian        8–9 big-endian      10–15
//	        version:4 timestamp:60   10:2 sequence:14    node:48
//
// It is "IETF Format" of the document, simplified; the timestamp's meaning is that of RFC 4122, section 4.1.4.
type TimeBased struct {
	Timestamp uint64 // 60 bits: 100 ns units since 1582-10-15T00:00:00Z
	Sequence  uint16 // 14 bits: the clock sequence
	Node      [6]byte
}

const (
	ticksPerSecond   = 1e7
	gregorianSeconds = 0x01B21DD213814000 / ticksPerSecond // from 1582-10-15T00:00:00Z to 1970-01-01T00:00:00Z
)

// TimeBasedAt returns the fields of a UUID made at t, its timestamp in whole units of 100 ns. An instant before
// 1582-10-15T00:00:00Z or after 5236-03-31T21:21:00Z is [ErrTimeRange].
func TimeBasedAt(t time.Time, sequence uint16, node [6]byte) (TimeBased, error) {
	seconds := t.Unix() + gregorianSeconds
	if t.Unix() < -gregorianSeconds || t.Unix() > 1<<40 {
		return TimeBased{}, fmt.Errorf("%w: %s format at %v", ErrTimeRange, formatTimeBased, t)
	}
	timestamp := uint64(seconds)*ticksPerSecond + uint64(t.Nanosecond())/100
	if timestamp>>60 != 0 {
		return TimeBased{}, fmt.Errorf("%w: %s format at %v", ErrTimeRange, formatTimeBased, t)
	}
	return TimeBased{timestamp, sequence, node}, nil
}

// Time returns the instant of the timestamp, in UTC.
func (f TimeBased) Time() time.Time {
	return time.Unix(int64(f.Timestamp/ticksPerSecond)-gregorianSeconds, int64(f.Timestamp%ticksPerSecond)*100).UTC()
}

// Validate returns a [*FieldError] for a field that is wider than its bits.
func (f TimeBased) Validate() error {
	if err := fits(formatTimeBased, "timestamp", f.Timestamp, 60); err != nil {
		return err
	}
	return fits(formatTimeBased, "sequence", uint64(f.Sequence), 14)
}

// UUID puts the fields together. The errors are those of [TimeBased.Validate].
func (f TimeBased) UUID() (uuid.UUID, error) {
	if err := f.Validate(); err != nil {
		return uuid.Nil, err
	}
	return ietf{f.Timestamp, f.Sequence, f.Node}.join(versionTime), nil
}

// DecodeTimeBased returns the fields of u. NULL is [ErrNull], another version or variant a [*FieldError].
func DecodeTimeBased(u uuid.UUID) (TimeBased, error) {
	i, err := split(u, formatTimeBased, versionTime)
	if err != nil {
		return TimeBased{}, err
	}
	return TimeBased{i.low, i.mid, i.node}, nil
}

// ParseTimeBased returns the fields of a text. The errors are [ErrText] and those of [DecodeTimeBased].
func ParseTimeBased(text string) (TimeBased, error) {
	u, err := parse(text)
	if err != nil {
		return TimeBased{}, err
	}
	return DecodeTimeBased(u)
}
