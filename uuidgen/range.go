package uuidgen

import (
	"bytes"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/uuidrep"
)

func (l *layout) boundAt(t time.Time, upper bool) (uuid.UUID, error) {
	step, err := l.timestamp(t)
	if err != nil {
		return uuid.Nil, err
	}
	if !l.gregorian { // the whole millisecond
		step &^= 0xfff
		if upper {
			step |= 0xfff
		}
	}
	return l.bound(step, upper), nil
}

// A Range is the UUIDs of one format whose unit of time lies in a span of time. It is a plain value,
// safe to copy. The zero Range is empty.
type Range struct {
	Min, Max uuid.UUID
	HalfOpen bool // whether Max itself is not in the Range

	// Order is a representation in whose stored bytes the UUIDs of the format are in the order of
	// time: Standard, CSharpLegacy or JavaLegacy. PythonLegacy has the same order as Standard.
	Order uuidrep.Representation
}

// HalfOpenV7 returns the UUIDs of version 7 from the millisecond of from up to, without, the
// millisecond of to, made by any generator that follows RFC 9562, section 5.7.
//
// Instants are compared without bounds: a to after 10889-08-02 includes the last millisecond, and a
// from after it, or a to before 1970, gives the empty Range. A from that is after to is an error.
//
// The Range goes by the timestamps in the ids. Those of a [Generator] that runs ahead of its clock are
// later than the time at which the ids were made: extend to by [Generator.Ahead] to find them.
func HalfOpenV7(from, to time.Time) (Range, error) { return layoutV7.span(from, to, true) }

// ClosedV7 returns the UUIDs of version 7 from the millisecond of from to the millisecond of to,
// both included, as [HalfOpenV7] does. ClosedV7(t, t) has the bounds of one millisecond.
func ClosedV7(from, to time.Time) (Range, error) { return layoutV7.span(from, to, false) }

// HalfOpenV6 returns the UUIDs of version 6 from the 100 ns of from up to, without, the 100 ns of
// to, as [HalfOpenV7] does. The first instant is 1582-10-15, the last one is in 5236-03-31.
func HalfOpenV6(from, to time.Time) (Range, error) { return layoutV6.span(from, to, true) }

// ClosedV6 returns the UUIDs of version 6 from the 100 ns of from to the 100 ns of to, both
// included, as [HalfOpenV7] does.
func ClosedV6(from, to time.Time) (Range, error) { return layoutV6.span(from, to, false) }

// HalfOpenV8 returns the UUIDs of version 8 that a [NewV8Generator] for r makes from the
// millisecond of from up to, without, the millisecond of to, as [HalfOpenV7] does. A representation
// other than CSharpLegacy and JavaLegacy is an error.
func HalfOpenV8(from, to time.Time, r uuidrep.Representation) (Range, error) {
	l, err := layoutV8(r)
	if err != nil {
		return Range{}, err
	}
	return l.span(from, to, true)
}

// ClosedV8 returns the UUIDs of version 8 that a [NewV8Generator] for r makes from the millisecond
// of from to the millisecond of to, both included, as [HalfOpenV8] does.
func ClosedV8(from, to time.Time, r uuidrep.Representation) (Range, error) {
	l, err := layoutV8(r)
	if err != nil {
		return Range{}, err
	}
	return l.span(from, to, false)
}

func (l *layout) span(from, to time.Time, halfOpen bool) (Range, error) {
	b, err := timerange.Format[uuid.UUID]{
		Begin: l.time(0),
		First: l.bound(0, false),
		Last:  l.bound(maxTimestamps-1, true),
		Bound: l.boundAt,
	}.Bounds(from, to, halfOpen)
	if err != nil {
		return Range{}, fmt.Errorf("uuidgen: %w", err)
	}
	return Range{Min: b.Low, Max: b.High, HalfOpen: b.Open, Order: l.order}, nil
}

// empty reports whether the Range is empty: no id is the nil UUID.
func (r Range) empty() bool { return r.Max == uuid.Nil || r.Order == uuidrep.Unspecified }

// Contains reports whether u lies in the Range, in its order.
func (r Range) Contains(u uuid.UUID) bool {
	if r.empty() {
		return false
	}
	compare := func(a, b uuid.UUID) int {
		x, y := r.Order.Permute(a), r.Order.Permute(b)
		return bytes.Compare(x[:], y[:])
	}
	c := compare(u, r.Max)
	return compare(r.Min, u) <= 0 && (c < 0 || c == 0 && !r.HalfOpen)
}

// Filter returns the query filter for the documents whose field holds a UUID of the Range, stored
// in the representation rep: {field: {$gte: Min, $lte: Max}}, or $lt for a half-open Range, or
// {field: {$in: []}} for the empty one. The bounds are binary values, so that the filter fits every
// registry. There are always both: MongoDB compares length and subtype first, so that one alone would
// also match UUIDs of another subtype.
//
// A representation that does not keep the order of time, such as JavaLegacy for version 7, is
// [ErrOrder]: no filter finds the documents by time. Unspecified is [uuidrep.ErrUnspecified], and a
// field that is empty, begins with a dollar sign or contains a zero byte is an error.
func (r Range) Filter(field string, rep uuidrep.Representation) (bson.D, error) {
	if err := timerange.CheckField(field); err != nil {
		return nil, fmt.Errorf("uuidgen: %w", err)
	}
	low, err := uuidrep.NewBinaryWithRepresentation(r.Min, rep)
	if err != nil {
		return nil, fmt.Errorf("uuidgen: %w", err)
	}
	high, err := uuidrep.NewBinaryWithRepresentation(r.Max, rep)
	if err != nil {
		return nil, fmt.Errorf("uuidgen: %w", err)
	}
	if r.Order != uuidrep.Unspecified && r.Order != rep && (r.Order != uuidrep.Standard || rep != uuidrep.PythonLegacy) {
		return nil, fmt.Errorf("%w: field %q in %v, but the ids are in order in %v", ErrOrder, field, rep, r.Order)
	}
	if r.empty() {
		return bson.D{{Key: field, Value: bson.D{{Key: "$in", Value: bson.A{}}}}}, nil
	}
	upper := "$lte"
	if r.HalfOpen {
		upper = "$lt"
	}
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: low}, {Key: upper, Value: high}}}}, nil
}
