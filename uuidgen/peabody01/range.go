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
		f, err := v7At(t, p, e)
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
// without bounds, as [uuidgen.HalfOpenV7] does. An invalid Clock, and one without a Tick or an Epoch, is an
// error, and so is a from that is after to. For a Clock without a Tick, the bounds of a timestamp are the
// [V8.UUID] of its fields with sequence 0 and node 1, and that with all bits of both set.
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
			return f.greatest()
		}
		return f.least()
	}
	last := stamp{lo: 1<<min(c.Bits, 64) - 1}
	if c.Bits > 64 {
		last.hi = 1<<(c.Bits-64) - 1
	}
	f := timerange.Format[uuid.UUID]{
		Begin: c.Epoch,
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
