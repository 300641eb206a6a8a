package i3core

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
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
	if got := inMemory(u); got != m {
		t.Errorf("Memory = %x, want %x", got, m)
	}
	if got := ofMemory(m); got != u {
		t.Errorf("ofMemory = %v, want %v", got, u)
	}
	if ofMemory([16]byte{}) != uuid.Nil {
		t.Error("NULL is not all zeros in memory")
	}
	if got := uuid.Nil.String(); got != "00000000-0000-0000-0000-000000000000" {
		t.Errorf("NULL as text: %s", got)
	}
}

// Each vector is fields, the text, and where known the memory.
func TestVectors(t *testing.T) {
	sequence, err := microseconds(instant(t, "2020-01-01T00:00:00Z"))
	must(t, err)
	for _, c := range []struct {
		name   string
		fields fields
		text   string
		memory string
		decode func(uuid.UUID) (fields, error)
	}{
		{"unresolved interaction", Interaction{Number: 1234567890},
			"00000000-0000-c000-8000-001234567890", "000000000000 00c0 8000 001234567890",
			func(u uuid.UUID) (fields, error) { return DecodeInteraction(u) }},
		{"notifier", Notifier{sequence, 0xAB, 0x1234, [6]byte{0x02, 0x42, 0xac, 0x12, 0x00, 0x02}},
			"86c26000-3e07-eab2-9234-0242ac120002", "0060c286073eb2ea92340242ac120002",
			func(u uuid.UUID) (fields, error) { return DecodeNotifier(u) }},
		{"sequential", Sequential{0x01020304050607, 0xD, DBMSBinary, 0xABC, 0x11223344, 0x5566},
			"04030201-0605-d007-8abc-112233445566", "01020304050607d08abc112233445566",
			func(u uuid.UUID) (fields, error) { return DecodeSequential(u, 0xD) }},
		// RFC 9562, appendix A: v1, v4 and v3.
		{"time-based", TimeBased{0x1EC9414C232AB00, 0x33C8, [6]byte{0x9F, 0x6B, 0xDE, 0xCE, 0xD8, 0x46}},
			"c232ab00-9414-11ec-b3c8-9f6bdeced846", "00ab32c2 1494 ec11 b3c8 9f6bdeced846",
			func(u uuid.UUID) (fields, error) { return DecodeTimeBased(u) }},
		{"random", Random{0x32, 0x052d1919108f7, 0x1bac, 0xf847db4148a8},
			"919108f7-52d1-4320-9bac-f847db4148a8", "f7089191 d152 2043 9bac f847db4148a8",
			func(u uuid.UUID) (fields, error) { return DecodeRandom(u) }},
		{"name-based", NameBased{uuid.MustParse("5df41881-3aed-0515-08a7-2f4a814cf09e")},
			"5df41881-3aed-3515-88a7-2f4a814cf09e", "8118f45d ed3a 1535 88a7 2f4a814cf09e",
			func(u uuid.UUID) (fields, error) { return DecodeNameBased(u) }},
	} {
		u, err := c.fields.UUID()
		if err != nil || u.String() != c.text {
			t.Errorf("%s: %v, %v, want %s", c.name, u, err, c.text)
		}
		if got, want := inMemory(u), memory(t, strings.ReplaceAll(c.memory, " ", "")); got != want {
			t.Errorf("%s: memory %x, want %x", c.name, got, want)
		}
		if got, err := c.decode(u); err != nil || got != c.fields {
			t.Errorf("%s: decoded as %+v, %v, want %+v", c.name, got, err, c.fields)
		}
	}
	if u, err := NewNameBased(uuid.NameSpaceDNS, []byte("www.example.com")); err != nil || u.String() != "5df41881-3aed-3515-88a7-2f4a814cf09e" {
		t.Errorf("name-based: %v, %v", u, err)
	}
	if at := (TimeBased{Timestamp: 0x1EC9414C232AB00}).Time(); !at.Equal(instant(t, "2022-02-22T19:22:22Z")) {
		t.Errorf("time-based vector at %v", at)
	}
	if at := (Notifier{InstanceSequence: sequence}).Time(); !at.Equal(instant(t, "2020-01-01T00:00:00Z")) {
		t.Errorf("notifier vector at %v", at)
	}
}

