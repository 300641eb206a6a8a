// Package timerange makes the bounds of the ranges of ids of all formats: the ids whose unit of time u satisfies
// unit(from) ≤ u < unit(to), or u ≤ unit(to) if the range is closed.
package timerange

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Err is the error for an instant or a timestamp outside the range of a format. Each package
// exports it as ErrTimeRange and wraps it behind its own name: fmt.Errorf("uuidgen: %w: …", Err).
// [errors.Is] thus matches across packages.
var Err = errors.New("time out of range")

// A Format is the ids of one format.
type Format[ID comparable] struct {
	Begin       time.Time                                 // the first instant
	First, Last ID                                        // the first id and the last of all instants
	Bound       func(t time.Time, upper bool) (ID, error) // the first or the last id of the unit of t; Err if there is none
}

// Bounds are the first id of a range and the last, or, if Open, the first after it. The zero Bounds are those of an empty
// range.
type Bounds[ID comparable] struct {
	Low, High ID
	Open      bool
}

// Bounds returns the bounds of a range. A from that is after to is an error. An instant that the format cannot hold is before
// or after all its ids. Other errors are those of Bound.
func (f Format[ID]) Bounds(from, to time.Time, halfOpen bool) (Bounds[ID], error) {
	if from.After(to) {
		return Bounds[ID]{}, fmt.Errorf("the range begins at %v, after its end at %v", from, to)
	}
	low, side, err := f.bound(from, false)
	if err != nil || side > 0 {
		return Bounds[ID]{}, err
	}
	if side < 0 {
		low = f.First
	}
	high, side, err := f.bound(to, !halfOpen)
	if side > 0 {
		high, halfOpen = f.Last, false
	}
	if err != nil || side < 0 || high == low && halfOpen {
		return Bounds[ID]{}, err
	}
	return Bounds[ID]{low, high, halfOpen}, nil
}

// bound returns Bound of t, or -1 if t is before the first instant and 1 if it is after the last one.
func (f Format[ID]) bound(t time.Time, upper bool) (id ID, side int, err error) {
	id, err = f.Bound(t, upper)
	switch {
	case !errors.Is(err, Err):
		return id, 0, err
	case t.Before(f.Begin):
		return id, -1, nil
	}
	return id, 1, nil
}

// CheckField returns an error for what is not the name of a field in a filter.
func CheckField(field string) error {
	if field == "" || field[0] == '$' || strings.Contains(field, "\x00") {
		return fmt.Errorf("%q is not the name of a field", field)
	}
	return nil
}
