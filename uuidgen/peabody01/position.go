package peabody01

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// A stamp is a timestamp as a UUID holds it, in a form that can be compared. In version 7 hi is the
// seconds and lo the units of the precision, in the others the two are one number.
type stamp struct{ hi, lo uint64 }

func (s stamp) after(t stamp) bool {
	return s.hi > t.hi || s.hi == t.hi && s.lo > t.lo
}

// A position puts the UUIDs of a Generator in order.
type position struct {
	stamp
	seq uint64
}

// A layout has the operations that differ between the versions.
type layout interface {
	read(t time.Time) (stamp, error)      // the timestamp at a clock that shows t
	behind(now, last stamp) time.Duration // how far now is before last; the longest Duration if it is not measured
	join(p position, node uint64) uuid.UUID
}

type v7Layout struct {
	precision Precision
	encoding  Encoding
}

// read returns the fields, which are in order in every encoding.
func (l *v7Layout) read(t time.Time) (stamp, error) { return v7Stamp(t, l.precision, l.encoding) }

func (l *v7Layout) behind(now, last stamp) time.Duration {
	return l.fields(last).Time().Sub(l.fields(now).Time())
}

func (l *v7Layout) fields(s stamp) V7 {
	return V7{Precision: l.precision, Encoding: l.encoding, Seconds: s.hi, Subsec: s.lo}
}

func (l *v7Layout) join(p position, node uint64) uuid.UUID {
	return joinV7(l.precision, p.stamp, p.seq, node)
}

type v8Layout struct {
	clock  Clock
	widths widths
}

func (l *v8Layout) read(t time.Time) (stamp, error) {
	var s stamp
	switch {
	case l.clock.NowWide != nil:
		s.hi, s.lo = l.clock.NowWide()
	case l.clock.Now != nil:
		s.lo = l.clock.Now()
	default:
		s, err := l.clock.stamp(t)
		return l.clock.held(s), err
	}
	if !s.fits(l.clock.Bits) {
		return stamp{}, fmt.Errorf("peabody01: %w: version 8 with %d bits, timestamp %#x",
			uuidgen.ErrTimeRange, l.clock.Bits, []uint64{s.hi, s.lo})
	}
	return l.clock.held(s), nil
}

func (l *v8Layout) behind(now, last stamp) time.Duration {
	if l.clock.Tick == 0 && now != last {
		return math.MaxInt64
	}
	return span(last, now, l.clock.Tick)
}

func (l *v8Layout) join(p position, node uint64) uuid.UUID {
	f := V8{Bits: l.clock.Bits, SequenceBits: l.clock.SequenceBits, TimestampHigh: p.hi, Timestamp: p.lo,
		Sequence: uint32(p.seq), Node: node}
	return f.join(l.widths)
}

// span returns how long it is from the timestamp now to last, which is not before it.
func span(last, now stamp, tick time.Duration) time.Duration {
	difference, borrow := bits.Sub64(last.lo, now.lo, 0)
	hi, lo := bits.Mul64(difference, uint64(tick))
	if last.hi-now.hi-borrow != 0 || hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(lo)
}

// fits reports whether the timestamp has no more than so many bits.
func (s stamp) fits(size int) bool {
	if size < 64 {
		return s.hi == 0 && s.lo>>size == 0
	}
	return s.hi>>(size-64) == 0
}
