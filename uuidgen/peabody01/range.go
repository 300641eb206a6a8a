package peabody01

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// HalfOpenV7 returns the UUIDs of version 7, of that precision and encoding, from the unit of from
// up to, without, the unit of to. Instants are compared without bounds, as [uuidgen.HalfOpenV7] does;
// the last one is 4147-08-20T07:32:15Z. A value of p or e that is not one of the constants is an
// error, and so is a from that is after to.
//
// The ranges of version 6 are those of [uuidgen.HalfOpenV6].
func HalfOpenV7(from, to time.Time, p Precision, e Encoding) (uuidgen.Range, error) {
	return rangeV7(from, to, true, p, e)
}

// ClosedV7 returns the UUIDs of version 7, of that precision and encoding, from the unit of from to
// the unit of to, both included, as [HalfOpenV7] does.
func ClosedV7(from, to time.Time, p Precision, e Encoding) (uuidgen.Range, error) {
	return rangeV7(from, to, false, p, e)
}

func rangeV7(from, to time.Time, halfOpen bool, p Precision, e Encoding) (uuidgen.Range, error) {
	if err := checkV7(p, e); err != nil && !from.After(to) {
		return uuidgen.Range{}, err
	}
	bound := func(t time.Time, upper bool) (uuid.UUID, error) {
		f, err := V7At(t, p, e)
		if err != nil {
			return uuid.Nil, err
		}
		if upper {
			f.Sequence = 1<<precisions[p].sequence - 1
			f.Node = 1<<precisions[p].node - 1
		}
		return f.join(), nil
	}
	f := timerange.Format[uuid.UUID]{Begin: time.Unix(0, 0), Bound: bound}
	if !from.After(to) {
		f.First, _ = bound(f.Begin, false)
		f.Last, _ = bound(time.Unix(1<<v7SecondsBits-1, 999_999_999), true)
	}
	return newRange(f, from, to, halfOpen)
}

// HalfOpenV8 returns the UUIDs of version 8 by the clock c from the unit of from up to, without, the
// unit of to. The unit is a tick, or 2^(Bits-60) ticks if Bits is 61 to 64. Instants are compared
// without bounds, as [uuidgen.HalfOpenV7] does. An invalid Clock, and one without a Tick, is an error,
// and so is a from that is after to. For a Clock without a Tick, [V8.Min] and [V8.Max] return the
// bounds of a timestamp.
func HalfOpenV8(from, to time.Time, c Clock) (uuidgen.Range, error) {
	return rangeV8(from, to, true, c)
}

// ClosedV8 returns the UUIDs of version 8 by the clock c from the unit of from to the unit of to,
// both included, as [HalfOpenV8] does.
func ClosedV8(from, to time.Time, c Clock) (uuidgen.Range, error) { return rangeV8(from, to, false, c) }

func rangeV8(from, to time.Time, halfOpen bool, c Clock) (uuidgen.Range, error) {
	if err := c.checkTick(); err != nil && !from.After(to) {
		return uuidgen.Range{}, err
	}
	bound := func(s stamp, upper bool) (uuid.UUID, error) {
		f := V8{Bits: c.Bits, SequenceBits: c.SequenceBits, TimestampHigh: s.hi, Timestamp: s.lo}
		if upper {
			return f.Max()
		}
		return f.Min()
	}
	last := stamp{lo: 1<<min(c.Bits, 64) - 1}
	if c.Bits > 64 {
		last.hi = 1<<(c.Bits-64) - 1
	}
	f := timerange.Format[uuid.UUID]{
		Begin: c.epoch(),
		Bound: func(t time.Time, upper bool) (uuid.UUID, error) {
			s, err := c.stamp(t)
			if err != nil {
				return uuid.Nil, err
			}
			return bound(s, upper)
		},
	}
	if !from.After(to) {
		f.First, _ = bound(stamp{}, false) // a valid Clock has them
		f.Last, _ = bound(last, true)
	}
	return newRange(f, from, to, halfOpen)
}

func newRange(f timerange.Format[uuid.UUID], from, to time.Time, halfOpen bool) (uuidgen.Range, error) {
	b, err := f.Bounds(from, to, halfOpen)
	if err != nil {
		return uuidgen.Range{}, fmt.Errorf("peabody01: %w", err)
	}
	return uuidgen.Range{Min: b.Low, Max: b.High, HalfOpen: b.Open, Order: uuidrep.Standard}, nil
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

// CompareTime compares a timestamp of at most 64 bits with t, both in the unit that a UUID holds, a
// tick, or 2^(Bits-60) ticks if Bits is 61 to 64: -1 if it is an earlier unit, 0 if it is the same,
// and +1 if it is a later one. An instant before the epoch or beyond the timestamps is compared too.
// An invalid Clock, and one without a Tick, is an error.
func (c Clock) CompareTime(timestamp uint64, t time.Time) (int, error) {
	if err := c.checkTick(); err != nil {
		return 0, err
	}
	held := c.held(stamp{lo: timestamp})
	at, err := c.stamp(t)
	switch {
	case err != nil && t.Before(c.epoch()):
		return 1, nil
	case err != nil || c.held(at).after(held):
		return -1, nil
	case held.after(c.held(at)):
		return 1, nil
	}
	return 0, nil
}
