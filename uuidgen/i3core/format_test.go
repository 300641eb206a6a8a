package i3core

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	must(t, err)
	return at
}

func memory(t testing.TB, s string) (m [16]byte) {
	t.Helper()
	if n, err := hex.Decode(m[:], []byte(s)); err != nil || n != 16 {
		t.Fatalf("memory %q: %d octets, %v", s, n, err)
	}
	return m
}

// fields is a format's struct.
type fields interface{ UUID() (uuid.UUID, error) }

func TestMemory(t *testing.T) {
	// The UUID of the MongoDB specification's prose tests, as csharpLegacy.
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	m := memory(t, "33221100554477668899aabbccddeeff")
	if got := Memory(u); got != m {
		t.Errorf("Memory = %x, want %x", got, m)
	}
	if got := FromMemory(m); got != u {
		t.Errorf("FromMemory = %v, want %v", got, u)
	}
	if !IsNull(FromMemory([16]byte{})) || !IsNull(uuid.Nil) || IsNull(u) || IsNull(FromMemory([16]byte{15: 1})) {
		t.Error("IsNull is not: all bits are zero")
	}
	if got := uuid.Nil.String(); got != "00000000-0000-0000-0000-000000000000" {
		t.Errorf("NULL as text: %s", got)
	}
}

// Each vector is fields, the text, and where known the memory.
func TestVectors(t *testing.T) {
	sequence, err := Microseconds(instant(t, "2020-01-01T00:00:00Z"))
	must(t, err)
	for _, c := range []struct {
		name   string
		fields fields
		text   string
		memory string
		parse  func(string) (fields, error)
	}{
		{"unresolved interaction", Interaction{Number: 1234567890},
			"00000000-0000-c000-8000-001234567890", "000000000000 00c0 8000 001234567890",
			func(s string) (fields, error) { return ParseInteraction(s) }},
		{"notifier", Notifier{sequence, 0xAB, 0x1234, [6]byte{0x02, 0x42, 0xac, 0x12, 0x00, 0x02}},
			"86c26000-3e07-eab2-9234-0242ac120002", "0060c286073eb2ea92340242ac120002",
			func(s string) (fields, error) { return ParseNotifier(s) }},
		{"sequential", Sequential{0x01020304050607, 0xD, DBMSBinary, 0xABC, 0x11223344, 0x5566},
			"04030201-0605-d007-8abc-112233445566", "01020304050607d08abc112233445566",
			func(s string) (fields, error) { return ParseSequential(s, 0xD) }},
		// RFC 9562, appendix A: v1, v4 and v3.
		{"time-based", TimeBased{0x1EC9414C232AB00, 0x33C8, [6]byte{0x9F, 0x6B, 0xDE, 0xCE, 0xD8, 0x46}},
			"c232ab00-9414-11ec-b3c8-9f6bdeced846", "00ab32c2 1494 ec11 b3c8 9f6bdeced846",
			func(s string) (fields, error) { return ParseTimeBased(s) }},
		{"random", Random{0x32, 0x052d1919108f7, 0x1bac, 0xf847db4148a8},
			"919108f7-52d1-4320-9bac-f847db4148a8", "f7089191 d152 2043 9bac f847db4148a8",
			func(s string) (fields, error) { return ParseRandom(s) }},
		{"name-based", NewNameBased(uuid.NameSpaceDNS, []byte("www.example.com")),
			"5df41881-3aed-3515-88a7-2f4a814cf09e", "8118f45d ed3a 1535 88a7 2f4a814cf09e",
			func(s string) (fields, error) { return ParseNameBased(s) }},
	} {
		u, err := c.fields.UUID()
		if err != nil || u.String() != c.text {
			t.Errorf("%s: %v, %v, want %s", c.name, u, err, c.text)
		}
		if got, want := Memory(u), memory(t, strings.ReplaceAll(c.memory, " ", "")); got != want {
			t.Errorf("%s: memory %x, want %x", c.name, got, want)
		}
		for _, text := range []string{c.text, strings.ToUpper(c.text)} {
			if got, err := c.parse(text); err != nil || got != c.fields {
				t.Errorf("%s: parsed as %+v, %v, want %+v", c.name, got, err, c.fields)
			}
		}
	}
	if at := (TimeBased{Timestamp: 0x1EC9414C232AB00}).Time(); !at.Equal(instant(t, "2022-02-22T19:22:22Z")) {
		t.Errorf("time-based vector at %v", at)
	}
	if at := (Notifier{InstanceSequence: sequence}).Time(); !at.Equal(instant(t, "2020-01-01T00:00:00Z")) {
		t.Errorf("notifier vector at %v", at)
	}
}

