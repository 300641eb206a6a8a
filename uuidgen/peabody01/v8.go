package peabody01

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"
)

// V8 is the fields of a UUID of version 8, in the layout that the timestamp's size gives it. It is a plain value, safe
// to copy.
//
//	bits      0–31          32–47         48–51  52–63         64–65  66–73    74–127
//	32 bits   timestamp:32  zero          ver:4  seq:12        var:2  node:62 ……………………
//	48 bits   timestamp:32  timestamp:16  ver:4  seq:12        var:2  node:62 ……………………
//	60 bits   timestamp:32  timestamp:16  ver:4  timestamp:12  var:2  seq:8    node:54
//	64 bits   as 60 bits, which are the timestamp's upper ones
//
// What a timestamp counts is the maker's affair: see [Clock].
//
// It is section 4.5 of the draft, figure 6; the bits 66–73 are its seq_or_node.
type V8 struct {
	Bits      int    // size of the timestamp: 32, 48, 60 or 64
	Timestamp uint64 // Bits bits; of 64, the lowest four are lost: they are ignored, and decode as zero
	Sequence  uint16 // 12 bits with a timestamp of 32 or 48, 8 bits with one of 60 or 64
	Node      uint64 // 62 or 54 bits: random, an optional machine id on top, never zero
}

// v8Widths returns the widths of sequence and node beside a timestamp of that size.
func v8Widths(size int) (sequence, node int, err error) {
	switch size {
	case 32, 48:
		return 12, 62, nil
	case 60, 64:
		return 8, 54, nil
	}
	return 0, 0, fmt.Errorf("peabody01: a version 8 timestamp has 32, 48, 60 or 64 bits, not %d", size)
}

// MachineID returns the machine id in the top bits of the node, bits wide, from 1 to the node's width; another width
// gives zero. Only the maker of a UUID knows whether there is one.
func (f V8) MachineID(bits int) uint64 {
	_, width, err := v8Widths(f.Bits)
	if err != nil {
		return 0
	}
	return machineID(f.Node, width, bits)
}

// UUID puts the fields together. A field wider than its bits, and a node of zero, is a [*FieldError]; a size of the
// timestamp other than the four is an error.
func (f V8) UUID() (uuid.UUID, error) {
	sequence, node, err := v8Widths(f.Bits)
	if err != nil {
		return uuid.Nil, err
	}
	for _, err := range [...]error{
		fits(8, "timestamp", f.Timestamp, f.Bits),
		fits(8, "seq", uint64(f.Sequence), sequence),
		fits(8, "node", f.Node, node),
		nodeNotZero(8, f.Node),
	} {
		if err != nil {
			return uuid.Nil, err
		}
	}
	return f.join(), nil
}

func (f V8) join() uuid.UUID {
	seq := uint64(f.Sequence)
	switch f.Bits {
	case 32:
		return join(8, f.Timestamp<<16, seq, f.Node)
	case 48:
		return join(8, f.Timestamp, seq, f.Node)
	case 64:
		f.Timestamp >>= 4
	}
	return join(8, f.Timestamp>>12, f.Timestamp&0xFFF, seq<<54|f.Node)
}

// DecodeV8 returns the fields of u, which was made with a timestamp of that size, 32, 48, 60 or 64 bits: the value
// does not tell. Another version or variant, and bits 32–47 that are not zero beside a timestamp of 32, is a
// [*FieldError]; another size is an error. A node of zero, which the draft forbids to make, is read. The instant is
// [Clock.Time] of the timestamp.
func DecodeV8(u uuid.UUID, size int) (V8, error) {
	if _, _, err := v8Widths(size); err != nil {
		return V8{}, err
	}
	top, low12, rest, err := split(u, 8)
	if err != nil {
		return V8{}, err
	}
	f := V8{Bits: size, Timestamp: top, Sequence: uint16(low12), Node: rest}
	switch size {
	case 32:
		if unused := top & 0xFFFF; unused != 0 {
			return V8{}, &FieldError{8, "timestamp_48", unused, "zero beside a timestamp of 32 bits"}
		}
		f.Timestamp = top >> 16
	case 60, 64:
		f.Timestamp = (top<<12 | low12) << (size - 60)
		f.Sequence, f.Node = uint16(rest>>54), rest&(1<<54-1)
	}
	return f, nil
}

// MinV8 returns the lowest UUID of version 8 with that timestamp, for queries by time; [Clock.Timestamp] gives the
// timestamp of an instant. The bound is not a UUID to store: its node is zero. The timestamp's size is 32, 48, 60 or
// 64 bits; another size is an error, a timestamp that is wider a [*FieldError].
func MinV8(size int, timestamp uint64) (uuid.UUID, error) {
	if _, _, err := v8Widths(size); err != nil {
		return uuid.Nil, err
	}
	if err := fits(8, "timestamp", timestamp, size); err != nil {
		return uuid.Nil, err
	}
	return V8{Bits: size, Timestamp: timestamp}.join(), nil
}

