package peabody01

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// Precision is the unit of the timestamp of version 7. The zero value is [Millisecond]. It is a
// plain value, safe to copy.
type Precision uint8

const (
	Millisecond Precision = iota // figure 3: 12 bits of sub-seconds, 12 of sequence, 62 of node
	Microsecond                  // figure 4: 24 bits of sub-seconds, 14 of sequence, 48 of node
	Nanosecond                   // figure 5: 38 bits of sub-seconds, 8 of sequence, 40 of node
	Second                       // figure 2 without sub-seconds: 24 bits of sequence, 62 of node
)

// precisions holds what the figures fix: how many units a second has, and how wide the fields are.
var precisions = [...]struct {
	name                   string
	perSecond              uint64
	nanoseconds            uint64 // in a unit
	subsec, sequence, node int
}{
	Millisecond: {"Millisecond", 1e3, 1e6, 12, 12, 62},
	Microsecond: {"Microsecond", 1e6, 1e3, 24, 14, 48},
	Nanosecond:  {"Nanosecond", 1e9, 1, 38, 8, 40},
	Second:      {"Second", 1, 1e9, 0, 24, 62},
}

// String returns the constant's name, or "Precision(n)" for a value that is none of them.
func (p Precision) String() string {
	if int(p) < len(precisions) {
		return precisions[p].name
	}
	return fmt.Sprintf("Precision(%d)", uint8(p))
}

// Encoding is how the sub-second field of version 7 holds a number of milliseconds, microseconds or
// nanoseconds. The zero value is [RoundUp]. Nothing in a UUID tells its encoding. It is a plain
// value, safe to copy.
//
// The bits of the field are a binary fraction, section 4.4 of the draft. A decoder that does not
// know the maker reads all of them and truncates the result to its unit.
type Encoding uint8

const (
	// RoundUp is the smallest fraction that is not below the number: a decoder gets every number
	// back.
	RoundUp Encoding = iota

	// Floor is the largest fraction that is not above the number: a decoder that truncates is one
	// millisecond low for 992 of the 1000 values. It is for data that was written like this.
	Floor

	// RawCount is the number itself, not a fraction. Some programs wrote it. [Time] does not read
	// it.
	RawCount
)

var encodings = [...]string{RoundUp: "RoundUp", Floor: "Floor", RawCount: "RawCount"}

