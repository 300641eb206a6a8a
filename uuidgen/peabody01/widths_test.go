package peabody01

import (
	"bytes"
	"errors"
	"github.com/bsonids/bsonids/uuidgen"
	"testing"

	"github.com/google/uuid"
)

// Every size of timestamp and sequence in version 8: the timestamp from bit 0 on and zeros after
// it, around the version and the variant, with the sequence after it, and the node.
func TestWidthsV8(t *testing.T) {
	for size := 1; size <= 98; size++ {
		for _, sequence := range []int{0, 8, 12, 13, 20, 32} {
			least := 8
			if size <= 48 {
				least = 12
			}
			q := max(sequence, least)
			if sequence != 0 && sequence < least || size > 64 && size-60+q > 62-16 {
				continue
			}
			f := V8{Bits: size, SequenceBits: sequence}
			if size > 64 {
				f.TimestampHigh = random(size - 64)
			}
			f.Timestamp, f.Sequence = random(min(size, 64)), uint32(random(q))
			var stamp []bit // one bit each, most significant first
			for i := size - 1; i >= 0; i-- {
				if i >= 64 {
					stamp = append(stamp, bit{f.TimestampHigh >> (i - 64), 1})
				} else {
					stamp = append(stamp, bit{f.Timestamp >> i, 1})
				}
			}
			var fields []bit
			for i := range 48 {
				if i < size {
					fields = append(fields, stamp[i])
				} else {
					fields = append(fields, bit{0, 1})
				}
			}
			fields = append(fields, bit{8, 4})
			node := 62
			if size <= 48 {
				node -= q - 12
				f.Node = randomNode(node)
				fields = append(fields, bit{uint64(f.Sequence) >> (q - 12), 12}, bit{2, 2}, bit{uint64(f.Sequence), q - 12})
			} else {
				for i := 48; i < 60; i++ {
					if i < size {
						fields = append(fields, stamp[i])
					} else {
						fields = append(fields, bit{0, 1})
					}
				}
				fields = append(fields, bit{2, 2})
				node -= q
				if size > 64 {
					fields = append(fields, stamp[60:]...)
					node -= size - 60
				}
				f.Node = randomNode(node)
				fields = append(fields, bit{uint64(f.Sequence), q})
			}
			fields = append(fields, bit{f.Node, node})

			u, err := f.UUID()
			if want := assemble(t, fields...); err != nil || u != want {
				t.Fatalf("%+v = %v, %v, want %v", f, u, err, want)
			}
			want := f
			if size > 60 && size <= 64 {
				want.Timestamp = f.Timestamp >> (size - 60) << (size - 60)
			}
			if got, err := DecodeV8(u, size, sequence); err != nil || got != want {
				t.Fatalf("DecodeV8(%v) = %+v, %v, want %+v", u, got, err, want)
			}
			low, high := uuid.Must(f.least()), uuid.Must(f.greatest())
			if bytes.Compare(low[:], u[:]) > 0 || bytes.Compare(u[:], high[:]) > 0 {
				t.Fatalf("%v is not within %v and %v", u, low, high)
			}
			if before, err := DecodeV8(low, size, sequence); err != nil || before.Timestamp != want.Timestamp ||
				before.TimestampHigh != want.TimestampHigh {
				t.Fatalf("the lower bound of %+v is %+v, %v", want, before, err)
			}
			if after, err := DecodeV8(high, size, sequence); err != nil || after.Timestamp != want.Timestamp ||
				after.TimestampHigh != want.TimestampHigh {
				t.Fatalf("the upper bound of %+v is %+v, %v", want, after, err)
			}
			// A bit after the timestamp.
			if size < 60 && size != 48 {
				u[size/8] |= 1 << (7 - size%8)
				if size > 48 {
					at := size + 4
					u = low
					u[at/8] |= 1 << (7 - at%8)
				}
				var e *uuidgen.FieldError
				if _, err := DecodeV8(u, size, sequence); !errors.As(err, &e) {
					t.Fatalf("%v as %d bits: %v", u, size, err)
				}
			}
		}
	}
	// The draft's own example: 36 bits fill timestamp_32 and 4 bits of timestamp_48.
	u, err := V8{Bits: 36, Timestamp: 0x123456789, Sequence: 0xabc, Node: 1}.UUID()
	if err != nil || u.String() != "12345678-9000-8abc-8000-000000000001" {
		t.Errorf("36 bits: %v, %v", u, err)
	}
	// 20 bits of sequence: time_or_seq and seq_or_node.
	u, err = V8{Bits: 48, SequenceBits: 20, Timestamp: 0x123456789abc, Sequence: 0xfedcb, Node: 1}.UUID()
	if err != nil || u.String() != "12345678-9abc-8fed-b2c0-000000000001" {
		t.Errorf("20 bits of sequence: %v, %v", u, err)
	}
}