// MaxV8 returns the highest UUID of version 8 with that timestamp, as [MinV8] returns the lowest.
func MaxV8(size int, timestamp uint64) (uuid.UUID, error) {
	if _, err := MinV8(size, timestamp); err != nil {
		return uuid.Nil, err
	}
	sequence, node, _ := v8Widths(size)
	return V8{Bits: size, Timestamp: timestamp, Sequence: 1<<sequence - 1, Node: 1<<node - 1}.join(), nil
}

// Clock is where version 8 has its timestamps from, and what they mean: two programs that share one read each other's
// UUIDs. Bits is needed, and Now or Tick. It is a plain value, safe to copy; Now is called by one goroutine at a time.
//
// A Clock{Bits: 48, Tick: time.Millisecond} counts milliseconds since 1970, a Clock{Bits: 64, Tick: 1} nanoseconds.
type Clock struct {
	// Bits is the size of the timestamps: 32, 48, 60 or 64.
	Bits int

	// Tick is how long one unit of the timestamp lasts; it is what measures a step back. Zero, with Now, says that
	// the timestamps measure no time: every step back is then an error.
	Tick time.Duration

	// Epoch is the instant at which the timestamp is zero; the zero value means 1970-01-01T00:00:00Z.
	Epoch time.Time

	// Now returns the present timestamp. If it is nil, the generator counts ticks since the epoch by the clock of
	// [WithClock].
	Now func() uint64
}

func (c Clock) check() error {
	if _, _, err := v8Widths(c.Bits); err != nil {
		return err
	}
	if c.Tick < 0 {
		return fmt.Errorf("peabody01: a clock's tick of %v is negative", c.Tick)
	}
	if c.Tick == 0 && c.Now == nil {
		return fmt.Errorf("peabody01: a clock needs a tick or a function that returns its timestamps")
	}
	return nil
}

func (c Clock) epoch() time.Time {
	if c.Epoch.IsZero() {
		return time.Unix(0, 0)
	}
	return c.Epoch
}

// Timestamp returns the timestamp of t: the whole ticks since the epoch. An instant before the epoch, or whose
// timestamp has more than Bits bits, is [ErrTimeRange]; a clock without Tick, or with another size, is an error.
func (c Clock) Timestamp(t time.Time) (uint64, error) {
	if err := c.checkTick(); err != nil {
		return 0, err
	}
	// Not t.Sub: a Duration ends after 292 years, and there are 388 between 1582 and 1970.
	epoch := c.epoch()
	before := t.Unix() < epoch.Unix() || t.Unix() == epoch.Unix() && t.Nanosecond() < epoch.Nanosecond()
	seconds, nanos := uint64(t.Unix())-uint64(epoch.Unix()), int64(t.Nanosecond()-epoch.Nanosecond())
	if nanos < 0 {
		seconds, nanos = seconds-1, nanos+1e9
	}
	hi, lo := bits.Mul64(seconds, 1e9)
	lo, carry := bits.Add64(lo, uint64(nanos), 0)
	hi += carry
	if before || hi >= uint64(c.Tick) {
		return 0, fmt.Errorf("%w: version 8 with %d bits at %v", ErrTimeRange, c.Bits, t)
	}
	timestamp, _ := bits.Div64(hi, lo, uint64(c.Tick))
	if timestamp>>c.Bits != 0 {
		return 0, fmt.Errorf("%w: version 8 with %d bits at %v", ErrTimeRange, c.Bits, t)
	}
	return timestamp, nil
}

// Time returns the instant of a timestamp, in UTC: the beginning of its tick. An instant that a [time.Time] cannot
// hold is [ErrTimeRange]; a clock without Tick, or with another size, is an error.
func (c Clock) Time(timestamp uint64) (time.Time, error) {
	if err := c.checkTick(); err != nil {
		return time.Time{}, err
	}
	epoch := c.epoch()
	hi, lo := bits.Mul64(timestamp, uint64(c.Tick))
	if hi < 1e9 {
		seconds, nanos := bits.Div64(hi, lo, 1e9)
		if seconds < 1<<61 && epoch.Unix() < 1<<61 {
			return time.Unix(epoch.Unix()+int64(seconds), int64(epoch.Nanosecond())+int64(nanos)).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: timestamp %d in ticks of %v since %v", ErrTimeRange, timestamp, c.Tick, epoch)
}

func (c Clock) checkTick() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Tick == 0 {
		return fmt.Errorf("peabody01: a clock without a tick does not measure time")
	}
	return nil
}