func random(width int) uint64 { return rand.Uint64() >> (64 - width) }

func randomNode() (n [6]byte) {
	for i := range n {
		n[i] = byte(rand.Uint32())
	}
	return n
}

// The tables of the document, octet by octet of memory.
func TestLayouts(t *testing.T) {
	check := func(t *testing.T, f, back fields, err error, u uuid.UUID, want []byte) {
		t.Helper()
		if m := Memory(u); !bytes.Equal(m[:], want) {
			t.Fatalf("%+v: memory %x, want %x", f, m, want)
		}
		if err != nil || back != f {
			t.Fatalf("%v decodes to %+v, %v, want %+v", u, back, err, f)
		}
	}
	le := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:6] }
	be := binary.BigEndian
	for range 3000 {
		node := randomNode()
		custom, r52, r14, r48 := byte(rand.Uint32()), random(52), uint16(random(14)), random(48)

		tb := TimeBased{random(60), r14, node}
		u, err := tb.UUID()
		must(t, err)
		want := append(le(tb.Timestamp), byte(tb.Timestamp>>48), 0x10|byte(tb.Timestamp>>56))
		want = append(be.AppendUint16(want, 0x8000|r14), node[:]...)
		gotTB, err := DecodeTimeBased(u)
		check(t, tb, gotTB, err, u, want)
		// google/uuid knows version 1, and agrees on what it holds.
		if uint64(u.Time()) != tb.Timestamp || u.ClockSequence() != int(r14) || !bytes.Equal(u.NodeID(), node[:]) {
			t.Fatalf("%+v is %v", tb, u)
		}

		// custom_low in bits 4–7 of octet 6, custom_high in bits 0–3 of octet 7.
		low, high := custom&0xF, custom>>4
		rd := Random{custom, r52, r14, r48}
		u, err = rd.UUID()
		must(t, err)
		want = append(le(r52), low<<4|byte(r52>>48), 0x40|high)
		want = append(be.AppendUint16(want, 0x8000|r14), be.AppendUint64(nil, r48)[2:]...)
		gotRandom, err := DecodeRandom(u)
		check(t, rd, gotRandom, err, u, want)

		nt := Notifier{r52, custom, r14, node}
		u, err = nt.UUID()
		must(t, err)
		want = append(le(r52), low<<4|byte(r52>>48), 0xE0|high)
		want = append(be.AppendUint16(want, 0x8000|r14), node[:]...)
		gotNotifier, err := DecodeNotifier(u)
		check(t, nt, gotNotifier, err, u, want)

		sq := Sequential{random(56), byte(random(4)), DBMS(random(1)), uint16(random(12)), rand.Uint32(), uint16(random(16))}
		u, err = sq.UUID()
		must(t, err)
		want = be.AppendUint64(nil, sq.Timestamp)[1:]
		want = append(want, sq.Version<<4, 0x80|byte(sq.DBMS)<<4|byte(sq.Random1>>8), byte(sq.Random1))
		want = be.AppendUint16(be.AppendUint32(want, sq.CounterHi), sq.CounterLo)
		gotSequential, err := DecodeSequential(u, sq.Version)
		check(t, sq, gotSequential, err, u, want)

		ia := Interaction{random(60), r14, custom, rand.Uint64N(1e10)}
		u, err = ia.UUID()
		must(t, err)
		want = append(le(ia.Random60), byte(ia.Random60>>48), 0xC0|byte(ia.Random60>>56))
		want = append(be.AppendUint16(want, 0x8000|r14), custom)
		digits, err := hex.DecodeString(pad(ia.Number)) // the decimal digits, a nibble each
		must(t, err)
		gotInteraction, err := DecodeInteraction(u)
		check(t, ia, gotInteraction, err, u, append(want, digits...))

		nb := NewNameBased(uuid.UUID(Memory(u)), node[:])
		u2, err := nb.UUID()
		must(t, err)
		if want := uuid.NewMD5(uuid.UUID(Memory(u)), node[:]); u2 != want {
			t.Fatalf("name-based %v, google/uuid has %v", u2, want)
		}
		gotName, err := DecodeNameBased(u2)
		m := Memory(u2)
		check(t, nb, gotName, err, u2, m[:])
		if !gotName.Matches(uuid.UUID(Memory(u)), node[:]) || gotName.Matches(u, node[:]) || gotName.Matches(uuid.UUID(Memory(u)), node[:5]) {
			t.Fatalf("%+v does not match its own name alone", gotName)
		}
	}
}

