package uuidgen

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/uuidrep"
)

const (
	timestampBits = 60 // versions 1, 6, 7 and 8 here
	maxTimestamps = 1 << timestampBits

	unixPerSecond = 1000 * 4096 // steps of 1/4096 ms since 1970
	variantBits   = uint64(0b10) << 62
	anyVariant    = 1<<62 - 1       // the bits after the variant
	nodeBits      = 48              // of version 6
	multicast     = uint64(1) << 40 // of the node in version 6: the last bit of byte 10
)

// A layout says where a version has its timestamp, and what the timestamp counts: the steps of the
// layout.
type layout struct {
	pkg       string // the package whose name begins the errors
	version   byte
	order     uuidrep.Representation // in which the ids ascend; Unspecified if they do not
	gregorian bool                   // 100 ns since 1582, not 1/4096 ms since 1970
	perSecond uint64
	fixed     uint64 // bits of the last eight bytes that are always 1
	random    uint64 // bits of the last eight bytes that are random
	sequence  bool   // the clock sequence stays the same in an order, and the random bits and fixed ones of a node are not all zero
}

var (
	layoutV1 = &layout{pkg: "uuidgen", version: 1, gregorian: true} // for conversion and reading
	layoutV4 = &layout{pkg: "uuidgen", version: 4, fixed: variantBits, random: anyVariant, perSecond: unixPerSecond}
	layoutV6 = &layout{pkg: "uuidgen", version: 6, order: uuidrep.Standard, gregorian: true, perSecond: uint64(gregorian.PerSecond),
		fixed: variantBits | multicast, random: anyVariant &^ multicast}
	layoutV7 = &layout{pkg: "uuidgen", version: 7, order: uuidrep.Standard, perSecond: unixPerSecond, fixed: variantBits, random: anyVariant}

	layoutV8CSharp = &layout{pkg: "uuidgen", version: 8, order: uuidrep.CSharpLegacy, perSecond: unixPerSecond, fixed: variantBits, random: anyVariant}
	layoutV8Java   = &layout{pkg: "uuidgen", version: 8, order: uuidrep.JavaLegacy, perSecond: unixPerSecond, fixed: variantBits, random: anyVariant}
)

// withNode returns the layout of version 6 of another package: with another node, and with a clock sequence that stays the
// same in an order.
func (l layout) withNode(c *idoption.Config) *layout {
	l.pkg, l.fixed, l.random, l.sequence = c.Package, variantBits|c.V6.Node, 1<<c.V6.RandomBits-1, true
	return &l
}

// layoutV8 returns the layout of version 8 for a representation.
func layoutV8(r uuidrep.Representation) (*layout, error) {
	switch r {
	case uuidrep.CSharpLegacy:
		return layoutV8CSharp, nil
	case uuidrep.JavaLegacy:
		return layoutV8Java, nil
	case uuidrep.Standard, uuidrep.PythonLegacy:
		return nil, fmt.Errorf("uuidgen: version 8 is for csharpLegacy and javaLegacy: version 7 is in order in %v", r)
	}
	return nil, fmt.Errorf("uuidgen: version 8 is for csharpLegacy and javaLegacy, not for %v", r)
}

func (l *layout) String() string {
	if l.version == 8 {
		return fmt.Sprintf("version 8 for %v", l.order)
	}
	return fmt.Sprintf("version %d", l.version)
}

// timestamp returns the timestamp of t.
func (l *layout) timestamp(t time.Time) (uint64, error) {
	if l.gregorian {
		if step, ok := gregorian.Timestamp(t); ok {
			return step, nil
		}
		return 0, fmt.Errorf("%s: %w: %v is not in 1582-10-15 to 5236-03-31, the range of %v", l.pkg, ErrTimeRange, t.UTC(), l)
	}
	// The seconds are checked first, so that the product cannot overflow.
	if s := t.Unix(); s >= 0 && s <= maxTimestamps/unixPerSecond {
		// unixPerSecond/1e9 in lowest terms is 64/15625.
		if step := uint64(s*unixPerSecond + int64(t.Nanosecond())*64/15625); step < maxTimestamps {
			return step, nil
		}
	}
	return 0, fmt.Errorf("%s: %w: %v is not in 1970 to 10889-08-02, the range of %v", l.pkg, ErrTimeRange, t.UTC(), l)
}

