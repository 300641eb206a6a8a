package peabody01

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"github.com/bsonids/bsonids/uuidgen"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// bit is a field of a layout: its value and its width.
type bit struct {
	value uint64
	width int
}

// assemble puts fields side by side, most significant bit first, as the tables of the draft's
// figures do.
func assemble(t testing.TB, fields ...bit) (u uuid.UUID) {
	t.Helper()
	at := 0
	for _, f := range fields {
		for i := f.width - 1; i >= 0; i-- {
			u[at/8] |= byte(f.value>>i&1) << (7 - at%8)
			at++
		}
	}
	if at != 128 {
		t.Fatalf("the fields have %d bits", at)
	}
	return u
}

func random(width int) uint64 { return rand.Uint64() >> (64 - width) }

func randomNode(width int) uint64 { return max(1, random(width)) }

// The figures of the draft, restated bit by bit.
func TestLayouts(t *testing.T) {
	for range 2000 {
		f := V6{random(60), uint16(random(14)), randomNode(48)}
		u, err := f.UUID()
		want := assemble(t, bit{f.Timestamp >> 28, 32}, bit{f.Timestamp >> 12 & 0xFFFF, 16}, bit{6, 4},
			bit{f.Timestamp & 0xFFF, 12}, bit{2, 2}, bit{uint64(f.ClockSequence), 14}, bit{f.Node, 48})
		if err != nil || u != want {
			t.Fatalf("%+v = %v, %v, want %v", f, u, err, want)
		}
		if got, err := DecodeV6(u); err != nil || got != f {
			t.Fatalf("DecodeV6(%v) = %+v, %v, want %+v", u, got, err, f)
		}
	}
	for range 2000 {
		for _, e := range []Encoding{RoundUp, Floor, RawCount} {
			for p, layout := range map[Precision]func(V7) []bit{
				Millisecond: func(f V7) []bit {
					return []bit{{f.Seconds, 36}, {f.Subsec, 12}, {7, 4}, {uint64(f.Sequence), 12}, {2, 2}, {f.Node, 62}}
				},
				Microsecond: func(f V7) []bit {
					return []bit{{f.Seconds, 36}, {f.Subsec >> 12, 12}, {7, 4}, {f.Subsec & 0xFFF, 12}, {2, 2},
						{uint64(f.Sequence), 14}, {f.Node, 48}}
				},
				Nanosecond: func(f V7) []bit {
					return []bit{{f.Seconds, 36}, {f.Subsec >> 26, 12}, {7, 4}, {f.Subsec >> 14 & 0xFFF, 12}, {2, 2},
						{f.Subsec & 0x3FFF, 14}, {uint64(f.Sequence), 8}, {f.Node, 40}}
				},
				Second: func(f V7) []bit {
					return []bit{{f.Seconds, 36}, {uint64(f.Sequence >> 12), 12}, {7, 4}, {uint64(f.Sequence), 12}, {2, 2}, {f.Node, 62}}
				},
			} {
				w := map[Precision][3]int{Millisecond: {12, 12, 62}, Microsecond: {24, 14, 48}, Nanosecond: {38, 8, 40}, Second: {0, 24, 62}}[p]
				f := V7{p, e, random(36), random(w[0]), uint32(random(w[1])), randomNode(w[2])}
				if e == RawCount {
					f.Subsec %= map[Precision]uint64{Millisecond: 1e3, Microsecond: 1e6, Nanosecond: 1e9, Second: 1}[p]
				}
				u, err := f.UUID()
				if want := assemble(t, layout(f)...); err != nil || u != want {
					t.Fatalf("%+v = %v, %v, want %v", f, u, err, want)
				}
				if got, err := DecodeV7(u, p, e); err != nil || got != f {
					t.Fatalf("DecodeV7(%v) = %+v, %v, want %+v", u, got, err, f)
				}
			}
		}
	}
	for range 2000 {
		for size, layout := range map[int]func(V8) []bit{
			32: func(f V8) []bit {
				return []bit{{f.Timestamp, 32}, {0, 16}, {8, 4}, {uint64(f.Sequence), 12}, {2, 2}, {f.Node, 62}}
			},
			48: func(f V8) []bit {
				return []bit{{f.Timestamp, 48}, {8, 4}, {uint64(f.Sequence), 12}, {2, 2}, {f.Node, 62}}
			},
			60: func(f V8) []bit {
				return []bit{{f.Timestamp >> 12, 48}, {8, 4}, {f.Timestamp, 12}, {2, 2}, {uint64(f.Sequence), 8}, {f.Node, 54}}
			},
			64: func(f V8) []bit {
				return []bit{{f.Timestamp >> 16, 48}, {8, 4}, {f.Timestamp >> 4, 12}, {2, 2}, {uint64(f.Sequence), 8}, {f.Node, 54}}
			},
		} {
			w := map[int][2]int{32: {12, 62}, 48: {12, 62}, 60: {8, 54}, 64: {8, 54}}[size]
			f := V8{Bits: size, Timestamp: random(size), Sequence: uint32(random(w[0])), Node: randomNode(w[1])}
			u, err := f.UUID()
			if want := assemble(t, layout(f)...); err != nil || u != want {
				t.Fatalf("%+v = %v, %v, want %v", f, u, err, want)
			}
			want := f
			if size == 64 {
				want.Timestamp &^= 0xF // only the upper 60 bits are kept
			}
			if got, err := DecodeV8(u, size, 0); err != nil || got != want {
				t.Fatalf("DecodeV8(%v) = %+v, %v, want %+v", u, got, err, want)
			}
		}
	}
}