func pad(n uint64) string {
	s := []byte("0000000000")
	for i := len(s) - 1; n > 0; i, n = i-1, n/10 {
		s[i] = '0' + byte(n%10)
	}
	return string(s)
}

// Bits under version and variant do not count in a hash that someone else made.
func TestNameBasedHash(t *testing.T) {
	f := NameBased{}
	for i := range f.Hash {
		f.Hash[i] = 0xFF
	}
	u, err := f.UUID()
	if err != nil || u.String() != "ffffffff-ffff-3fff-bfff-ffffffffffff" {
		t.Errorf("%v, %v", u, err)
	}
}

// Memory sorts by timestamp, then by counter, for one maker; the bounds of a time hold what has it, and nothing else.
func TestSequentialOrder(t *testing.T) {
	compare := func(a, b uuid.UUID) int {
		ma, mb := Memory(a), Memory(b)
		return bytes.Compare(ma[:], mb[:])
	}
	textDiffers := false
	for range 5000 {
		at := instant(t, "2000-01-01T00:00:00Z").Add(time.Duration(rand.Int64N(50 * 365 * 24 * int64(time.Hour))))
		at2 := at.Add(time.Duration(rand.IntN(5)-2) * 999 * time.Nanosecond)
		a, err := SequentialAt(at)
		must(t, err)
		if rand.IntN(2) == 0 {
			at2 = at.Add(time.Duration(rand.Int64N(int64(time.Hour))))
		}
		if at2.Before(instant(t, "2000-01-01T00:00:00Z")) {
			continue
		}
		b, err := SequentialAt(at2)
		must(t, err)
		a.Version, b.Version = 0xD, 0xD
		a.Random1, b.Random1 = 0xABC, 0xABC
		a.CounterHi, a.CounterLo = uint32(random(2)), uint16(random(16))
		b.CounterHi, b.CounterLo = uint32(random(2)), uint16(random(16))
		ua, err := a.UUID()
		must(t, err)
		ub, err := b.UUID()
		must(t, err)
		cut, cut2 := at.Truncate(time.Microsecond), at2.Truncate(time.Microsecond)
		if !a.Time().Equal(cut) {
			t.Fatalf("made at %v, holds %v", at, a.Time())
		}
		want := cmp.Or(cut.Compare(cut2), cmp.Compare(a.CounterHi, b.CounterHi), cmp.Compare(a.CounterLo, b.CounterLo))
		if got := compare(ua, ub); got != want {
			t.Fatalf("%+v and %+v compare %d, want %d", a, b, got, want)
		}
		textDiffers = textDiffers || strings.Compare(ua.String(), ub.String()) != want
		low, err := MinSequentialAt(at)
		must(t, err)
		high, err := MaxSequentialAt(at)
		must(t, err)
		if got := compare(low, ub) <= 0 && compare(ub, high) <= 0; got != cut.Equal(cut2) {
			t.Fatalf("%+v within the bounds of %v: %v", b, at, got)
		}
	}
	if !textDiffers {
		t.Error("text sorts as memory does; the documentation says it does not")
	}
}