// timestampOf is timestamp for nanoseconds since 1970, which are in the range of all versions.
func (l *layout) timestampOf(ns uint64) uint64 {
	if l.gregorian {
		return ns/100 + gregorian.Unix
	}
	return ns/15625*64 + ns%15625*64/15625
}

// time returns the first instant of a timestamp, in UTC.
func (l *layout) time(step uint64) time.Time {
	if l.gregorian {
		return gregorian.Time(step)
	}
	// Rounded up to a nanosecond: the instant before belongs to the step before.
	return time.Unix(int64(step/unixPerSecond), int64((step%unixPerSecond*15625+63)/64)).UTC()
}

// word returns the first eight bytes, without permutation: 48 bits of the timestamp, the version,
// 12 bits.
func (l *layout) word(step uint64) uint64 {
	switch {
	case l.version == 1:
		// The least significant bits first: timestamp:32, 16, version:4, timestamp:12.
		return step<<32 | step>>32&0xffff<<16 | uint64(l.version)<<12 | step>>48
	case l.order == uuidrep.CSharpLegacy:
		// Stored: timestamp:56, version:4, timestamp:4.
		return groupsReversed(step>>4<<8 | uint64(l.version)<<4 | step&0xf)
	case l.order == uuidrep.JavaLegacy:
		// Stored: timestamp:8, version:4, timestamp:52.
		return bits.ReverseBytes64(step>>52<<56 | uint64(l.version)<<52 | step&(1<<52-1))
	}
	return step>>12<<16 | uint64(l.version)<<12 | step&0xfff
}

// groupsReversed reverses the bytes of the first three groups of a UUID, 4 and 2 and 2 bytes, as
// csharpLegacy does.
func groupsReversed(word uint64) uint64 {
	word = bits.ReverseBytes64(word)
	return word<<32 | uint64(bits.RotateLeft32(uint32(word>>32), 16))
}

// step is the inverse of word.
func (l *layout) step(word uint64) uint64 {
	switch {
	case l.version == 1:
		return word&0xfff<<48 | word>>16&0xffff<<32 | word>>32
	case l.order == uuidrep.CSharpLegacy:
		hi := groupsReversed(word)
		return hi>>8<<4 | hi&0xf
	case l.order == uuidrep.JavaLegacy:
		hi := bits.ReverseBytes64(word)
		return hi>>56<<52 | hi&(1<<52-1)
	}
	return word>>16<<12 | word&0xfff
}

// rest returns the last eight bytes, which begin with the variant, for a number that decides the
// order of ids with the same timestamp: 62 bits, or 61 in version 6.
func (l *layout) rest(n uint64) uint64 {
	switch {
	case l.gregorian:
		return variantBits | n>>40<<41 | multicast | n&(multicast-1)
	case l.order == uuidrep.JavaLegacy:
		// Stored: 56 bits, variant:2, 6 bits.
		return bits.ReverseBytes64(n>>6<<8 | 0b10<<6 | n&0x3f)
	}
	return variantBits | n
}

// put writes an id of version 6 or 7 with random bytes and the fixed bits of its page.
func (l *layout) put(u *uuid.UUID, step uint64, random []byte, fixed uint64) {
	binary.BigEndian.PutUint64(u[:8], step>>12<<16|uint64(l.version)<<12|step&0xfff)
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(random)&l.random|fixed)
}

// putV8 writes an id of version 8 with random bytes.
func (l *layout) putV8(u *uuid.UUID, step uint64, random []byte) {
	binary.BigEndian.PutUint64(u[:8], l.word(step))
	binary.BigEndian.PutUint64(u[8:], binary.BigEndian.Uint64(random)&^(0b11<<62)|l.fixed)
}

// bound returns the least or the greatest id with a timestamp in the order of the layout.
func (l *layout) bound(step uint64, upper bool) uuid.UUID {
	low := uint64(0)
	if upper {
		low = 1<<62 - 1
	}
	if l.order == uuidrep.JavaLegacy {
		low = l.rest(low)
	} else {
		low |= variantBits
	}
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], l.word(step))
	binary.BigEndian.PutUint64(u[8:], low)
	return u
}
