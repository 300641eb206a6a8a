package peabody01

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
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

// A layout is what differs between the versions.
type layout interface {
	read() (stamp, error)                 // asks the clock
	at(t time.Time) (stamp, error)        // the timestamp of an instant
	behind(now, last stamp) time.Duration // how far now is before last; the longest Duration if it is not measured

	// next returns what follows g.last at a clock that is not past it. It reports false while
	// nothing does.
	next(g *Generator, now stamp) (position, bool, error)
	join(g *Generator, p position, node uint64) (uuid.UUID, error)
}

// hold returns the error of a clock that is set back too far.
func hold(g *Generator, now stamp) error {
	if d := g.layout.behind(now, g.last.stamp); d > g.maxBack || d == math.MaxInt64 {
		return fmt.Errorf("%w by %v, further than %v", ErrClockRollback, d, g.maxBack)
	}
	return nil
}

type v6Layout struct {
	now      func() time.Time
	reading  stamp // the highest of the clock since the clock sequence was changed
	sequence uint16
	drawn    bool // there is a clock sequence
	change   bool // it is to be another one
}

func (l *v6Layout) read() (stamp, error) {
	now, err := l.at(l.now())
	if err == nil && now.after(l.reading) {
		l.reading = now
	}
	return now, err
}

func (l *v6Layout) at(t time.Time) (stamp, error) {
	f, err := V6At(t)
	return stamp{lo: f.Timestamp}, err
}

func (l *v6Layout) behind(now, last stamp) time.Duration { return span(last, now, gregorian.Tick) }

func (l *v6Layout) next(g *Generator, now stamp) (position, bool, error) {
	if l.reading.after(now) {
		if l.behind(now, l.reading) > g.maxBack {
			// RFC 4122, section 4.1.5: UUIDs may have been made with these timestamps.
			g.begun, l.change, l.reading = false, true, now
			return position{stamp: now}, true, nil
		}
		now = l.reading
	}
	p := g.last
	p.lo++
	return p, p.lo>>v6TimeBits == 0 && l.behind(now, p.stamp) <= g.maxAhead, nil
}

func (l *v6Layout) join(g *Generator, p position, node uint64) (uuid.UUID, error) {
	if !l.drawn || l.change {
		random, err := g.draw()
		if err != nil {
			return uuid.Nil, err
		}
		sequence := uint16(random & (1<<v6SequenceBits - 1))
		if l.drawn && sequence == l.sequence {
			sequence = (sequence + 1) & (1<<v6SequenceBits - 1)
		}
		l.sequence, l.drawn, l.change = sequence, true, false
	}
	return V6{Timestamp: p.lo, ClockSequence: l.sequence, Node: node}.join(), nil
}

type v7Layout struct {
	now       func() time.Time
	precision Precision
	encoding  Encoding
}

func (l *v7Layout) read() (stamp, error) { return l.at(l.now()) }

func (l *v7Layout) at(t time.Time) (stamp, error) {
	f, err := V7At(t, l.precision, l.encoding)
	return stamp{f.Seconds, f.Subsec}, err // the fields are in order in every encoding
}

func (l *v7Layout) behind(now, last stamp) time.Duration {
	return l.fields(last).Time().Sub(l.fields(now).Time())
}

func (l *v7Layout) fields(s stamp) V7 {
	return V7{Precision: l.precision, Encoding: l.encoding, Seconds: s.hi, Subsec: s.lo}
}

func (l *v7Layout) next(g *Generator, now stamp) (position, bool, error) {
	p := g.last
	p.seq++
	return p, p.seq>>precisions[l.precision].sequence == 0, hold(g, now)
}

func (l *v7Layout) join(_ *Generator, p position, node uint64) (uuid.UUID, error) {
	f := l.fields(p.stamp)
	f.Sequence, f.Node = uint32(p.seq), node
	return f.join(), nil
}

type v8Layout struct {
	now    func() time.Time
	clock  Clock
	widths widths
}

func (l *v8Layout) read() (stamp, error) {
	var s stamp
	switch {
	case l.clock.NowWide != nil:
		s.hi, s.lo = l.clock.NowWide()
	case l.clock.Now != nil:
		s.lo = l.clock.Now()
	default:
		return l.at(l.now())
	}
	if !s.fits(l.clock.Bits) {
		return stamp{}, fmt.Errorf("peabody01: %w: version 8 with %d bits, timestamp %#x",
			ErrTimeRange, l.clock.Bits, []uint64{s.hi, s.lo})
	}
	return l.held(s), nil
}

func (l *v8Layout) at(t time.Time) (stamp, error) {
	timestamp, err := l.clock.Timestamp(t)
	return l.held(stamp{lo: timestamp}), err
}

// held clears the low bits of 61 to 64, which a UUID does not hold: a sequence is for what it
// holds.
func (l *v8Layout) held(s stamp) stamp {
	s.lo = s.lo >> l.widths.lost << l.widths.lost
	return s
}

func (l *v8Layout) behind(now, last stamp) time.Duration {
	if l.clock.Tick == 0 && now != last {
		return math.MaxInt64
	}
	return span(last, now, l.clock.Tick)
}

func (l *v8Layout) next(g *Generator, now stamp) (position, bool, error) {
	p := g.last
	p.seq++
	return p, p.seq>>l.widths.sequence == 0, hold(g, now)
}

func (l *v8Layout) join(_ *Generator, p position, node uint64) (uuid.UUID, error) {
	f := V8{Bits: l.clock.Bits, SequenceBits: l.clock.SequenceBits, TimestampHigh: p.hi, Timestamp: p.lo,
		Sequence: uint32(p.seq), Node: node}
	return f.join(l.widths), nil
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