func TestTimeRange(t *testing.T) {
	tb := func(at time.Time) error { _, err := TimeBasedAt(at, 0, [6]byte{}); return err }
	sq := func(at time.Time) error { _, err := SequentialAt(at); return err }
	nt := func(at time.Time) error {
		g, err := NewNotifierGenerator([6]byte{}, 0, WithClock(func() time.Time { return at }))
		if (g == nil) != (err != nil) {
			t.Errorf("generator %v, error %v", g, err)
		}
		return err
	}
	for _, c := range []struct {
		name        string
		f           func(time.Time) error
		first, last time.Time
	}{
		{"time-based", tb, instant(t, "1582-10-15T00:00:00Z"), instant(t, "5236-03-31T21:21:00.684697599Z")}, // 2^60 × 100 ns
		{"sequential", sq, instant(t, "2000-01-01T00:00:00Z"), instant(t, "4283-05-31T22:20:37.927935999Z")}, // 2^56 µs
		{"notifier", nt, instant(t, "2000-01-01T00:00:00Z"), instant(t, "2142-09-17T23:53:47.370495999Z")},   // 2^52 µs
	} {
		for _, at := range []time.Time{c.first, c.last} {
			if err := c.f(at); err != nil {
				t.Errorf("%s at %v: %v", c.name, at, err)
			}
		}
		for _, at := range []time.Time{
			c.first.Add(-1), c.last.Add(1), {}, time.Unix(1<<62, 0), time.Unix(-1<<62, 0), time.Unix(1<<63-1, 0), time.Unix(-1<<63, 0),
		} {
			if err := c.f(at); !errors.Is(err, ErrTimeRange) {
				t.Errorf("%s at %v: error %v, want ErrTimeRange", c.name, at, err)
			}
		}
	}
	for _, s := range []string{"1582-10-15T00:00:00Z", "1969-12-31T23:59:59.9999999Z", "2022-02-22T19:22:22.1234567Z"} {
		f, err := TimeBasedAt(instant(t, s), 0x33C8, [6]byte{1, 2, 3, 4, 5, 6})
		if want := (TimeBased{f.Timestamp, 0x33C8, [6]byte{1, 2, 3, 4, 5, 6}}); err != nil || f != want || !f.Time().Equal(instant(t, s)) {
			t.Errorf("time-based at %s: %+v at %v, %v", s, f, f.Time(), err)
		}
	}
	for _, f := range []func(time.Time) (uuid.UUID, error){MinSequentialAt, MaxSequentialAt} {
		if _, err := f(time.Unix(0, 0)); !errors.Is(err, ErrTimeRange) {
			t.Errorf("a bound before 2000: %v, want ErrTimeRange", err)
		}
	}
	for _, at := range []string{"1999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"} {
		if n, err := Microseconds(instant(t, at)); !errors.Is(err, ErrTimeRange) {
			t.Errorf("Microseconds(%s) = %d, %v, want ErrTimeRange", at, n, err)
		}
	}
}

func TestNotifierTimes(t *testing.T) {
	start, now := instant(t, "2020-01-01T00:00:00Z"), instant(t, "2020-01-01T00:00:00.00001Z")
	low, err := Microseconds(start)
	must(t, err)
	for after, ok := range map[uint64]bool{0: false, 1: true, 5: true, 9: true, 10: false, 11: false} {
		err := Notifier{InstanceSequence: low + after}.ValidateTimes(start, now)
		var e *FieldError
		if ok && err != nil || !ok && (!errors.As(err, &e) || e.Field != "instance_sequence") {
			t.Errorf("%d µs after the start, 10 µs ago: %v", after, err)
		}
	}
	for _, c := range [][2]time.Time{{{}, now}, {start, {}}} {
		if err := (Notifier{InstanceSequence: low + 1}).ValidateTimes(c[0], c[1]); !errors.Is(err, ErrTimeRange) {
			t.Errorf("between %v and %v: %v, want ErrTimeRange", c[0], c[1], err)
		}
	}
}

