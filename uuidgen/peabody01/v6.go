package peabody01

import (
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
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
