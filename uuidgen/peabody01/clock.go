package peabody01

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/bsonids/bsonids/uuidgen"
)

// A Clock is where version 8 has its timestamps from, and what they mean: two programs that share
// one read each other's UUIDs. Bits is needed, and one of Now, NowWide and Tick. It is a plain
// value, safe to copy; its function is called by one goroutine at a time.
//
// A Clock{Bits: 48, Tick: time.Millisecond, Epoch: time.Unix(0, 0)} counts milliseconds since 1970.
type Clock struct {
	// Bits is the size of the timestamps: 1 to 98.
	Bits int

	// SequenceBits is the size of the sequence: at most 32. Zero means 12 bits beside a timestamp
	// of up to 48 bits, and 8 bits beside a longer one.
	SequenceBits int

	// Tick is how long one unit of the timestamp lasts; a step back is measured by it. Zero, with
	// Now or NowWide, says that the timestamps measure no time: every step back is then an error.
	Tick time.Duration

	// Epoch is the instant at which the timestamp is zero. It is needed unless Now or NowWide is set.
	// The functions that take or return an instant need it even then. The zero Time is no Epoch.
	Epoch time.Time

	// Now returns the present timestamp. If it and NowWide are nil, the generator counts ticks
	// since the epoch by the clock of [uuidgen.WithClock].
	Now func() uint64

	// NowWide returns the present timestamp in two words, for timestamps of more than 64 bits.
	NowWide func() (high, low uint64)
}

func (c Clock) hasNow() bool { return c.Now != nil || c.NowWide != nil }

func (c Clock) check() error {
	if _, err := widthsV8(c.Bits, c.SequenceBits); err != nil {
		return err
	}
	switch {
	case c.Tick < 0:
		return fmt.Errorf("peabody01: a Clock with a negative Tick of %v", c.Tick)
	case c.Now != nil && c.NowWide != nil:
		return fmt.Errorf("peabody01: a Clock with both Now and NowWide")
	case c.Tick == 0 && !c.hasNow():
		return fmt.Errorf("peabody01: a Clock without a Tick and without a function that returns its timestamps")
	case c.Epoch.IsZero() && !c.hasNow():
		return errNoEpoch
	}
	return nil
}

var errNoEpoch = errors.New("peabody01: a Clock without an Epoch, which is time.Unix(0, 0) for timestamps since 1970")

// stamp returns the timestamp of t: the whole ticks since the epoch. An instant before the epoch, or
// whose timestamp has more than Bits, is [uuidgen.ErrTimeRange]; an invalid Clock, and one without a
// Tick or an Epoch, is an error.
func (c Clock) stamp(t time.Time) (stamp, error) {
	if err := c.checkTick(); err != nil {
		return stamp{}, err
	}
	if t.Before(c.Epoch) {
		return stamp{}, c.outOfRange(t)
	}
	// Not t.Sub: a Duration ends after 292 years, and there are 388 between 1582 and 1970.
	seconds, nanos := uint64(t.Unix())-uint64(c.Epoch.Unix()), int64(t.Nanosecond()-c.Epoch.Nanosecond())
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	hi, lo := bits.Mul64(seconds, 1e9)
	lo, carry := bits.Add64(lo, uint64(nanos), 0)
	hi += carry
	s := stamp{hi: hi / uint64(c.Tick)}
	s.lo, _ = bits.Div64(hi%uint64(c.Tick), lo, uint64(c.Tick))
	if !s.fits(c.Bits) {
		return stamp{}, c.outOfRange(t)
	}
	return s, nil
}

func (c Clock) outOfRange(t time.Time) error {
	return fmt.Errorf("peabody01: %w: version 8 with %d bits at %v", uuidgen.ErrTimeRange, c.Bits, t)
}

// held clears the low bits of a timestamp of 61 to 64 bits, which a UUID does not hold: a sequence,
// and the unit of ranges, is for what it holds.
func (c Clock) held(s stamp) stamp {
	if c.Bits > 60 && c.Bits <= 64 {
		s.lo = s.lo >> (c.Bits - 60) << (c.Bits - 60)
	}
	return s
}

// Time returns the instant of a timestamp of at most 64 bits, in UTC: the beginning of its tick. An
// instant that a [time.Time] cannot hold is [uuidgen.ErrTimeRange]; an invalid Clock, and one without a
// Tick or an Epoch, is an error.
func (c Clock) Time(timestamp uint64) (time.Time, error) {
	if err := c.checkTick(); err != nil {
		return time.Time{}, err
	}
	hi, lo := bits.Mul64(timestamp, uint64(c.Tick))
	if hi < 1e9 {
		seconds, nanos := bits.Div64(hi, lo, 1e9)
		if seconds < 1<<61 && c.Epoch.Unix() < 1<<61 {
			return time.Unix(c.Epoch.Unix()+int64(seconds), int64(c.Epoch.Nanosecond())+int64(nanos)).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("peabody01: %w: timestamp %d in ticks of %v since %v", uuidgen.ErrTimeRange, timestamp, c.Tick, c.Epoch)
}

func (c Clock) checkTick() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Tick == 0 {
		return fmt.Errorf("peabody01: a Clock without a Tick does not measure time")
	}
	if c.Epoch.IsZero() {
		return errNoEpoch
	}
	return nil
}