func TestInteraction(t *testing.T) {
	f, err := NewInteraction(1234567890, 0x7F)
	if err != nil || !f.Resolved() || f.Number != 1234567890 || f.Flags != 0x7F {
		t.Fatalf("%+v, %v", f, err)
	}
	u, err := f.UUID()
	if err != nil || !strings.HasSuffix(u.String(), "-7f1234567890") || u.String()[14] != 'c' {
		t.Errorf("%v, %v", u, err)
	}
	if (Interaction{Number: 1}).Resolved() || !(Interaction{Random14: 1}).Resolved() || !(Interaction{Random60: 1}).Resolved() {
		t.Error("Resolved is not: some random bit is set")
	}
	// The bits that version and variant take do not count: 0xF in octet 0, 0b11 in octet 8.
	zero := bytes.Repeat(append(append([]byte{0xF0}, make([]byte, 7)...), append(bytes.Repeat([]byte{0xFF}, 6), 0xC0, 0)...), 3)
	f, err = NewInteraction(1, 0, WithRandom(bytes.NewReader(append(zero, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2))))
	if err != nil || f.Random60 != 1 || f.Random14 != 2 {
		t.Errorf("after zeros, 1 and 2: %+v, %v", f, err)
	}
	if f, err := NewInteraction(1, 0, WithRandom(zeros{})); !errors.Is(err, ErrRandom) || f != (Interaction{}) {
		t.Errorf("of zeros alone: %+v, %v, want ErrRandom", f, err)
	}
	for name, opt := range map[string]Option{"clock": WithClock(time.Now), "nil": WithRandom(nil)} {
		if _, err := NewInteraction(1, 0, opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFieldErrors(t *testing.T) {
	of := func(_ any, err error) error { return err }
	v4 := uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8")
	v1 := uuid.MustParse("c232ab00-9414-11ec-b3c8-9f6bdeced846")
	for _, c := range []struct {
		err           error
		format, field string
		value         uint64
	}{
		{of(DecodeTimeBased(v4)), "time-based", "version", 4},
		{of(DecodeRandom(v1)), "random", "version", 1},
		{of(DecodeNameBased(v4)), "name-based", "version", 4},
		{of(DecodeSequential(v4, 0xD)), "sequential", "version", 4},
		{of(DecodeInteraction(v4)), "legacy interaction id", "version", 4},
		{of(DecodeNotifier(v4)), "notifier", "version", 4},
		{of(ParseTimeBased("c232ab00-9414-11ec-33c8-9f6bdeced846")), "time-based", "variant", 0},
		{of(ParseRandom("919108f7-52d1-4320-dbac-f847db4148a8")), "random", "variant", 3},
		{of(ParseNameBased("5df41881-3aed-3515-48a7-2f4a814cf09e")), "name-based", "variant", 1},
		{of(ParseSequential("04030201-0605-d007-cabc-112233445566", 0xD)), "sequential", "variant", 3},
		{of(ParseSequential("04030201-0605-d107-8abc-112233445566", 0xD)), "sequential", "zeroVal", 1},
		{of(ParseSequential("04030201-0605-d207-8abc-112233445566", 0xD)), "sequential", "zeroVal", 2},
		{of(ParseSequential("04030201-0605-d407-8abc-112233445566", 0xD)), "sequential", "zeroVal", 4},
		{of(ParseSequential("04030201-0605-d807-8abc-112233445566", 0xD)), "sequential", "zeroVal", 8},
		{of(ParseSequential("04030201-0605-d007-aabc-112233445566", 0xD)), "sequential", "dbms", 2},
		{of(ParseSequential("04030201-0605-d007-babc-112233445566", 0xD)), "sequential", "dbms", 3},
		{of(ParseSequential("04030201-0605-d007-8abc-112233445566", 16)), "sequential", "version", 16},
		{of(ParseInteraction("00000000-0000-c000-0000-001234567890")), "legacy interaction id", "variant", 0},
		{of(ParseInteraction("00000000-0000-c000-8000-00a234567890")), "legacy interaction id", "digit9", 10},
		{of(ParseInteraction("00000000-0000-c000-8000-001f34567890")), "legacy interaction id", "digit8", 15},
		{of(ParseInteraction("00000000-0000-c000-8000-00123456789b")), "legacy interaction id", "digit0", 11},
		{of(ParseNotifier("86c26000-3e07-eab2-d234-0242ac120002")), "notifier", "variant", 3},
		{of(TimeBased{Timestamp: 1 << 60}.UUID()), "time-based", "timestamp", 1 << 60},
		{of(TimeBased{Sequence: 1 << 14}.UUID()), "time-based", "sequence", 1 << 14},
		{of(Random{Random52: 1 << 52}.UUID()), "random", "random (52 bits)", 1 << 52},
		{of(Random{Random14: 1 << 14}.UUID()), "random", "random (14 bits)", 1 << 14},
		{of(Random{Random48: 1 << 48}.UUID()), "random", "random (48 bits)", 1 << 48},
		{of(Sequential{Timestamp: 1 << 56}.UUID()), "sequential", "timestamp", 1 << 56},
		{of(Sequential{Version: 16}.UUID()), "sequential", "version", 16},
		{of(Sequential{DBMS: 2}.UUID()), "sequential", "dbms", 2},
		{of(Sequential{Random1: 1 << 12}.UUID()), "sequential", "random1", 1 << 12},
		{of(Interaction{Random60: 1 << 60}.UUID()), "legacy interaction id", "random (60 bits)", 1 << 60},
		{of(Interaction{Random14: 1 << 14}.UUID()), "legacy interaction id", "random (14 bits)", 1 << 14},
		{of(Interaction{Number: 1e10}.UUID()), "legacy interaction id", "digits", 1e10},
		{of(NewInteraction(1e10, 0)), "legacy interaction id", "digits", 1e10},
		{of(Notifier{InstanceSequence: 1 << 52}.UUID()), "notifier", "instance_sequence", 1 << 52},
		{of(Notifier{ConnectionID: 1 << 14}.UUID()), "notifier", "connection_id", 1 << 14},
		{of(NewNotifierGenerator([6]byte{}, 1<<14)), "notifier", "connection_id", 1 << 14},
		{of(NewSequentialGenerator(WithVersion(16))), "sequential", "version", 16},
		{of(NewSequentialGenerator(WithVersion(1), WithDBMS(2))), "sequential", "dbms", 2},
	} {
		var e *FieldError
		if !errors.As(c.err, &e) || e.Format != c.format || e.Field != c.field || e.Value != c.value {
			t.Errorf("%v, want %s format, field %s = %#x", c.err, c.format, c.field, c.value)
		} else if msg := e.Error(); !strings.HasPrefix(msg, "i3core: ") || !strings.Contains(msg, c.field) {
			t.Errorf("the message does not name the field: %q", msg)
		}
	}
}

// parsers are all functions that take text.
var parsers = []struct {
	format string
	parse  func(string) (fields, error)
}{
	{formatTimeBased, func(s string) (fields, error) { return ParseTimeBased(s) }},
	{formatRandom, func(s string) (fields, error) { return ParseRandom(s) }},
	{formatNameBased, func(s string) (fields, error) { return ParseNameBased(s) }},
	{formatSequential, func(s string) (fields, error) { return ParseSequential(s, 0xD) }},
	{formatInteraction, func(s string) (fields, error) { return ParseInteraction(s) }},
	{formatNotifier, func(s string) (fields, error) { return ParseNotifier(s) }},
}

func TestParse(t *testing.T) {
	for _, p := range parsers {
		for _, text := range []string{
			"", "c232ab00", "c232ab00-9414-11ec-b3c8-9f6bdeced84", "c232ab00-9414-11ec-b3c8-9f6bdeced8461",
			"{c232ab00-9414-11ec-b3c8-9f6bdeced846}", "urn:uuid:c232ab00-9414-11ec-b3c8-9f6bdeced846",
			"c232ab00941411ecb3c89f6bdeced846", "c232ab00-9414-11ec-b3c8-9f6bdeced84g", "c232ab00_9414_11ec_b3c8_9f6bdeced846",
			"c232ab0-09414-11ec-b3c8-9f6bdeced846", "c232ab00-9414-11ec-b3c8-9f6bdeced8\xc3\xa9",
		} {
			if f, err := p.parse(text); !errors.Is(err, ErrText) || !strings.HasPrefix(err.Error(), "i3core: ") {
				t.Errorf("%s: %q gives %+v, %v, want ErrText", p.format, text, f, err)
			}
		}
		if f, err := p.parse("00000000-0000-0000-0000-000000000000"); !errors.Is(err, ErrNull) {
			t.Errorf("%s: NULL gives %+v, %v, want ErrNull", p.format, f, err)
		}
	}
	// Each vector is of one format, and of no other.
	for _, text := range []string{
		"00000000-0000-c000-8000-001234567890", "86c26000-3e07-eab2-9234-0242ac120002", "04030201-0605-d007-8abc-112233445566",
		"c232ab00-9414-11ec-b3c8-9f6bdeced846", "919108f7-52d1-4320-9bac-f847db4148a8", "5df41881-3aed-3515-88a7-2f4a814cf09e",
	} {
		n := 0
		for _, p := range parsers {
			if _, err := p.parse(text); err == nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is of %d formats", text, n)
		}
	}
}

// Whatever parses is put together again as it was.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"00000000-0000-c000-8000-001234567890", "86c26000-3e07-eab2-9234-0242ac120002", "04030201-0605-d007-8abc-112233445566",
		"c232ab00-9414-11ec-b3c8-9f6bdeced846", "919108f7-52d1-4320-9bac-f847db4148a8", "5df41881-3aed-3515-88a7-2f4a814cf09e",
		"00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-CFFF-BFFF-FFFFFFFFFFFF", "{c232ab00-9414-11ec-b3c8-9f6bdeced846}", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parsers {
			got, err := p.parse(text)
			if err != nil {
				var e *FieldError
				if !errors.As(err, &e) && !errors.Is(err, ErrText) && !errors.Is(err, ErrNull) {
					t.Fatalf("%s: %q: %v", p.format, text, err)
				}
				continue
			}
			u, err := got.UUID()
			if err != nil || !strings.EqualFold(u.String(), text) {
				t.Fatalf("%s: %q parses as %+v, put together as %v, %v", p.format, text, got, u, err)
			}
			if back := FromMemory(Memory(u)); back != u {
				t.Fatalf("%v through memory is %v", u, back)
			}
		}
	})
}

