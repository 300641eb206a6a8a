package peabody01

import (
	"fmt"

	"github.com/google/uuid"
)

// V8 is the fields of a UUID of version 8, in the layout that the timestamp's size gives it. It is
// a plain value, safe to copy.
//
//	bits       0–31          32–47         48–51  52–63         64–65  66–127
//	1 to 48    timestamp:32  timestamp:16  ver:4  seq:12        var:2  seq node
//	49 to 60   timestamp:32  timestamp:16  ver:4  timestamp:12  var:2  seq node
//	61 to 64   as 60 bits, which are the upper ones of the timestamp
//	65 to 98   as 60 bits, and the others after var
//
// A timestamp that does not fill its fields has zeros after it. The sequence has 12 bits beside a
// timestamp of up to 48 bits, and 8 bits beside a longer one; up to 32 bits, 20 for instance, if
// SequenceBits says so. What is left is the node. A node of 48 bits or more is recommended, and one
// of 16 bits is the least.
//
// What a timestamp counts is the maker's choice: see [Clock].
//
// It is section 4.5 of the draft, figure 6; bits 66–73 are its seq_or_node.
type V8 struct {
	Bits          int    // size of the timestamp: 1 to 98
	SequenceBits  int    // size of the sequence: at most 32; zero means 12 or 8
	TimestampHigh uint64 // the bits of a timestamp above 64
	Timestamp     uint64 // of 61 to 64 bits, those below the upper 60 are lost: they are ignored, and decode as zero
	Sequence      uint32
	Node          uint64 // random, an optional machine id on top, never zero
}

const (
	maxTimestampV8 = 98
	maxSequenceV8  = 32
)

// widths is a layout of version 8.
type widths struct {
	sequence int // of the sequence
	low      int // of its part in bits 52–63: 12 or none
	extra    int // of the part of the timestamp after var
	lost     int // bits of the timestamp that a UUID does not hold
	node     int
}

func widthsV8(size, sequence int) (widths, error) {
	w := widths{sequence: sequence}
	least := 8
	switch {
	case size < 1 || size > maxTimestampV8:
		return w, fmt.Errorf("peabody01: a timestamp of version 8 has 1 to %d bits, not %d", maxTimestampV8, size)
	case size <= 48:
		least, w.low = 12, 12
	case size > 64:
		w.extra = size - 60
	case size > 60:
		w.lost = size - 60
	}
	if sequence == 0 {
		w.sequence = least
	}
	w.node = restBits - w.extra - (w.sequence - w.low)
	if w.sequence < least || w.sequence > maxSequenceV8 || w.node < minRandomBits {
		return w, fmt.Errorf("peabody01: a sequence of %d bits beside a timestamp of %d bits: want %d to %d",
			sequence, size, least, min(maxSequenceV8, restBits-w.extra+w.low-minRandomBits))
	}
	return w, nil
}

// MachineID returns the machine id in the top bits of the node, bits wide, from 1 to the node's
// width; another width gives zero. Only the maker of a UUID knows if there is one.
func (f V8) MachineID(bits int) uint64 {
	w, err := widthsV8(f.Bits, f.SequenceBits)
	if err != nil {
		return 0
	}
	return machineID(f.Node, w.node, bits)
}

// UUID puts the fields together. A field wider than its bits, and a node of zero, is a
// [*uuidgen.FieldError]; sizes that the layout does not allow are an error.
func (f V8) UUID() (uuid.UUID, error) {
	w, err := f.check()
	if err != nil {
		return uuid.Nil, err
	}
	if err := nodeNotZero(8, f.Node); err != nil {
		return uuid.Nil, err
	}
	return f.join(w), nil
}

// least returns the lowest UUID with the layout and timestamp of f, for queries by time. It is not
// one to store: its node is zero. The errors are those of [V8.UUID], except that for the node.
func (f V8) least() (uuid.UUID, error) {
	f.Sequence, f.Node = 0, 0
	w, err := f.check()
	if err != nil {
		return uuid.Nil, err
	}
	return f.join(w), nil
}

// greatest returns the highest UUID, as least returns the lowest.
func (f V8) greatest() (uuid.UUID, error) {
	f.Sequence, f.Node = 0, 0
	w, err := f.check()
	if err != nil {
		return uuid.Nil, err
	}
	f.Sequence, f.Node = uint32(1<<w.sequence-1), 1<<w.node-1
	return f.join(w), nil
}

func (f V8) check() (widths, error) {
	w, err := widthsV8(f.Bits, f.SequenceBits)
	if err != nil {
		return w, err
	}
	for _, err := range [...]error{
		fits(8, "timestamp", f.TimestampHigh, max(0, f.Bits-64)),
		fits(8, "timestamp", f.Timestamp, min(64, f.Bits)),
		fits(8, "seq", uint64(f.Sequence), w.sequence),
		fits(8, "node", f.Node, w.node),
	} {
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

func (f V8) join(w widths) uuid.UUID {
	var top uint64 // the 60 bits before var
	switch {
	case w.extra > 0:
		top = f.TimestampHigh<<(64-w.extra) | f.Timestamp>>w.extra
	case w.lost > 0:
		top = f.Timestamp >> w.lost
	default:
		top = f.Timestamp << (60 - f.Bits)
	}
	seq, after := uint64(f.Sequence), w.sequence-w.low
	if w.low > 0 {
		top |= seq >> after
	}
	rest := f.Timestamp&(1<<w.extra-1)<<(after+w.node) | seq&(1<<after-1)<<w.node | f.Node
	return join(8, top>>12, top&0xFFF, rest)
}

// DecodeV8 returns the fields of u, which was made with a timestamp and a sequence of those sizes;
// a sequence of zero bits means 12 or 8. The value does not tell the sizes. Another version or
// variant, and bits after the timestamp that are not zero, is a [*uuidgen.FieldError]; sizes that the
// layout does not allow are an error. A node of zero, which the draft forbids to make, is read. The
// instant is [Clock.Time] of the timestamp.
func DecodeV8(u uuid.UUID, size, sequence int) (V8, error) {
	w, err := widthsV8(size, sequence)
	if err != nil {
		return V8{}, err
	}
	top48, low12, rest, err := split(u, 8)
	if err != nil {
		return V8{}, err
	}
	f := V8{Bits: size, SequenceBits: sequence, Node: rest & (1<<w.node - 1)}
	after := w.sequence - w.low
	seq := rest >> w.node & (1<<after - 1)
	top := top48<<12 | low12
	if w.low > 0 {
		seq |= low12 << after
		top &^= 0xFFF
	}
	f.Sequence = uint32(seq)
	switch {
	case w.extra > 0:
		f.Timestamp = top<<w.extra | rest>>(after+w.node)
		f.TimestampHigh = top >> (64 - w.extra)
	case w.lost > 0:
		f.Timestamp = top << w.lost
	default:
		f.Timestamp = top >> (60 - size)
		if unused := top & (1<<(60-size) - 1); unused != 0 {
			field := "time_or_seq"
			if w.low > 0 {
				field, unused = "timestamp_48", unused>>12
			}
			return V8{}, fieldError(8, field, unused, fmt.Sprintf("zeros after a timestamp of %d bits", size))
		}
	}
	return f, nil
}
