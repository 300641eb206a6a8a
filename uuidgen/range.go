package uuidgen

import (
	"bytes"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// MinV7At returns the least UUID of version 7 with the millisecond of t. An instant before 1970 or
// after 10889-08-02 is [ErrTimeRange].
//
// With [MaxV7At] it bounds the UUIDs of version 7 of a span of time, made by any generator that
// follows RFC 9562, section 5.7. It goes by the timestamps in the ids, which can be later than the
// time at which the ids were made; see [Generator]. [HalfOpenV7] and [ClosedV7] return both bounds.
func MinV7At(t time.Time) (uuid.UUID, error) { return layoutV7.boundAt(t, false) }

// MaxV7At returns the greatest UUID of version 7 with the millisecond of t. The errors are those of
// [MinV7At].
func MaxV7At(t time.Time) (uuid.UUID, error) { return layoutV7.boundAt(t, true) }

// MinV6At returns the least UUID of version 6 with the 100 ns of t. An instant before 1582-10-15 or
// after 5236-03-31 is [ErrTimeRange]. See [MinV7At].
func MinV6At(t time.Time) (uuid.UUID, error) { return layoutV6.boundAt(t, false) }

// MaxV6At returns the greatest UUID of version 6 with the 100 ns of t. The errors are those of
// [MinV6At].
func MaxV6At(t time.Time) (uuid.UUID, error) { return layoutV6.boundAt(t, true) }

// MinV8At returns the UUID of version 8 that comes first, in the order of the representation r,
// among those that a [NewV8Generator] for r makes with the millisecond of t. An instant before 1970
// or after 10889-08-02 is [ErrTimeRange]; a representation other than CSharpLegacy and JavaLegacy
// is an error.
func MinV8At(t time.Time, r uuidrep.Representation) (uuid.UUID, error) {
	l, err := layoutV8(r)
	if err != nil {
		return uuid.Nil, err
	}
	return l.boundAt(t, false)
}

// MaxV8At returns the last UUID, as [MinV8At] returns the first. The errors are the same.
func MaxV8At(t time.Time, r uuidrep.Representation) (uuid.UUID, error) {
	l, err := layoutV8(r)
	if err != nil {
		return uuid.Nil, err
	}
	return l.boundAt(t, true)
}

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

// A Range is the UUIDs of one format whose timestamps lie in a span of time. It is a plain value,
// safe to copy. The zero Range contains nothing.
type Range struct {
	Min, Max uuid.UUID
	HalfOpen bool // whether Max itself is not in the Range

	// Order is a representation in whose stored bytes the UUIDs of the format are in the order of
	// time: Standard, CSharpLegacy or JavaLegacy. PythonLegacy has the same order as Standard.
	Order uuidrep.Representation
}

// HalfOpenV7 returns the UUIDs of version 7 from the millisecond of from up to, without, the
// millisecond of to. An instant out of the range of [MinV7At] is [ErrTimeRange]; from after to is
// an error.
func HalfOpenV7(from, to time.Time) (Range, error) { return layoutV7.span(from, to, true) }

// ClosedV7 returns the UUIDs of version 7 from the millisecond of from to the millisecond of to,
// both included. The errors are those of [HalfOpenV7].
func ClosedV7(from, to time.Time) (Range, error) { return layoutV7.span(from, to, false) }

// HalfOpenV6 returns the UUIDs of version 6 from the 100 ns of from up to, without, the 100 ns of
// to. An instant out of the range of [MinV6At] is [ErrTimeRange]; from after to is an error.
func HalfOpenV6(from, to time.Time) (Range, error) { return layoutV6.span(from, to, true) }

// ClosedV6 returns the UUIDs of version 6 from the 100 ns of from to the 100 ns of to, both
// included. The errors are those of [HalfOpenV6].
func ClosedV6(from, to time.Time) (Range, error) { return layoutV6.span(from, to, false) }

// HalfOpenV8 returns the UUIDs of version 8 that a [NewV8Generator] for r makes from the
// millisecond of from up to, without, the millisecond of to. The errors are those of [MinV8At];
// from after to is an error too.
func HalfOpenV8(from, to time.Time, r uuidrep.Representation) (Range, error) {
	l, err := layoutV8(r)
	if err != nil {
		return Range{}, err
	}
	return l.span(from, to, true)
}

// ClosedV8 returns the UUIDs of version 8 that a [NewV8Generator] for r makes from the millisecond
// of from to the millisecond of to, both included. The errors are those of [HalfOpenV8].
func ClosedV8(from, to time.Time, r uuidrep.Representation) (Range, error) {
	l, err := layoutV8(r)
	if err != nil {
		return Range{}, err
	}
	return l.span(from, to, false)
}

func (l *layout) span(from, to time.Time, halfOpen bool) (Range, error) {
	return NewRange(from, to, halfOpen, l.order,
		func(t time.Time) (uuid.UUID, error) { return l.boundAt(t, false) },
		func(t time.Time) (uuid.UUID, error) { return l.boundAt(t, true) })
}

// NewRange returns the Range of a format of which min and max return the first and the last UUID at
// an instant, in the given order. The errors are those of min and max; from after to is an error.
//
// It is for formats of your own. The functions HalfOpenV7, ClosedV7 and their kin, here and in
// packages peabody01 and i3core, return the ranges of the formats of this module.
func NewRange(from, to time.Time, halfOpen bool, order uuidrep.Representation,
	min, max func(time.Time) (uuid.UUID, error)) (Range, error) {
	if from.After(to) {
		return Range{}, fmt.Errorf("uuidgen: the range begins at %v, after its end at %v", from, to)
	}
	if halfOpen {
		max = min
	}
	low, err := min(from)
	if err != nil {
		return Range{}, err
	}
	high, err := max(to)
	if err != nil {
		return Range{}, err
	}
	return Range{Min: low, Max: high, HalfOpen: halfOpen, Order: order}, nil
}

// Contains reports whether u lies in the Range, in its order.
func (r Range) Contains(u uuid.UUID) bool {
	if r.Order == uuidrep.Unspecified {
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
// in the representation rep: {field: {$gte: Min, $lte: Max}}, or $lt for a half-open Range. The
// bounds are binary values, so that the filter fits every registry.
//
// A representation that does not keep the order of time, such as JavaLegacy for version 7, is
// [ErrOrder]: no filter finds the documents by time. Unspecified is [uuidrep.ErrUnspecified], and a
// field that is empty or begins with a dollar sign is an error.
func (r Range) Filter(field string, rep uuidrep.Representation) (bson.D, error) {
	if field == "" || field[0] == '$' {
		return nil, fmt.Errorf("uuidgen: %q is not the name of a field", field)
	}
	low, err := uuidrep.NewBinaryWithRepresentation(r.Min, rep)
	if err != nil {
		return nil, fmt.Errorf("uuidgen: %w", err)
	}
	high, err := uuidrep.NewBinaryWithRepresentation(r.Max, rep)
	if err != nil {
		return nil, fmt.Errorf("uuidgen: %w", err)
	}
	if r.Order != rep && (r.Order != uuidrep.Standard || rep != uuidrep.PythonLegacy) {
		return nil, fmt.Errorf("%w: field %q in %v, but the ids are in order in %v", ErrOrder, field, rep, r.Order)
	}
	upper := "$lte"
	if r.HalfOpen {
		upper = "$lt"
	}
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: low}, {Key: upper, Value: high}}}}, nil
}