// As FuzzParse, from memory: every 16 octets are a text.
func FuzzDecode(f *testing.F) {
	for _, m := range []string{"0060c286073eb2ea92340242ac120002", "01020304050607d08abc112233445566", "00000000000000c08000001234567890"} {
		octets := memory(f, m)
		f.Add(octets[:], byte(0xD))
	}
	f.Fuzz(func(t *testing.T, octets []byte, version byte) {
		if len(octets) != 16 {
			return
		}
		u := FromMemory([16]byte(octets))
		decoded := 0
		for _, decode := range []func() (fields, error){
			func() (fields, error) { return DecodeTimeBased(u) },
			func() (fields, error) { return DecodeRandom(u) },
			func() (fields, error) { return DecodeNameBased(u) },
			func() (fields, error) { return DecodeInteraction(u) },
			func() (fields, error) { return DecodeNotifier(u) },
			func() (fields, error) { return DecodeSequential(u, version) },
		} {
			got, err := decode()
			if err != nil {
				continue
			}
			if _, ok := got.(Sequential); !ok { // whose version is a matter of agreement
				decoded++
			}
			if back, err := got.UUID(); err != nil || back != u {
				t.Fatalf("%v decodes to %+v, put together as %v, %v", u, got, back, err)
			}
		}
		if decoded > 1 {
			t.Fatalf("%v is of %d formats", u, decoded)
		}
	})
}
