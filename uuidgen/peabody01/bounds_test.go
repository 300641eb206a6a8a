package peabody01

import (
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// The bounds of one unit.
func minV6At(t time.Time) (uuid.UUID, error) { r, err := uuidgen.ClosedV6(t, t); return r.Min, err }
func maxV6At(t time.Time) (uuid.UUID, error) { r, err := uuidgen.ClosedV6(t, t); return r.Max, err }
func minV7At(t time.Time, p Precision, e Encoding) (uuid.UUID, error) {
	r, err := ClosedV7(t, t, p, e)
	return r.Min, err
}
func maxV7At(t time.Time, p Precision, e Encoding) (uuid.UUID, error) {
	r, err := ClosedV7(t, t, p, e)
	return r.Max, err
}

// timestamp is stamp of at most 64 bits.
func (c Clock) timestamp(t time.Time) (uint64, error) {
	s, err := c.stamp(t)
	if err == nil && s.hi != 0 {
		err = c.outOfRange(t)
	}
	return s.lo, err
}