// UUID puts version and variant into the hash.
func (f NameBased) UUID() (uuid.UUID, error) {
	u := uuid.UUID(f.Hash)
	u[6], u[8] = u[6]|0x30, u[8]|0x80
	return u, nil
}

func random(width int) uint64 { return rand.Uint64() >> (64 - width) }

func randomNode() (n [6]byte) {
	for i := range n {
		n[i] = byte(rand.Uint32())
	}
	return n
}

// The tables of the document, byte by byte of memory.
func TestLayouts(t *testing.T) {
	check := func(t *testing.T, f, back fields, err error, u uuid.UUID, want []byte) {
		t.Helper()
		if m := inMemory(u); !bytes.Equal(m[:], want) {
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

		// custom_low in bits 4–7 of byte 6, custom_high in bits 0–3 of byte 7.
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

		u2, err := NewNameBased(uuid.UUID(inMemory(u)), node[:])
		must(t, err)
		if want := uuid.NewMD5(uuid.UUID(inMemory(u)), node[:]); u2 != want {
			t.Fatalf("name-based %v, google/uuid has %v", u2, want)
		}
		gotName, err := DecodeNameBased(u2)
		m := inMemory(u2)
		check(t, gotName, gotName, err, u2, m[:])
		if back, _ := gotName.UUID(); back != u2 {
			t.Fatalf("%v decodes to %+v", u2, gotName)
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

// Memory sorts by timestamp, then by counter, for one maker; the bounds of a time hold what has it,
// and nothing else.
func TestSequentialOrder(t *testing.T) {
	compare := func(a, b uuid.UUID) int {
		ma, mb := inMemory(a), inMemory(b)
		return bytes.Compare(ma[:], mb[:])
	}
	textDiffers := false
	for range 5000 {
		at := instant(t, "2000-01-01T00:00:00Z").Add(time.Duration(rand.Int64N(50 * 365 * 24 * int64(time.Hour))))
		at2 := at.Add(time.Duration(rand.IntN(5)-2) * 999 * time.Nanosecond)
		a, err := sequentialAt(at)
		must(t, err)
		if rand.IntN(2) == 0 {
			at2 = at.Add(time.Duration(rand.Int64N(int64(time.Hour))))
		}
		if at2.Before(instant(t, "2000-01-01T00:00:00Z")) {
			continue
		}
		b, err := sequentialAt(at2)
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
		low, err := minSequentialAt(at)
		must(t, err)
		high, err := maxSequentialAt(at)
		must(t, err)
		if got := compare(low, ub) <= 0 && compare(ub, high) <= 0; got != cut.Equal(cut2) {
			t.Fatalf("%+v within the bounds of %v: %v", b, at, got)
		}
	}
	if !textDiffers {
		t.Error("text sorts as memory does; the documentation says it does not")
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
	// The bits that version and variant take do not count: 0xF in byte 0, 0b11 in byte 8.
	zero := bytes.Repeat(append(append([]byte{0xF0}, make([]byte, 7)...), append(bytes.Repeat([]byte{0xFF}, 6), 0xC0, 0)...), 3)
	f, err = NewInteraction(1, 0, uuidgen.WithRandom(bytes.NewReader(append(zero, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2))))
	if err != nil || f.Random60 != 1 || f.Random14 != 2 {
		t.Errorf("after zeros, 1 and 2: %+v, %v", f, err)
	}
	if f, err := NewInteraction(1, 0, uuidgen.WithRandom(zeros{})); err == nil || f != (Interaction{}) {
		t.Errorf("of zeros alone: %+v, %v", f, err)
	}
	for name, opt := range map[string]uuidgen.Option{"clock": uuidgen.WithClock(time.Now), "nil": uuidgen.WithRandom(nil)} {
		if _, err := NewInteraction(1, 0, opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
