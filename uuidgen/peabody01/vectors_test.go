package peabody01

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

func instant(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// 1645557742.123456789 s with sequence 0, in each precision and encoding.
func TestV7Vectors(t *testing.T) {
	at := time.Unix(1645557742, 123456789)
	for _, c := range []struct {
		p      Precision
		e      Encoding
		prefix string
		unit   time.Duration
	}{
		{Millisecond, Floor, "0621537e-e1f7-7000", time.Millisecond},
		{Millisecond, RoundUp, "0621537e-e1f8-7000", time.Millisecond},
		{Microsecond, Floor, "0621537e-e1f9-7acf-8000", time.Microsecond},
		{Microsecond, RoundUp, "0621537e-e1f9-7ad0-8000", time.Microsecond},
		{Nanosecond, Floor, "0621537e-e1f9-7add-8dce-00", time.Nanosecond},
		{Nanosecond, RoundUp, "0621537e-e1f9-7add-8dcf-00", time.Nanosecond},
		{Millisecond, RawCount, "0621537e-e07b-7000", time.Millisecond},
	} {
		f, err := v7At(at, c.p, c.e)
		if err != nil {
			t.Fatal(err)
		}
		f.Node = 1
		u, err := f.UUID()
		if err != nil || !strings.HasPrefix(u.String(), c.prefix) {
			t.Errorf("%v %v: %v, %v, want %s…", c.p, c.e, u, err, c.prefix)
		}
		g, err := NewV7Generator(c.p, WithEncoding(c.e), uuidgen.WithClock(func() time.Time { return at }))
		if err != nil {
			t.Fatal(err)
		}
		if u, err := g.NewUUID(); err != nil || !strings.HasPrefix(u.String(), c.prefix) {
			t.Errorf("%v %v: generated %v, %v, want %s…", c.p, c.e, u, err, c.prefix)
		}
		back, err := DecodeV7(u, c.p, c.e)
		if want := at.Truncate(c.unit); err != nil || !back.Time().Equal(want) {
			t.Errorf("%v %v: decoded to %v, %v, want %v", c.p, c.e, back.Time(), err, want)
		}
	}
}

// The samples that were published with the draft.
func TestPublishedSamples(t *testing.T) {
	for _, c := range []struct {
		uuid, want string
		within     time.Duration // the published time's last digit
	}{
		{"060a859e-e10d-7d37-8720-52c692c8990f", "2021-05-22T01:10:06.0659Z", 50 * time.Microsecond},
		{"061cdd23-93a0-73df-a200-6ff3e72d92e9", "2021-12-30T15:37:29.2266Z", 50 * time.Microsecond},
		{"1eb22fe4-3f0c-62b1-a88c-8dc55231702f", "2020-11-10T02:41:42.182Z", 500 * time.Microsecond},
	} {
		got, err := Time(uuid.MustParse(c.uuid))
		if d := got.Sub(instant(t, c.want)).Abs(); err != nil || d > c.within {
			t.Errorf("Time(%s) = %v, %v, want %s", c.uuid, got, err, c.want)
		}
		if got.Location() != time.UTC {
			t.Errorf("Time(%s) is not in UTC", c.uuid)
		}
	}

	// Its 60 bits are the upper ones of nanoseconds since 1970: as 100 ns since 1582 they would be
	// in the year 1900.
	f, err := DecodeV8(uuid.MustParse("1645f70f-066f-8a82-8413-f05792814889"), 64, 0)
	if err != nil || f.Sequence != 16 {
		t.Errorf("version 8 sample: %+v, %v, want sequence 16", f, err)
	}
	at, err := Clock{Bits: 64, Tick: time.Nanosecond, Epoch: unix}.Time(f.Timestamp)
	if d := at.Sub(instant(t, "2020-11-09T22:21:26.132Z")).Abs(); err != nil || d > 500*time.Microsecond {
		t.Errorf("version 8 sample: %v, %v, want 2020-11-09T22:21:26.132Z", at, err)
	}
}

// RFC 9562, appendix A.5.
func TestV6Vector(t *testing.T) {
	f, err := DecodeV6(uuid.MustParse("1EC9414C-232A-6B00-B3C8-9F6BDECED846"))
	if err != nil || f.ClockSequence != 0x33C8 || f.Node != 0x9F6BDECED846 {
		t.Errorf("fields of the vector: %+v, %v", f, err)
	}
	if want := instant(t, "2022-02-22T19:22:22Z"); !f.Time().Equal(want) {
		t.Errorf("time of the vector: %v, want %v", f.Time(), want)
	}
}

// A decoder that knows nothing of the maker and cuts to its unit gets back every number that was
// rounded up, and loses a millisecond on 992 of the 1000 that were rounded down; one that knows the
// maker gets back all of them.
func TestSubSecondEncodings(t *testing.T) {
	check := func(t *testing.T, p Precision, nanos int, unit time.Duration) (lost bool) {
		t.Helper()
		at := time.Unix(1645557742, int64(nanos)).Truncate(unit)
		for _, e := range []Encoding{RoundUp, Floor, RawCount} {
			f, err := v7At(at, p, e)
			if err != nil {
				t.Fatal(err)
			}
			// Whatever follows the sub-seconds must not matter: the most, if one reads 38 bits.
			f.Sequence, f.Node = 1<<precisions[p].sequence-1, 1<<precisions[p].node-1
			u := uuid.Must(f.UUID())
			back, err := DecodeV7(u, p, e)
			if err != nil || !back.Time().Equal(at) {
				t.Fatalf("%v %v of %v decodes to %v, %v", p, e, at, back.Time(), err)
			}
			f.Sequence, f.Node = 0, 1
			blind, err := Time(uuid.Must(f.UUID()))
			if err != nil {
				t.Fatal(err)
			}
			most, err := Time(u)
			if err != nil {
				t.Fatal(err)
			}
			switch e {
			case RoundUp:
				if !blind.Truncate(unit).Equal(at) || !most.Truncate(unit).Equal(at) {
					t.Fatalf("%v of %v, rounded up, reads as %v to %v", p, at, blind, most)
				}
			case Floor:
				lost = !blind.Truncate(unit).Equal(at)
			}
		}
		return lost
	}
	lost := 0
	for ms := range 1000 {
		if check(t, Millisecond, ms*1e6, time.Millisecond) {
			lost++
		}
	}
	if lost != 992 {
		t.Errorf("rounded down, %d of 1000 milliseconds are lost, want 992", lost)
	}
	for _, edge := range []int{0, 1, 2, 999, 1000, 1001, 499_999_999, 500_000_000, 999_999_000, 999_999_998, 999_999_999} {
		check(t, Microsecond, edge, time.Microsecond)
		check(t, Nanosecond, edge, time.Nanosecond)
	}
	for range 20_000 {
		check(t, Microsecond, rand.IntN(1e9), time.Microsecond)
		check(t, Nanosecond, rand.IntN(1e9), time.Nanosecond)
	}
}

// The draft's own example: 16 bits 0101 0101 0101 0101 are 21845/65536 of a second, 0.3333282.
func TestSubSecondExample(t *testing.T) {
	u := assemble(t, bit{1645557742, 36}, bit{0x555, 12}, bit{7, 4}, bit{0x500, 12}, bit{2, 2}, bit{0, 62})
	got, err := Time(u)
	if want := time.Unix(1645557742, 333_328_247); err != nil || !got.Equal(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Fractions that no encoder writes stay within their second.
func TestTopmostFraction(t *testing.T) {
	for p := range precisions {
		for _, e := range []Encoding{RoundUp, Floor} {
			f := V7{Precision: Precision(p), Encoding: e, Seconds: 10, Subsec: 1<<precisions[p].subsec - 1}
			if got := f.Time(); got.Unix() != 10 {
				t.Errorf("%v %v: %v is not in second 10", f.Precision, e, got)
			}
		}
	}
	if got := (V7{Precision: 9}).Time(); !got.IsZero() {
		t.Errorf("the time at no precision is %v", got)
	}
}

func TestTimeRange(t *testing.T) {
	v7 := func(at time.Time) error { _, err := v7At(at, Nanosecond, RoundUp); return err }
	unixSeconds := Clock{Bits: 32, Tick: time.Second, Epoch: unix}
	v8 := func(at time.Time) error { _, err := unixSeconds.timestamp(at); return err }
	for _, c := range []struct {
		name        string
		f           func(time.Time) error
		first, last time.Time
	}{
		{"v7", v7, instant(t, "1970-01-01T00:00:00Z"), instant(t, "4147-08-20T07:32:15.999999999Z")},
		{"v8", v8, instant(t, "1970-01-01T00:00:00Z"), instant(t, "2106-02-07T06:28:15.999999999Z")},
	} {
		for _, at := range []time.Time{c.first, c.last, c.first.In(time.FixedZone("", 3600))} {
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
}

func TestClock(t *testing.T) {
	for _, c := range []struct {
		name      string
		clock     Clock
		at        string
		timestamp uint64
	}{
		// RFC 9562, appendix A: the instant of its vectors as versions 1 and 6 count it, and
		// version 7.
		{"100 ns since 1582", Clock{Bits: 60, Tick: 100, Epoch: time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)},
			"2022-02-22T19:22:22Z", 0x1EC9414C232AB00},
		{"milliseconds since 1970", Clock{Bits: 48, Tick: time.Millisecond, Epoch: unix}, "2022-02-22T19:22:22Z", 0x017F22E279B0},
		{"seconds since 1970", Clock{Bits: 32, Tick: time.Second, Epoch: unix}, "2106-02-07T06:28:15Z", 0xFFFFFFFF},
		{"nanoseconds since 1970", Clock{Bits: 64, Tick: 1, Epoch: unix}, "2554-07-21T23:34:33.709551615Z", 1<<64 - 1},
		{"an epoch within a second", Clock{Bits: 32, Tick: time.Second, Epoch: time.Unix(0, 5e8)}, "1970-01-01T00:00:02.5Z", 2},
	} {
		at := instant(t, c.at)
		if got, err := c.clock.timestamp(at); err != nil || got != c.timestamp {
			t.Errorf("%s: timestamp %#x, %v, want %#x", c.name, got, err, c.timestamp)
		}
		if got, err := c.clock.Time(c.timestamp); err != nil || !got.Equal(at) {
			t.Errorf("%s: time %v, %v, want %v", c.name, got, err, at)
		}
	}
	day := Clock{Bits: 64, Tick: 24 * time.Hour, Epoch: instant(t, "2000-01-01T00:00:00Z")}
	if got, err := day.timestamp(instant(t, "2000-03-01T23:59:59.999Z")); err != nil || got != 31+29 {
		t.Errorf("days: %d, %v, want 60", got, err)
	}
	for _, timestamp := range []uint64{1<<64 - 1, 1 << 63, 1 << 49} { // more seconds than a time.Time counts
		if at, err := day.Time(timestamp); !errors.Is(err, uuidgen.ErrTimeRange) {
			t.Errorf("day %d: %v, %v, want uuidgen.ErrTimeRange", timestamp, at, err)
		}
	}
	ticks := func() uint64 { return 0 }
	for name, c := range map[string]Clock{
		"no size":       {Tick: 1, Epoch: unix},
		"a wrong size":  {Bits: 99, Tick: 1, Epoch: unix},
		"no source":     {Bits: 32, Epoch: unix},
		"negative tick": {Bits: 32, Tick: -1, Epoch: unix},
		"no time":       {Bits: 32, Now: ticks, Epoch: unix},
		"no epoch":      {Bits: 32, Now: ticks, Tick: 1},
		"the year 1":    {Bits: 32, Tick: 1, Epoch: time.Date(1, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600))},
	} {
		if _, err := c.timestamp(time.Unix(0, 0)); err == nil {
			t.Errorf("%s: no error from Timestamp", name)
		}
		if _, err := c.Time(0); err == nil {
			t.Errorf("%s: no error from Time", name)
		}
	}
}

// TestClockExtremes compares timestamps with integers without bounds, over the whole range of
// instants.
func TestClockExtremes(t *testing.T) {
	nanos := func(t time.Time) *big.Int {
		n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
		return n.Add(n, big.NewInt(int64(t.Nanosecond())))
	}
	seconds := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 62, -1 << 40, -1, 0, 1, 1 << 40, 1 << 62, 1<<63 - 1<<40}
	for _, epoch := range seconds {
		for _, at := range seconds {
			for _, nanosecond := range []int64{0, 1, 999999999} {
				for _, tick := range []time.Duration{1, time.Second, time.Hour, math.MaxInt64} {
					c := Clock{Bits: 64, Tick: tick, Epoch: time.Unix(epoch, 1)}
					at := time.Unix(at, nanosecond)
					want := nanos(at)
					want.Div(want.Sub(want, nanos(c.Epoch)), big.NewInt(int64(tick)))
					got, err := c.timestamp(at)
					switch {
					case want.IsUint64():
						if err != nil || got != want.Uint64() {
							t.Errorf("%d since %d in ticks of %v: got %d, %v, want %v", at.Unix(), epoch, tick, got, err, want)
						}
					case !errors.Is(err, uuidgen.ErrTimeRange):
						t.Errorf("%d since %d in ticks of %v: got %d, %v, and it is %v", at.Unix(), epoch, tick, got, err, want)
					}
				}
			}
		}
	}
}
