package peabody01

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/internal/idoption"
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

// A layout is what differs between the versions.
type layout interface {
	read(t time.Time) (stamp, error)      // the timestamp at a clock that shows t
	behind(now, last stamp) time.Duration // how far now is before last; the longest Duration if it is not measured

	// next returns what follows m.last at a clock that is not past it. It reports false while
	// nothing does.
	next(m *maker, now stamp) (position, bool, error)
	join(m *maker, p position, node uint64) (uuid.UUID, error)
}

func (m *maker) hold(now stamp) error {
	if now == m.last.stamp {
		return nil
	}
	return hold(m, now)
}

// hold returns the error of a clock that is set back too far.
func hold(m *maker, now stamp) error {
	if d := m.layout.behind(now, m.last.stamp); d > m.maxBack {
		return fmt.Errorf("%w by %v, further than %v", ErrClockRollback, d, m.maxBack)
	}
	return nil
}

type v6Layout struct {
	sequence uint16
	drawn    bool // there is a clock sequence
	change   bool // it is to be another one
}

func (*v6Layout) read(t time.Time) (stamp, error) {
	f, err := v6At(t)
	return stamp{lo: f.Timestamp}, err
}

// reading returns the highest reading of the clock in the present order.
func (*v6Layout) reading(m *maker) stamp { return stamp{lo: m.order.Highest()} }

// continues reports whether a reading of the clock belongs to the present order.
func (*v6Layout) continues(m *maker, now stamp) bool {
	limit := uint64(m.maxBack / gregorian.Tick)
	if m.maxBack == idoption.NoLimit {
		limit = math.MaxUint64 // version 6 holds more years than a Duration
	}
	return m.order.Continues(now.lo, m.order.Highest(), limit)
}

func (*v6Layout) behind(now, last stamp) time.Duration { return span(last, now, gregorian.Tick) }

func (l *v6Layout) next(m *maker, _ stamp) (position, bool, error) {
	p := m.last
	p.lo++
	return p, p.lo>>v6TimeBits == 0 && (p.lo <= m.order.Highest() || l.behind(l.reading(m), p.stamp) <= m.maxAhead), nil
}

func (l *v6Layout) join(m *maker, p position, node uint64) (uuid.UUID, error) {
	if !l.drawn || l.change {
		random, err := m.draw()
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

func (l *v7Layout) next(m *maker, now stamp) (position, bool, error) {
	p := m.last
	p.seq++
	return p, p.seq>>precisions[l.precision].sequence == 0, m.hold(now)
}

func (l *v7Layout) join(_ *maker, p position, node uint64) (uuid.UUID, error) {
	return joinV7(l.precision, p.stamp, p.seq, node), nil
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
		return l.at(t)
	}
	if !s.fits(l.clock.Bits) {
		return stamp{}, fmt.Errorf("peabody01: %w: version 8 with %d bits, timestamp %#x",
			uuidgen.ErrTimeRange, l.clock.Bits, []uint64{s.hi, s.lo})
	}
	return l.clock.held(s), nil
}

// at returns the timestamp of an instant, also if the clock has a function of its own.
func (l *v8Layout) at(t time.Time) (stamp, error) {
	s, err := l.clock.stamp(t)
	return l.clock.held(s), err
}

func (l *v8Layout) behind(now, last stamp) time.Duration {
	if l.clock.Tick == 0 && now != last {
		return math.MaxInt64
	}
	return span(last, now, l.clock.Tick)
}

func (l *v8Layout) next(m *maker, now stamp) (position, bool, error) {
	p := m.last
	p.seq++
	return p, p.seq>>l.widths.sequence == 0, m.hold(now)
}

func (l *v8Layout) join(_ *maker, p position, node uint64) (uuid.UUID, error) {
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
