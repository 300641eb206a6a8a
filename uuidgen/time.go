package uuidgen

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/uuidrep"
)

// Time returns the instant in a UUID of version 1, 6 or 7, in UTC. For another version or variant
// the error is [ErrNoTime].
//
// Versions 1 and 6 hold 100 ns. Version 7 holds milliseconds. A [Generator] and other systems that
// use method 3 of section 6.2 put a fraction of a millisecond into the 12 bits that follow, and
// Time reads it: the instant is exact to 245 ns. Systems that put other bits there are read up to 1
// ms late; nothing in the value tells them apart. Truncate the result to a millisecond if only that
// is needed.
//
// A UUID of version 7 that was made after a draft of the RFC has another layout, and Time returns a
// wrong instant. Package peabody01 reads those of one draft.
//
// It implements RFC 9562, sections 5.1, 5.6 and 5.7.
func Time[U ~[16]byte](id U) (time.Time, error) {
	u := uuid.UUID(id)
	l, err := layoutOf(u)
	if err != nil {
		return time.Time{}, err
	}
	return l.time(l.step(binary.BigEndian.Uint64(u[:8]))), nil
}

// TimeV8 returns the instant in a UUID of version 8 that [NewV8Generator] made for the
// representation r, in UTC: exact to 245 ns. Version 8 is free for any use, and nothing in the
// value tells who made it: TimeV8 returns an instant for every UUID of version 8. For another
// version or variant the error is [ErrNoTime]; another representation is an error.
func TimeV8[U ~[16]byte](id U, r uuidrep.Representation) (time.Time, error) {
	u := uuid.UUID(id)
	l, err := layoutV8(r)
	if err != nil {
		return time.Time{}, err
	}
	if err := l.check(u); err != nil {
		return time.Time{}, err
	}
	return l.time(l.step(binary.BigEndian.Uint64(u[:8]))), nil
}

// CompareTime compares the instant in a UUID of version 1, 6 or 7 with t, both in the unit of the
// version: a millisecond in version 7, 100 ns in versions 1 and 6. The result is -1 if the UUID is
// from an earlier unit than t, 0 if it is from the same, and +1 if it is from a later one. An
// instant that the version cannot hold is compared too. The errors are those of [Time].
func CompareTime[U ~[16]byte](u U, t time.Time) (int, error) {
	at, err := Time(u)
	if err != nil {
		return 0, err
	}
	unit := gregorian.Tick
	if uuid.UUID(u).Version() == 7 {
		unit = time.Millisecond
	}
	return compareUnits(at, t, unit), nil
}

// compareUnits compares instants rounded down to a unit that divides the second. Not by Truncate,
// which overflows for instants far away.
func compareUnits(a, b time.Time, unit time.Duration) int {
	floor := func(t time.Time) time.Time {
		return time.Unix(t.Unix(), int64(t.Nanosecond())/int64(unit)*int64(unit))
	}
	return floor(a).Compare(floor(b))
}

// V1ToV6 returns the UUID of version 6 with the timestamp, the clock sequence and the node of a UUID of
// version 1. It is in the order of time. The node stays the same, and may be a MAC address. For another
// version or variant the error is [ErrNoTime].
//
// It implements RFC 9562, section 5.6.
func V1ToV6(u uuid.UUID) (uuid.UUID, error) { return relaid(u, layoutV1, layoutV6) }

// V6ToV1 returns the UUID of version 1 with the fields of a UUID of version 6. It is the inverse of
// [V1ToV6], with the same errors.
func V6ToV1(u uuid.UUID) (uuid.UUID, error) { return relaid(u, layoutV6, layoutV1) }

// relaid returns u with its timestamp and version moved from one layout to another.
func relaid(u uuid.UUID, from, to *layout) (uuid.UUID, error) {
	if err := from.check(u); err != nil {
		return uuid.Nil, err
	}
	binary.BigEndian.PutUint64(u[:8], to.word(from.step(binary.BigEndian.Uint64(u[:8]))))
	return u, nil
}

// layoutOf returns the layout of version 1, 6 or 7.
func layoutOf(u uuid.UUID) (*layout, error) {
	var l *layout
	switch u.Version() {
	case 1:
		l = layoutV1
	case 6:
		l = layoutV6
	case 7:
		l = layoutV7
	default:
		return nil, fmt.Errorf("%w: %v is a UUID of version %d", ErrNoTime, u, u.Version())
	}
	return l, l.check(u)
}

// check returns an error if u is not a UUID of the version.
func (l *layout) check(u uuid.UUID) error {
	if u[8]>>6 != 0b10 {
		return fmt.Errorf("%w: %v does not have the variant of RFC 9562", ErrNoTime, u)
	}
	if got := u[6] >> 4; got != l.version {
		return fmt.Errorf("%w: %v is a UUID of version %d, not %d", ErrNoTime, u, got, l.version)
	}
	return nil
}
