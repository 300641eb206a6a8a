package i3core

import (
	"errors"
	"github.com/bsonids/bsonids/uuidgen"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestTimeRange(t *testing.T) {
	tb := func(at time.Time) error { _, err := TimeBasedAt(at, 0, [6]byte{}); return err }
	sq := func(at time.Time) error { _, err := sequentialAt(at); return err }
	nt := func(at time.Time) error {
		g, err := NewNotifierGenerator([6]byte{}, 0, uuidgen.WithClock(func() time.Time { return at }))
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
			if err := c.f(at); !errors.Is(err, uuidgen.ErrTimeRange) {
				t.Errorf("%s at %v: error %v, want uuidgen.ErrTimeRange", c.name, at, err)
			}
		}
	}
	for _, s := range []string{"1582-10-15T00:00:00Z", "1969-12-31T23:59:59.9999999Z", "2022-02-22T19:22:22.1234567Z"} {
		f, err := TimeBasedAt(instant(t, s), 0x33C8, [6]byte{1, 2, 3, 4, 5, 6})
		if want := (TimeBased{f.Timestamp, 0x33C8, [6]byte{1, 2, 3, 4, 5, 6}}); err != nil || f != want || !f.Time().Equal(instant(t, s)) {
			t.Errorf("time-based at %s: %+v at %v, %v", s, f, f.Time(), err)
		}
	}
	for _, f := range []func(time.Time) (uuid.UUID, error){minSequentialAt, maxSequentialAt} {
		if u, err := f(time.Unix(0, 0)); err != nil || u != uuid.Nil {
			t.Errorf("a bound before 2000: %v, %v, want the empty range", u, err)
		}
	}
	for _, at := range []string{"1999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"} {
		if n, err := microseconds(instant(t, at)); !errors.Is(err, uuidgen.ErrTimeRange) {
			t.Errorf("microseconds(%s) = %d, %v, want uuidgen.ErrTimeRange", at, n, err)
		}
	}
}

func TestNotifierTimes(t *testing.T) {
	start, now := instant(t, "2020-01-01T00:00:00Z"), instant(t, "2020-01-01T00:00:00.00001Z")
	low, err := microseconds(start)
	must(t, err)
	for after, ok := range map[uint64]bool{0: false, 1: true, 5: true, 9: true, 10: false, 11: false} {
		err := Notifier{InstanceSequence: low + after}.ValidateTimes(start, now)
		var e *uuidgen.FieldError
		if ok && err != nil || !ok && (!errors.As(err, &e) || e.Field != "instance_sequence") {
			t.Errorf("%d µs after the start, 10 µs ago: %v", after, err)
		}
	}
	for _, c := range [][2]time.Time{{{}, now}, {start, {}}} {
		if err := (Notifier{InstanceSequence: low + 1}).ValidateTimes(c[0], c[1]); !errors.Is(err, uuidgen.ErrTimeRange) {
			t.Errorf("between %v and %v: %v, want uuidgen.ErrTimeRange", c[0], c[1], err)
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
		{of(DecodeTimeBased(uuid.MustParse("c232ab00-9414-11ec-33c8-9f6bdeced846"))), "time-based", "variant", 0},
		{of(DecodeRandom(uuid.MustParse("919108f7-52d1-4320-dbac-f847db4148a8"))), "random", "variant", 3},
		{of(DecodeNameBased(uuid.MustParse("5df41881-3aed-3515-48a7-2f4a814cf09e"))), "name-based", "variant", 1},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d007-cabc-112233445566"), 0xD)), "sequential", "variant", 3},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d107-8abc-112233445566"), 0xD)), "sequential", "zeroVal", 1},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d207-8abc-112233445566"), 0xD)), "sequential", "zeroVal", 2},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d407-8abc-112233445566"), 0xD)), "sequential", "zeroVal", 4},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d807-8abc-112233445566"), 0xD)), "sequential", "zeroVal", 8},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d007-aabc-112233445566"), 0xD)), "sequential", "dbms", 2},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d007-babc-112233445566"), 0xD)), "sequential", "dbms", 3},
		{of(DecodeSequential(uuid.MustParse("04030201-0605-d007-8abc-112233445566"), 16)), "sequential", "version", 16},
		{of(DecodeInteraction(uuid.MustParse("00000000-0000-c000-0000-001234567890"))), "legacy interaction id", "variant", 0},
		{of(DecodeInteraction(uuid.MustParse("00000000-0000-c000-8000-00a234567890"))), "legacy interaction id", "digit9", 10},
		{of(DecodeInteraction(uuid.MustParse("00000000-0000-c000-8000-001f34567890"))), "legacy interaction id", "digit8", 15},
		{of(DecodeInteraction(uuid.MustParse("00000000-0000-c000-8000-00123456789b"))), "legacy interaction id", "digit0", 11},
		{of(DecodeNotifier(uuid.MustParse("86c26000-3e07-eab2-d234-0242ac120002"))), "notifier", "variant", 3},
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
		var e *uuidgen.FieldError
		if !errors.As(c.err, &e) || e.Format != "i3core: "+c.format+" format" || e.Field != c.field || e.Value != c.value {
			t.Errorf("%v, want %s format, field %s = %#x", c.err, c.format, c.field, c.value)
		} else if msg := e.Error(); !strings.HasPrefix(msg, "i3core: ") || !strings.Contains(msg, c.field) {
			t.Errorf("the message does not name the field: %q", msg)
		}
	}
}

// decoders are those of all formats.
var decoders = []struct {
	format string
	decode func(uuid.UUID) (fields, error)
}{
	{formatTimeBased, func(u uuid.UUID) (fields, error) { return DecodeTimeBased(u) }},
	{formatRandom, func(u uuid.UUID) (fields, error) { return DecodeRandom(u) }},
	{formatNameBased, func(u uuid.UUID) (fields, error) { return DecodeNameBased(u) }},
	{formatSequential, func(u uuid.UUID) (fields, error) { return DecodeSequential(u, 0xD) }},
	{formatInteraction, func(u uuid.UUID) (fields, error) { return DecodeInteraction(u) }},
	{formatNotifier, func(u uuid.UUID) (fields, error) { return DecodeNotifier(u) }},
}

func TestDecode(t *testing.T) {
	for _, d := range decoders {
		if f, err := d.decode(uuid.Nil); !errors.Is(err, ErrNull) {
			t.Errorf("%s: NULL gives %+v, %v, want ErrNull", d.format, f, err)
		}
	}
	// Each vector is of one format, and of no other.
	for _, text := range []string{
		"00000000-0000-c000-8000-001234567890", "86c26000-3e07-eab2-9234-0242ac120002", "04030201-0605-d007-8abc-112233445566",
		"c232ab00-9414-11ec-b3c8-9f6bdeced846", "919108f7-52d1-4320-9bac-f847db4148a8", "5df41881-3aed-3515-88a7-2f4a814cf09e",
	} {
		n := 0
		for _, d := range decoders {
			if _, err := d.decode(uuid.MustParse(text)); err == nil {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is of %d formats", text, n)
		}
	}
}

// Whatever decodes is put together again as it was.
func FuzzDecode(f *testing.F) {
	for _, m := range []string{"0060c286073eb2ea92340242ac120002", "01020304050607d08abc112233445566", "00000000000000c08000001234567890"} {
		octets := memory(f, m)
		f.Add(octets[:], byte(0xD))
	}
	f.Fuzz(func(t *testing.T, octets []byte, version byte) {
		if len(octets) != 16 {
			return
		}
		u := ofMemory([16]byte(octets))
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
