package peabody01

import (
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// MinV6At returns the lowest UUID of version 6 with the timestamp of t, 100 ns wide, for queries by
// time. It is not one to store: its node is zero. The errors are those of [V6At].
func MinV6At(t time.Time) (uuid.UUID, error) {
	f, err := V6At(t)
	if err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

// MaxV6At returns the highest UUID of version 6 with the timestamp of t. The errors are those of
// [V6At].
func MaxV6At(t time.Time) (uuid.UUID, error) {
	f, err := V6At(t)
	if err != nil {
		return uuid.Nil, err
	}
	f.ClockSequence = 1<<v6SequenceBits - 1
	f.Node = 1<<v6NodeBits - 1
	return f.join(), nil
}

// MinV7At returns the lowest UUID of that precision and encoding with the time of t, one unit of
// the precision wide, for queries by time. It is not one to store: its node is zero. The errors are
// those of [V7At].
func MinV7At(t time.Time, p Precision, e Encoding) (uuid.UUID, error) {
	f, err := V7At(t, p, e)
	if err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

// MaxV7At returns the highest UUID of that precision and encoding with the time of t. The errors
// are those of [V7At].
func MaxV7At(t time.Time, p Precision, e Encoding) (uuid.UUID, error) {
	f, err := V7At(t, p, e)
	if err != nil {
		return uuid.Nil, err
	}
	f.Sequence = 1<<precisions[p].sequence - 1
	f.Node = 1<<precisions[p].node - 1
	return f.join(), nil
}

// MinV8At returns the lowest UUID of version 8 with the timestamp of t by the clock c, one tick
// wide, for queries by time. It is not one to store: its node is zero. The errors are those of
// [Clock.Timestamp]. For a Clock without a Tick, [V8.Min] and [V8.Max] return the bounds of a
// timestamp.
func MinV8At(t time.Time, c Clock) (uuid.UUID, error) {
	f, err := c.fieldsAt(t)
	if err != nil {
		return uuid.Nil, err
	}
	return f.Min()
}

// MaxV8At returns the highest UUID of version 8 with the timestamp of t by the clock c. The errors
// are those of [MinV8At].
func MaxV8At(t time.Time, c Clock) (uuid.UUID, error) {
	f, err := c.fieldsAt(t)
	if err != nil {
		return uuid.Nil, err
	}
	return f.Max()
}

func (c Clock) fieldsAt(t time.Time) (V8, error) {
	timestamp, err := c.Timestamp(t)
	return V8{Bits: c.Bits, SequenceBits: c.SequenceBits, Timestamp: timestamp}, err
}

// HalfOpenV6 returns the UUIDs of version 6 from the 100 ns of from up to, without, the 100 ns of
// to. The errors are those of [V6At]; from after to is an error too.
func HalfOpenV6(from, to time.Time) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, true, uuidrep.Standard, MinV6At, MaxV6At)
}

// ClosedV6 returns the UUIDs of version 6 from the 100 ns of from to the 100 ns of to, both
// included. The errors are those of [HalfOpenV6].
func ClosedV6(from, to time.Time) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, false, uuidrep.Standard, MinV6At, MaxV6At)
}

// HalfOpenV7 returns the UUIDs of version 7, of that precision and encoding, from the unit of from
// up to, without, the unit of to. The errors are those of [V7At]; from after to is an error too.
func HalfOpenV7(from, to time.Time, p Precision, e Encoding) (uuidgen.Range, error) {
	return rangeV7(from, to, true, p, e)
}

// ClosedV7 returns the UUIDs of version 7, of that precision and encoding, from the unit of from to
// the unit of to, both included. The errors are those of [HalfOpenV7].
func ClosedV7(from, to time.Time, p Precision, e Encoding) (uuidgen.Range, error) {
	return rangeV7(from, to, false, p, e)
}

func rangeV7(from, to time.Time, halfOpen bool, p Precision, e Encoding) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, halfOpen, uuidrep.Standard,
		func(t time.Time) (uuid.UUID, error) { return MinV7At(t, p, e) },
		func(t time.Time) (uuid.UUID, error) { return MaxV7At(t, p, e) })
}

// HalfOpenV8 returns the UUIDs of version 8 by the clock c from the tick of from up to, without,
// the tick of to. The errors are those of [MinV8At]; from after to is an error too.
func HalfOpenV8(from, to time.Time, c Clock) (uuidgen.Range, error) {
	return rangeV8(from, to, true, c)
}

// ClosedV8 returns the UUIDs of version 8 by the clock c from the tick of from to the tick of to,
// both included. The errors are those of [HalfOpenV8].
func ClosedV8(from, to time.Time, c Clock) (uuidgen.Range, error) { return rangeV8(from, to, false, c) }

func rangeV8(from, to time.Time, halfOpen bool, c Clock) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, halfOpen, uuidrep.Standard,
		func(t time.Time) (uuid.UUID, error) { return MinV8At(t, c) },
		func(t time.Time) (uuid.UUID, error) { return MaxV8At(t, c) })
}

// CompareTime compares the instant of the fields with t in their unit, 100 ns: -1 if f is from an
// earlier unit than t, 0 if it is from the same, and +1 if it is from a later one.
func (f V6) CompareTime(t time.Time) int { return compareUnits(f.Time(), t, 100*time.Nanosecond) }

// CompareTime compares the instant of the fields with t in the unit of their precision: -1 if f is
// from an earlier unit than t, 0 if it is from the same, and +1 if it is from a later one. The
// result for fields that [V7.UUID] would refuse has no meaning.
func (f V7) CompareTime(t time.Time) int {
	if checkV7(f.Precision, f.Encoding) != nil {
		return f.Time().Compare(t)
	}
	return compareUnits(f.Time(), t, time.Second/time.Duration(precisions[f.Precision].perSecond))
}

// compareUnits compares instants rounded down to a unit that divides the second.
func compareUnits(a, b time.Time, unit time.Duration) int {
	floor := func(t time.Time) time.Time {
		return time.Unix(t.Unix(), int64(t.Nanosecond())/int64(unit)*int64(unit))
	}
	return floor(a).Compare(floor(b))
}

// CompareTime compares a timestamp of at most 64 bits with the tick of t: -1 if it is an earlier
// one, 0 if it is the same, and +1 if it is a later one. An instant before the epoch or beyond the
// timestamps is compared too. An invalid Clock, and one without a Tick, is an error.
func (c Clock) CompareTime(timestamp uint64, t time.Time) (int, error) {
	at, err := c.Time(timestamp)
	if err != nil {
		return 0, err
	}
	if t.Before(at) {
		return 1, nil
	}
	if tick, err := c.Timestamp(t); err != nil || tick > timestamp {
		return -1, nil // t is not before at, so that an error says that it is beyond the timestamps
	}
	return 0, nil
}
