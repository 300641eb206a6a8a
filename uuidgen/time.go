package uuidgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// ErrNoTime is wrapped by the error of [Time] for a UUID that holds no timestamp.
var ErrNoTime = errors.New("uuidgen: no timestamp")

const (
	maxTimestamps = 1 << 60 // timestamps of versions 1, 6 and 7 here have 60 bits

	// Version 7: steps of 1/4096 ms since 1970.
	v7PerSecond = 1000 * 4096

	// Versions 1 and 6: steps of 100 ns since 1582-10-15T00:00:00Z.
	v6PerSecond = 10_000_000
	v6Unix      = 0x01B21DD213814000 // 1970-01-01T00:00:00Z
)

// Time returns the instant that a UUID of version 1, 6 or 7 (RFC 9562 sections 5.1, 5.6 and 5.7) holds, in UTC: to
// 100 ns in versions 1 and 6, to the millisecond in version 7, whose further bits are whatever the system that made it
// put there. For every other version and variant the error wraps [ErrNoTime].
//
// A UUID that another system made after a draft of the RFC may also call itself version 7 and hold its time otherwise;
// nothing in the value tells. Package peabody01 reads those of one such draft.
func Time(u uuid.UUID) (time.Time, error) {
	if u[8]>>6 != 0b10 {
		return time.Time{}, fmt.Errorf("%w: %v is not of the variant of RFC 9562", ErrNoTime, u)
	}
	high := binary.BigEndian.Uint64(u[:8])
	switch u[6] >> 4 {
	case 1:
		return gregorian(high&0xfff<<48 | high>>16&0xffff<<32 | high>>32), nil
	case 6:
		return gregorian(high>>16<<12 | high&0xfff), nil
	case 7:
		return time.UnixMilli(int64(high >> 16)).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%w: %v is of version %d", ErrNoTime, u, u[6]>>4)
}

func gregorian(step uint64) time.Time {
	d := int64(step) - v6Unix
	return time.Unix(d/v6PerSecond, d%v6PerSecond*100).UTC()
}

// MinV7At returns the least UUID of version 7 with the millisecond of t. For a time before 1970 or beyond 48 bits of
// milliseconds the error wraps [ErrTimeRange].
//
// With [MaxV7At] it makes a time range a range of _id: MinV7At(from) <= id <= MaxV7At(to) holds for the UUIDs of version
// 7 made from the millisecond of from to that of to, both included, by any generator that keeps to RFC 9562; id <
// MinV7At(to) leaves the last millisecond out. The millisecond is what the timestamp of section 5.7 gives and is the
// precision of the range. It goes by the timestamps in the ids: an id of a [Generator] is never stamped before the time
// that its clock read, and may be stamped later after a burst or a step back of the clock (see there).
func MinV7At(t time.Time) (uuid.UUID, error) { return v7Bound(t, false) }

// MaxV7At returns the greatest UUID of version 7 with the millisecond of t. See [MinV7At].
func MaxV7At(t time.Time) (uuid.UUID, error) { return v7Bound(t, true) }

func v7Bound(t time.Time, upper bool) (uuid.UUID, error) {
	step, err := timestampAt(7, t)
	if err != nil {
		return uuid.Nil, err
	}
	if upper {
		return bound(7, step|0xfff, upper), nil
	}
	return bound(7, step&^0xfff, upper), nil
}

// MinV6At returns the least UUID of version 6 with the 100 ns of t. For a time before 1582-10-15 or beyond 60 bits of
// 100 ns the error wraps [ErrTimeRange].
//
// With [MaxV6At] it makes a time range a range of _id, as [MinV7At] does, with 100 ns for the precision of the range.
func MinV6At(t time.Time) (uuid.UUID, error) { return v6Bound(t, false) }

// MaxV6At returns the greatest UUID of version 6 with the 100 ns of t. See [MinV6At].
func MaxV6At(t time.Time) (uuid.UUID, error) { return v6Bound(t, true) }

func v6Bound(t time.Time, upper bool) (uuid.UUID, error) {
	step, err := timestampAt(6, t)
	if err != nil {
		return uuid.Nil, err
	}
	return bound(6, step, upper), nil
}

// bound returns the least or the greatest UUID with this timestamp.
func bound(version byte, step uint64, upper bool) uuid.UUID {
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], timeWord(version, step))
	low := uint64(0b10) << 62
	if upper {
		low |= 1<<62 - 1
	}
	binary.BigEndian.PutUint64(u[8:], low)
	return u
}

// timestampAt returns the 60-bit timestamp of version 6 or 7.
func timestampAt(version byte, t time.Time) (uint64, error) {
	// The range of seconds is checked first, so that the product cannot wrap.
	sec, nsec := t.Unix(), int64(t.Nanosecond())
	if version == 6 {
		if sec >= -v6Unix/v6PerSecond && sec <= maxTimestamps/v6PerSecond {
			if step := uint64(sec*v6PerSecond + nsec/100 + v6Unix); step < maxTimestamps {
				return step, nil
			}
		}
		return 0, fmt.Errorf("%w: %v is not in 1582-10-15 to 5236-03-31, which version 6 holds", ErrTimeRange, t.UTC())
	}
	if sec >= 0 && sec <= maxTimestamps/v7PerSecond {
		// v7PerSecond/1e9 in lowest terms is 64/15625.
		if step := uint64(sec*v7PerSecond + nsec*64/15625); step < maxTimestamps {
			return step, nil
		}
	}
	return 0, fmt.Errorf("%w: %v is not in 1970 to 10889-08-02, which version 7 holds", ErrTimeRange, t.UTC())
}

// timestampOf is timestampAt for nanoseconds since 1970, which are in range for both versions.
func timestampOf(version byte, ns uint64) uint64 {
	if version == 6 {
		return ns/100 + v6Unix
	}
	return ns/15625*64 + ns%15625*64/15625
}
