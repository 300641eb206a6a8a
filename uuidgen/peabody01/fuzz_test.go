package peabody01

import (
	"errors"
	"github.com/bsonids/bsonids/uuidgen"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Whatever decodes is put together again as it was, but for a node of zero, and every other value
// is a *uuidgen.FieldError.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"060a859e-e10d-7d37-8720-52c692c8990f", "061cdd23-93a0-73df-a200-6ff3e72d92e9",
		"1eb22fe4-3f0c-62b1-a88c-8dc55231702f", "1645f70f-066f-8a82-8413-f05792814889",
		"C232AB00-9414-11EC-B3C8-9F6BDECED846", "0621537e-0000-8000-8000-000000000001",
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
	} {
		u := uuid.MustParse(s)
		f.Add(u[:])
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		u, err := uuid.FromBytes(octets)
		if err != nil {
			return
		}
		check := func(f interface{ UUID() (uuid.UUID, error) }, node uint64, err error) {
			t.Helper()
			var e *uuidgen.FieldError
			if err != nil {
				if !errors.As(err, &e) {
					t.Fatalf("decoding %v: %v", u, err)
				}
				return
			}
			back, err := f.UUID()
			if node == 0 {
				if !errors.As(err, &e) || e.Field != "node" {
					t.Fatalf("%v has no node, and is put together as %v, %v", u, back, err)
				}
			} else if err != nil || back != u {
				t.Fatalf("%v decodes to %+v, put together as %v, %v", u, f, back, err)
			}
		}
		v6, err := DecodeV6(u)
		check(v6, v6.Node, err)
		for _, p := range []Precision{Millisecond, Microsecond, Nanosecond, Second} {
			for _, e := range []Encoding{RoundUp, Floor, RawCount} {
				v7, err := DecodeV7(u, p, e)
				check(v7, v7.Node, err)
				if err == nil && v7.Time().Unix() != int64(v7.Seconds) {
					t.Fatalf("%v decodes to %v, which is not in second %d", u, v7.Time(), v7.Seconds)
				}
			}
		}
		for size := 1; size <= 98; size++ {
			for _, sequence := range []int{0, 20} {
				if sequence == 20 && size > 48 {
					continue
				}
				v8, err := DecodeV8(u, size, sequence)
				if size > 60 && size <= 64 {
					v8.Timestamp |= 1 // is lost
				}
				check(v8, v8.Node, err)
			}
		}
		if at, err := Time(u); err == nil && u.Version() == 6 && !at.Equal(v6.Time()) {
			t.Fatalf("Time(%v) = %v, the fields' %v", u, at, v6.Time())
		}
	})
}

// What a clock counts at the time of a timestamp is that timestamp.
func FuzzClock(f *testing.F) {
	f.Add(uint64(0x1EC9414C232AB00), int64(100), int64(-12219292800), int64(0))
	f.Add(uint64(1<<64-1), int64(1), int64(0), int64(0))
	f.Add(uint64(1<<64-1), int64(1<<63-1), int64(1<<63-1), int64(1<<63-1))
	f.Add(uint64(1), int64(-1), int64(-1<<63), int64(999_999_999))
	f.Fuzz(func(t *testing.T, timestamp uint64, tick, seconds, nanos int64) {
		c := Clock{Bits: 64, Tick: time.Duration(tick), Epoch: time.Unix(seconds, nanos)}
		at, err := c.Time(timestamp)
		if err != nil {
			return
		}
		if got, err := c.timestamp(at); err != nil || got != timestamp {
			t.Fatalf("timestamp %d is %v, which is timestamp %d, %v", timestamp, at, got, err)
		}
	})
}

// Fields made at an instant, put together and decoded, give that instant in whole units.
func FuzzV7At(f *testing.F) {
	f.Add(int64(1645557742), int64(123456789), uint8(0), uint8(0))
	f.Add(int64(1<<36-1), int64(999999999), uint8(2), uint8(1))
	f.Add(int64(-1), int64(1), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, seconds, nanos int64, p, e uint8) {
		at := time.Unix(seconds, nanos)
		fields, err := v7At(at, Precision(p), Encoding(e))
		if err != nil {
			if p < 4 && e < 3 && !errors.Is(err, uuidgen.ErrTimeRange) {
				t.Fatal(err)
			}
			return
		}
		fields.Node = 1
		u, err := fields.UUID()
		if err != nil {
			t.Fatalf("%v: %+v: %v", at, fields, err)
		}
		back, err := DecodeV7(u, Precision(p), Encoding(e))
		unit := [...]time.Duration{time.Millisecond, time.Microsecond, time.Nanosecond, time.Second}[p]
		if want := at.Truncate(unit); err != nil || !back.Time().Equal(want) {
			t.Fatalf("%v decodes to %v, %v, want %v", u, back.Time(), err, want)
		}
	})
}