// String returns the constant's name, or "Encoding(n)" for a value that is none of them.
func (e Encoding) String() string {
	if int(e) < len(encodings) {
		return encodings[e]
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// scale returns n·num/den rounded down, or up, and for n < den a result no greater than num. It
// goes through 128 bits, since 10^9 nanoseconds in 38 bits need 68.
func scale(n, num, den uint64, up bool) uint64 {
	hi, lo := bits.Mul64(n, num)
	if hi == 0 {
		q := lo / den
		if up && q*den != lo {
			q++
		}
		return q
	}
	q, r := bits.Div64(hi, lo, den)
	if up && r != 0 {
		q++
	}
	return q
}

// V7 is the fields of a UUID of this draft's version 7, in the layout that a precision gives it.
// The zero values of Precision and Encoding are the defaults. It is a plain value, safe to copy.
//
//	bits          0–35       36–47     48–51  52–63     64–65  66–79       80–87  88–127
//	Millisecond   unixts:36  subsec:12 ver:4  seq:12    var:2  node:62 ………………………………………
//	Microsecond   unixts:36  subsec:12 ver:4  subsec:12 var:2  seq:14      node:48 …………………
//	Nanosecond    unixts:36  subsec:12 ver:4  subsec:12 var:2  subsec:14   seq:8  node:40
//	Second        unixts:36  seq:12    ver:4  seq:12    var:2  node:62 ………………………………………
//
// This is not the version 7 of RFC 9562, and nothing in a value tells the two apart: see the
// package comment.
//
// It is section 4.4 of the draft, figures 2 to 5.
type V7 struct {
	Precision Precision
	Encoding  Encoding
	Seconds   uint64 // 36 bits: since 1970-01-01T00:00:00Z
	Subsec    uint64 // the field as stored: 12, 24, 38 or no bits, in the Encoding
	Sequence  uint32 // 12, 14, 8 or 24 bits: how many UUIDs before this one had the same time
	Node      uint64 // 62, 48, 40 or 62 bits: random, an optional machine id on top, never zero
}

const v7SecondsBits = 36

func checkV7(p Precision, e Encoding) error {
	if int(p) >= len(precisions) {
		return fmt.Errorf("peabody01: %v is not a precision", p)
	}
	if int(e) >= len(encodings) {
		return fmt.Errorf("peabody01: %v is not an encoding of sub-seconds", e)
	}
	return nil
}

// v7At returns the fields of a UUID made at t: its time, truncated to the precision and in the
// encoding, with a sequence and a node of zero. An instant before 1970 or after
// 4147-08-20T07:32:15Z is [uuidgen.ErrTimeRange]; a precision or encoding that is not one of the constants
// is an error.
func v7At(t time.Time, p Precision, e Encoding) (V7, error) {
	if err := checkV7(p, e); err != nil {
		return V7{}, err
	}
	s, err := v7Stamp(t, p, e)
	if err != nil {
		return V7{}, err
	}
	return V7{Precision: p, Encoding: e, Seconds: s.hi, Subsec: s.lo}, nil
}

// v7Stamp returns the seconds and the sub-seconds of t.
func v7Stamp(t time.Time, p Precision, e Encoding) (stamp, error) {
	seconds := uint64(t.Unix()) // what is negative is too large
	if seconds>>v7SecondsBits != 0 {
		return stamp{}, fmt.Errorf("peabody01: %w: version 7 at %v", uuidgen.ErrTimeRange, t)
	}
	units := &precisions[p]
	subsec := uint64(t.Nanosecond()) / units.nanoseconds
	if e != RawCount {
		subsec = scale(subsec, 1<<units.subsec, units.perSecond, e == RoundUp)
	}
	return stamp{seconds, subsec}, nil
}

// Time returns the instant of the fields, in UTC, truncated to their precision. The result for
// fields that [V7.UUID] would refuse has no meaning.
func (f V7) Time() time.Time {
	if checkV7(f.Precision, f.Encoding) != nil {
		return time.Time{}
	}
	units := precisions[f.Precision]
	count := f.Subsec
	if f.Encoding != RawCount {
		// A number that was rounded down is read rounded up. The highest fractions, which no
		// encoder writes, would then read as the next second.
		count = scale(f.Subsec&(1<<units.subsec-1), units.perSecond, 1<<units.subsec, f.Encoding == Floor)
		count = min(count, units.perSecond-1)
	}
	return time.Unix(int64(f.Seconds), int64(count*(1e9/units.perSecond))).UTC()
}

// MachineID returns the machine id in the top bits of the node, bits wide, from 1 to the node's
// width; another width gives zero. Only the maker of a UUID knows whether there is one.
func (f V7) MachineID(bits int) uint64 {
	if int(f.Precision) >= len(precisions) {
		return 0
	}
	return machineID(f.Node, precisions[f.Precision].node, bits)
}

// UUID puts the fields together. A field wider than its bits, a raw count of a whole second or
// more, and a node of zero, is a [*uuidgen.FieldError]; a precision or encoding that is not one of the
// constants is an error.
func (f V7) UUID() (uuid.UUID, error) {
	if err := f.check(); err != nil {
		return uuid.Nil, err
	}
	if err := nodeNotZero(7, f.Node); err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

func (f V7) check() error {
	if err := checkV7(f.Precision, f.Encoding); err != nil {
		return err
	}
	units := precisions[f.Precision]
	for _, err := range [...]error{
		fits(7, "unixts", f.Seconds, v7SecondsBits),
		fits(7, "subsec", f.Subsec, units.subsec),
		fits(7, "seq", uint64(f.Sequence), units.sequence),
		fits(7, "node", f.Node, units.node),
	} {
		if err != nil {
			return err
		}
	}
	if f.Encoding == RawCount && f.Subsec >= units.perSecond {
		return fieldError(7, "subsec", f.Subsec, fmt.Sprintf("a count below %d", units.perSecond))
	}
	return nil
}

func (f V7) join() uuid.UUID {
	return joinV7(f.Precision, stamp{f.Seconds, f.Subsec}, uint64(f.Sequence), f.Node)
}

func joinV7(p Precision, s stamp, seq, node uint64) uuid.UUID {
	subsec, low12, rest := s.lo, seq, node
	switch p {
	case Second:
		subsec, low12 = seq>>12, seq&0xFFF
	case Microsecond:
		subsec, low12, rest = subsec>>12, subsec&0xFFF, seq<<48|node
	case Nanosecond:
		subsec, low12, rest = subsec>>26, subsec>>14&0xFFF, (subsec&0x3FFF)<<48|seq<<40|node
	}
	return join(7, s.hi<<12|subsec, low12, rest)
}

// DecodeV7 returns the fields of u, which was made with that precision and encoding. The value does
// not tell them: a UUID that was made with others, or by RFC 9562, gives wrong fields without an
// error. Another version or variant, and a raw count of a whole second or more, is a [*uuidgen.FieldError];
// a precision or encoding that is not one of the constants is an error. A node of zero, which the
// draft forbids to make, is read.
//
// If the precision is unknown, [Time] decodes the time as section 4.4 of the draft describes.
func DecodeV7(u uuid.UUID, p Precision, e Encoding) (V7, error) {
	top, low12, rest, err := split(u, 7)
	if err != nil {
		return V7{}, err
	}
	f := V7{Precision: p, Encoding: e, Seconds: top >> 12, Subsec: top & 0xFFF}
	switch p {
	case Second:
		f.Sequence, f.Subsec, f.Node = uint32(f.Subsec<<12|low12), 0, rest
	case Millisecond:
		f.Sequence, f.Node = uint32(low12), rest
	case Microsecond:
		f.Subsec = f.Subsec<<12 | low12
		f.Sequence, f.Node = uint32(rest>>48), rest&(1<<48-1)
	case Nanosecond:
		f.Subsec = f.Subsec<<26 | low12<<14 | rest>>48
		f.Sequence, f.Node = uint32(rest>>40&0xFF), rest&(1<<40-1)
	}
	if err := f.check(); err != nil {
		return V7{}, err
	}
	return f, nil
}

// Time returns the instant in a UUID of version 6, or of this draft's version 7 with sub-seconds of
// any precision that are a binary fraction, in UTC. In version 7 all 38 bits that may hold
// sub-seconds count, cut to nanoseconds, as a decoder does that does not know the maker's
// precision: for [RoundUp] the result, cut to that precision, is the maker's time; for [Floor] use
// [DecodeV7], and for [RawCount] too. A version 7 of RFC 9562 gives a wrong time without an error.
// Version 8 needs its [Clock]; it and all others are a [*uuidgen.FieldError].
//
// It implements sections 4.3 and 4.4 of the draft.
func Time(u uuid.UUID) (time.Time, error) {
	if u.Version() == 6 {
		f, err := DecodeV6(u)
		if err != nil {
			return time.Time{}, err
		}
		return f.Time(), nil
	}
	f, err := DecodeV7(u, Nanosecond, RoundUp)
	if err != nil {
		return time.Time{}, err
	}
	return f.Time(), nil
}
