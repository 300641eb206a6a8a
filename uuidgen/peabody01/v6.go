package peabody01

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/uuidgen"
)

const (
	v6TimeBits     = gregorian.Bits
	v6SequenceBits = 14
	v6NodeBits     = 48
)

// V6 is the fields of a UUID of version 6: those of version 1, with the bits of the timestamp in
// order, so that the bytes sort by time. It is a plain value, safe to copy.
//
//	bytes  0–3    4–5            6–7              8–9                    10–15
//	       time_high:32 time_mid:16  ver:4 time_low:12  var:2 clock_seq:14  node:48
//
// It is section 4.3 of the draft, figure 1.
type V6 struct {
	Timestamp     uint64 // 60 bits: 100 ns units since 1582-10-15T00:00:00Z
	ClockSequence uint16 // 14 bits
	Node          uint64 // 48 bits: random in UUIDs of the draft; may be a MAC address in converted ones
}

// v6At returns the fields of a UUID made at t: its timestamp, in whole units of 100 ns, with a
// clock sequence and a node of zero. An instant before 1582-10-15T00:00:00Z or after
// 5236-03-31T21:21:00Z is [uuidgen.ErrTimeRange].
func v6At(t time.Time) (V6, error) {
	timestamp, ok := gregorian.Timestamp(t)
	if !ok {
		return V6{}, fmt.Errorf("peabody01: %w: version 6 at %v", uuidgen.ErrTimeRange, t)
	}
	return V6{Timestamp: timestamp}, nil
}

// Time returns the instant of the timestamp, in UTC.
func (f V6) Time() time.Time {
	return gregorian.Time(f.Timestamp & (1<<v6TimeBits - 1))
}

// MachineID returns the machine id in the top bits of the node, bits wide, from 1 to 48; another
// width gives zero. Only the maker of a UUID knows if there is one.
func (f V6) MachineID(bits int) uint64 { return machineID(f.Node, v6NodeBits, bits) }

// UUID puts the fields together. A field wider than its bits, and a node of zero, is a
// [*uuidgen.FieldError].
func (f V6) UUID() (uuid.UUID, error) {
	for _, err := range [...]error{
		fits(6, "time_high|time_mid|time_low", f.Timestamp, v6TimeBits),
		fits(6, "clock_seq", uint64(f.ClockSequence), v6SequenceBits),
		fits(6, "node", f.Node, v6NodeBits),
		nodeNotZero(6, f.Node),
	} {
		if err != nil {
			return uuid.Nil, err
		}
	}
	return f.join(), nil
}

func (f V6) join() uuid.UUID {
	return join(6, f.Timestamp>>12, f.Timestamp&0xFFF, uint64(f.ClockSequence)<<v6NodeBits|f.Node)
}

func nodeNotZero(version int, node uint64) error {
	if node == 0 {
		return fieldError(version, "node", 0, "a node that is not zero")
	}
	return nil
}

// DecodeV6 returns the fields of u. Another version or variant is a [*uuidgen.FieldError]. A node of zero,
// which the draft forbids to make, is read.
func DecodeV6(u uuid.UUID) (V6, error) {
	top, low, rest, err := split(u, 6)
	if err != nil {
		return V6{}, err
	}
	return V6{
		Timestamp:     top<<12 | low,
		ClockSequence: uint16(rest >> v6NodeBits),
		Node:          rest & (1<<v6NodeBits - 1),
	}, nil
}

// V1ToV6 returns the version 6 of a UUID of version 1: the same timestamp, clock sequence and node,
// in the order that sorts by time. The node stays the same and may be a MAC address, although the
// draft wants a random node in new UUIDs. Another version or variant is a [*uuidgen.FieldError].
//
// It is the table at the end of section 4.3 of the draft.
func V1ToV6(u uuid.UUID) (uuid.UUID, error) {
	top, high, rest, err := split(u, 1)
	if err != nil {
		return uuid.Nil, err
	}
	low, mid := top>>16, top&0xFFFF
	timestamp := high<<48 | mid<<32 | low
	return join(6, timestamp>>12, timestamp&0xFFF, rest), nil
}

// V6ToV1 returns the version 1 of a UUID of version 6; it is the inverse of [V1ToV6], with the same
// errors.
func V6ToV1(u uuid.UUID) (uuid.UUID, error) {
	top, low12, rest, err := split(u, 6)
	if err != nil {
		return uuid.Nil, err
	}
	timestamp := top<<12 | low12
	low, mid, high := timestamp&0xFFFFFFFF, timestamp>>32&0xFFFF, timestamp>>48
	return join(1, low<<16|mid, high, rest), nil
}