// Octets and text sort as timestamp, then sequence, do; and the bounds of a time hold what has it,
// and nothing else.
func TestOrder(t *testing.T) {
	pair := func(t *testing.T, a, b uuid.UUID, want int) {
		t.Helper()
		if got := bytes.Compare(a[:], b[:]); got != want {
			t.Fatalf("octets of %v and %v compare %d, want %d", a, b, got, want)
		}
		if got := strings.Compare(a.String(), b.String()); got != want {
			t.Fatalf("text of %v and %v compares %d, want %d", a, b, got, want)
		}
		if back, err := uuid.Parse(a.String()); err != nil || back != a {
			t.Fatalf("the text of %v parses as %v, %v", a, back, err)
		}
	}
	within := func(t *testing.T, u, low, high uuid.UUID, same bool) {
		t.Helper()
		if got := bytes.Compare(low[:], u[:]) <= 0 && bytes.Compare(u[:], high[:]) <= 0; got != same {
			t.Fatalf("%v within %v and %v is %v, want %v", u, low, high, got, same)
		}
	}
	// near returns another value of the same width, often close by.
	near := func(v uint64, width int) uint64 {
		if rand.IntN(3) == 0 {
			return random(width)
		}
		return (v + rand.Uint64N(3) - 1) & (1<<width - 1)
	}
	for range 3000 {
		a := V6{random(60), uint16(random(14)), randomNode(48)}
		b := V6{near(a.Timestamp, 60), a.ClockSequence, a.Node}
		ua, ub := uuid.Must(a.UUID()), uuid.Must(b.UUID())
		pair(t, ua, ub, cmp.Compare(a.Timestamp, b.Timestamp))
		within(t, ub, uuid.Must(minV6At(a.Time())), uuid.Must(maxV6At(a.Time())), a.Timestamp == b.Timestamp)
	}
	for range 1000 {
		for _, e := range []Encoding{RoundUp, Floor, RawCount} {
			for p, unit := range map[Precision]time.Duration{
				Millisecond: time.Millisecond, Microsecond: time.Microsecond, Nanosecond: time.Nanosecond,
				Second: time.Second,
			} {
				// Times in order make UUIDs in order, whatever the rest.
				at := time.Unix(int64(random(36)), int64(rand.Uint64N(1e9)))
				at2 := at.Add(time.Duration(rand.IntN(7)-3) * unit)
				if at2.Unix() < 0 || at2.Unix()>>36 != 0 {
					continue
				}
				var us [2]uuid.UUID
				var seqs [2]uint32
				for i, at := range []time.Time{at, at2} {
					f, err := v7At(at, p, e)
					if err != nil {
						t.Fatal(err)
					}
					f.Sequence, f.Node = uint32(random(8)), randomNode(40)
					us[i], seqs[i] = uuid.Must(f.UUID()), f.Sequence
				}
				cut, cut2 := at.Truncate(unit), at2.Truncate(unit)
				order := cut.Compare(cut2)
				if order == 0 && seqs[0] != seqs[1] {
					order = cmp.Compare(seqs[0], seqs[1])
				}
				if order != 0 {
					pair(t, us[0], us[1], order)
				}
				within(t, us[1], uuid.Must(minV7At(at, p, e)), uuid.Must(maxV7At(at, p, e)), cut.Equal(cut2))
			}
		}
	}
	for range 1000 {
		for size, seq := range map[int]int{32: 12, 48: 12, 60: 8, 64: 8} {
			a := V8{Bits: size, Timestamp: random(size), Sequence: uint32(random(seq)), Node: 1}
			b := V8{Bits: size, Timestamp: near(a.Timestamp, size), Sequence: uint32(random(seq)), Node: 1}
			if size == 64 {
				a.Timestamp, b.Timestamp = a.Timestamp&^0xF, b.Timestamp&^0xF
			}
			pair(t, uuid.Must(a.UUID()), uuid.Must(b.UUID()),
				cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Sequence, b.Sequence)))
			within(t, uuid.Must(b.UUID()), uuid.Must(a.least()), uuid.Must(a.greatest()),
				a.Timestamp == b.Timestamp)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	v4 := uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8") // RFC 9562, appendix A.3
	decode := func(s string, f func(uuid.UUID) error) error { return f(uuid.MustParse(s)) }
	v6 := func(u uuid.UUID) error { _, err := DecodeV6(u); return err }
	ms := func(u uuid.UUID) error { _, err := DecodeV7(u, Millisecond, RawCount); return err }
	v832 := func(u uuid.UUID) error { _, err := DecodeV8(u, 32, 0); return err }
	timeOf := func(u uuid.UUID) error { _, err := Time(u); return err }
	put := func(f interface{ UUID() (uuid.UUID, error) }) error { _, err := f.UUID(); return err }
	for _, c := range []struct {
		name    string
		err     error
		version int
		field   string
		value   uint64
	}{
		{"version 4 as 6", v6(v4), 6, "ver", 4},
		{"version 4 as 7", ms(v4), 7, "ver", 4},
		{"version 4 as 8", v832(v4), 8, "ver", 4},
		{"version 4 as a time", timeOf(v4), 7, "ver", 4},
		{"version 8 as a time", decode("1645f70f-066f-8a82-8413-f05792814889", timeOf), 7, "ver", 8},
		{"variant of NCS", decode("1eb22fe4-3f0c-62b1-788c-8dc55231702f", v6), 6, "var", 1},
		{"variant of Microsoft", decode("1eb22fe4-3f0c-62b1-c88c-8dc55231702f", timeOf), 6, "var", 3},
		{"a whole second, raw", decode("0621537e-e3e8-7000-8000-000000000001", ms), 7, "subsec", 1000},
		{"32 bits, more used", decode("0621537e-0001-8000-8000-000000000001", v832), 8, "timestamp_48", 1},
		{"timestamp too wide", put(V6{Timestamp: 1 << 60, Node: 1}), 6, "time_high|time_mid|time_low", 1 << 60},
		{"clock sequence too wide", put(V6{ClockSequence: 1 << 14, Node: 1}), 6, "clock_seq", 1 << 14},
		{"node too wide", put(V6{Node: 1 << 48}), 6, "node", 1 << 48},
		{"node zero", put(V6{}), 6, "node", 0},
		{"seconds too wide", put(V7{Seconds: 1 << 36, Node: 1}), 7, "unixts", 1 << 36},
		{"sub-seconds too wide", put(V7{Subsec: 1 << 12, Node: 1}), 7, "subsec", 1 << 12},
		{"raw count too high", put(V7{Precision: Nanosecond, Encoding: RawCount, Subsec: 1e9, Node: 1}), 7, "subsec", 1e9},
		{"sequence too wide", put(V7{Precision: Nanosecond, Sequence: 1 << 8, Node: 1}), 7, "seq", 1 << 8},
		{"node too wide", put(V7{Precision: Microsecond, Node: 1 << 48}), 7, "node", 1 << 48},
		{"node zero", put(V7{}), 7, "node", 0},
		{"timestamp too wide", put(V8{Bits: 48, Timestamp: 1 << 48, Node: 1}), 8, "timestamp", 1 << 48},
		{"sequence too wide", put(V8{Bits: 60, Sequence: 1 << 8, Node: 1}), 8, "seq", 1 << 8},
		{"node too wide", put(V8{Bits: 60, Node: 1 << 54}), 8, "node", 1 << 54},
		{"node zero", put(V8{Bits: 32}), 8, "node", 0},
		{"bound too wide", func() error { _, err := V8{Bits: 32, Timestamp: 1 << 32}.greatest(); return err }(), 8, "timestamp", 1 << 32},
	} {
		var e *uuidgen.FieldError
		if !errors.As(c.err, &e) || e.Format != fmt.Sprintf("peabody01: version %d", c.version) || e.Field != c.field || e.Value != c.value {
			t.Errorf("%s: %v, want version %d, field %s = %#x", c.name, c.err, c.version, c.field, c.value)
		} else if msg := e.Error(); !strings.HasPrefix(msg, "peabody01: ") || !strings.Contains(msg, c.field) {
			t.Errorf("%s: the message does not name the field: %q", c.name, msg)
		}
	}
	for name, err := range map[string]error{
		"a precision that is none": put(V7{Precision: 4, Node: 1}),
		"an encoding that is none": put(V7{Encoding: 3, Node: 1}),
		"a size that is none":      put(V8{Node: 1}),
		"a size too large":         put(V8{Bits: 99, Node: 1}),
		"a sequence too short":     put(V8{Bits: 48, SequenceBits: 11, Node: 1}),
		"another too short":        put(V8{Bits: 49, SequenceBits: 7, Node: 1}),
		"a negative sequence":      put(V8{Bits: 49, SequenceBits: -1, Node: 1}),
		"a sequence too long":      put(V8{Bits: 48, SequenceBits: 33, Node: 1}),
		"no room for the sequence": put(V8{Bits: 98, SequenceBits: 9, Node: 1}),
		"decoding with such a one": func() error { _, err := DecodeV8(v4, 0, 0); return err }(),
		"a bound with such a one":  func() error { _, err := V8{Bits: -1}.least(); return err }(),
		"decoding at no precision": func() error {
			_, err := DecodeV7(uuid.MustParse("0621537e-e1f8-7000-8000-000000000001"), 9, RoundUp)
			return err
		}(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "peabody01: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestMachineID(t *testing.T) {
	for _, c := range []struct {
		name string
		f    interface{ MachineID(int) uint64 }
		bits int
		want uint64
	}{
		{"v6", V6{Node: 0xABCD_0000_0001}, 16, 0xABCD},
		{"v7 ms", V7{Node: 0b101 << 59}, 3, 0b101},
		{"v7 µs", V7{Precision: Microsecond, Node: 0xAB << 40}, 8, 0xAB},
		{"v7 ns", V7{Precision: Nanosecond, Node: 0xAB << 32}, 8, 0xAB},
		{"v7 of no precision", V7{Precision: 7, Node: 1}, 8, 0},
		{"v8 of 48 bits", V8{Bits: 48, Node: 1 << 61}, 1, 1},
		{"v8 of 64 bits", V8{Bits: 64, Node: 0x3FF << 44}, 10, 0x3FF},
		{"v8 of no size", V8{Node: 1}, 10, 0},
		{"the whole node", V6{Node: 0xABCD}, 48, 0xABCD},
		{"more than the node", V6{Node: 0xABCD}, 49, 0},
		{"none", V6{Node: 0xABCD}, 0, 0},
		{"less than none", V6{Node: 0xABCD}, -1, 0},
	} {
		if got := c.f.MachineID(c.bits); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestConstantNames(t *testing.T) {
	for _, c := range []struct {
		got  interface{ String() string }
		want string
	}{
		{Microsecond, "Microsecond"}, {Precision(9), "Precision(9)"}, {RawCount, "RawCount"}, {Encoding(9), "Encoding(9)"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
