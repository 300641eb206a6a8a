// Package gregorian converts between instants and the timestamps of UUID versions 1 and 6: the
// number of 100 ns since 1582-10-15T00:00:00Z, the first day of the Gregorian calendar, in 60 bits.
// See RFC 9562, section 5.1.
package gregorian

import "time"

const (
	Bits      = 60                    // width of a timestamp
	Tick      = 100 * time.Nanosecond // unit of a timestamp
	PerSecond = int64(time.Second / Tick)
	Unix      = 0x01B21DD213814000 // timestamp of 1970-01-01T00:00:00Z
)

// Timestamp returns the timestamp of t, rounded down. It reports false if t is before
// 1582-10-15T00:00:00Z or after 5236-03-31T21:21:00.6846975Z, the instants of the timestamps 0 and
// 1<<60 - 1.
func Timestamp(t time.Time) (timestamp uint64, ok bool) {
	// The seconds are checked first, so that the product cannot overflow.
	s := t.Unix()
	if s < -Unix/PerSecond || s > 1<<Bits/PerSecond {
		return 0, false
	}
	timestamp = uint64(s*PerSecond+Unix) + uint64(t.Nanosecond())/uint64(Tick)
	return timestamp, timestamp>>Bits == 0
}

// Time returns the instant of a timestamp of at most 60 bits, in UTC.
func Time(timestamp uint64) time.Time {
	d := int64(timestamp) - Unix
	return time.Unix(d/PerSecond, d%PerSecond*int64(Tick)).UTC()
}
