package uuidgen

import (
	"encoding/binary"
	"errors"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestTime(t *testing.T) {
	at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	for _, tt := range []struct {
		uuid string
		want time.Time
	}{
		// RFC 9562, appendix A.
		{"c232ab00-9414-11ec-b3c8-9f6bdeced846", at},
		{"1ec9414c-232a-6b00-b3c8-9f6bdeced846", at},
		// Version 7 to the millisecond. The 12 bits that follow are random there, and read as a
		// fraction: 0xcc3/4096 ms.
		{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", at.Add(797_608)},
		{"017f22e2-79b0-7000-98c4-dc0c0c07398f", at},
		// The ends of the ranges: all timestamp bits 0 and all 1.
		{"00000000-0000-1000-8000-000000000000", time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)},
		{"00000000-0000-6000-8000-000000000000", time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)},
		{"00000000-0000-7000-8000-000000000000", time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"ffffffff-ffff-1fff-bfff-ffffffffffff", time.Date(5236, 3, 31, 21, 21, 0, 684_697_500, time.UTC)},
		{"ffffffff-ffff-6fff-bfff-ffffffffffff", time.Date(5236, 3, 31, 21, 21, 0, 684_697_500, time.UTC)},
		{"ffffffff-ffff-7fff-bfff-ffffffffffff", time.UnixMilli(1<<48 - 1).Add(999_756)},
	} {
		got, err := Time(uuid.MustParse(tt.uuid))
		if err != nil || !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("%s: %v, %v; want %v", tt.uuid, got, err, tt.want)
		}
	}
	// A published sample whose time is given to the millisecond.
	got, err := Time(uuid.MustParse("1eb22fe4-3f0c-62b1-a88c-8dc55231702f"))
	if want := time.Date(2020, 11, 10, 2, 41, 42, 182e6, time.UTC); err != nil || !got.Truncate(time.Millisecond).Equal(want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// RFC 9562, appendix A.1 and A.5: one instant, clock sequence and node as version 1 and as version 6.
func TestV1AndV6(t *testing.T) {
	v1 := uuid.MustParse("C232AB00-9414-11EC-B3C8-9F6BDECED846")
	v6 := uuid.MustParse("1EC9414C-232A-6B00-B3C8-9F6BDECED846")
	if got, err := V1ToV6(v1); err != nil || got != v6 {
		t.Errorf("V1ToV6 = %v, %v, want %v", got, err, v6)
	}
	if got, err := V6ToV1(v6); err != nil || got != v1 {
		t.Errorf("V6ToV1 = %v, %v, want %v", got, err, v1)
	}
	for range 2000 {
		var u uuid.UUID
		binary.BigEndian.PutUint64(u[:8], mathrand.Uint64()&^0xf000|0x6000)
		binary.BigEndian.PutUint64(u[8:], mathrand.Uint64()&^(0b11<<62)|variantBits)
		v1, err := V6ToV1(u)
		if err != nil {
			t.Fatal(err)
		}
		// google/uuid knows version 1, and agrees on what it holds.
		hi := binary.BigEndian.Uint64(u[:8])
		if v1.Version() != 1 || uint64(v1.Time()) != hi>>16<<12|hi&0xfff || v1.ClockSequence() != u.ClockSequence() || [6]byte(v1.NodeID()) != [6]byte(u[10:]) {
			t.Fatalf("V6ToV1(%v) = %v: time %#x, clock sequence %#x", u, v1, v1.Time(), v1.ClockSequence())
		}
		if back, err := V1ToV6(v1); err != nil || back != u {
			t.Fatalf("V1ToV6(%v) = %v, %v, want %v", v1, back, err, u)
		}
	}
	// Other versions and variants: those of the RFC's version 7, and of Microsoft.
	for _, s := range []string{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "c232ab00-9414-11ec-e3c8-9f6bdeced846", "1ec9414c-232a-6b00-e3c8-9f6bdeced846"} {
		u := uuid.MustParse(s)
		got1, err1 := V6ToV1(u)
		got6, err6 := V1ToV6(u)
		if !errors.Is(err1, ErrNoTime) || !errors.Is(err6, ErrNoTime) || got1 != uuid.Nil || got6 != uuid.Nil {
			t.Errorf("%s: %v, %v; %v, %v", s, got1, err1, got6, err6)
		}
	}
	if _, err := V1ToV6(v6); !errors.Is(err, ErrNoTime) {
		t.Errorf("version 6 to 6: %v", err)
	}
}

func TestNoTime(t *testing.T) {
	for _, s := range []string{
		"00000000-0000-0000-0000-000000000000",
		"ffffffff-ffff-ffff-ffff-ffffffffffff",
		"5df41881-3aed-3515-88a7-2f4a814cf09e", // RFC 9562, version 3
		"919108f7-52d1-4320-9bac-f847db4148a8", // version 4
		"2ed6657d-e927-568b-95e1-2665a8aea6a2", // version 5
		"2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", // version 8
		"017f22e2-79b0-2cc3-98c4-dc0c0c07398f", // version 2
		"017f22e2-79b0-7cc3-18c4-dc0c0c07398f", // the variants below,
		"017f22e2-79b0-7cc3-d8c4-dc0c0c07398f", // above,
		"1ec9414c-232a-6b00-e3c8-9f6bdeced846", // and further above
	} {
		if got, err := Time(uuid.MustParse(s)); !errors.Is(err, ErrNoTime) || !got.IsZero() {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
}

var layouts = map[byte]*layout{6: layoutV6, 7: layoutV7}

// Both ways to a timestamp agree.
func TestTimestampOf(t *testing.T) {
	rnd := mathrand.New(mathrand.NewPCG(7, 8))
	for _, version := range []byte{6, 7} {
		for i := range 100_000 {
			ns := rnd.Int64() >> rnd.IntN(63)
			if i%2 == 0 {
				ns -= ns % 1e6 // the beginning of a millisecond
			}
			want, err := layouts[version].timestamp(time.Unix(0, ns))
			if got := layouts[version].timestampOf(uint64(ns)); err != nil || got != want {
				t.Fatalf("version %d, %d ns: %d, want %d, %v", version, ns, got, want, err)
			}
		}
	}
}

// The bounds of ClosedV7(t, t) hold every id made at t, and none made at another millisecond;
// likewise version 6 with 100 ns.
func TestBounds(t *testing.T) {
	type bounds struct {
		version  byte
		min, max func(time.Time) (uuid.UUID, error)
		unit     time.Duration
	}
	rnd := mathrand.New(mathrand.NewPCG(5, 6))
	for _, b := range []bounds{{6, minV6, maxV6, 100}, {7, minV7, maxV7, time.Millisecond}} {
		between := func(u uuid.UUID, at time.Time) bool {
			lo, err := b.min(at)
			if err != nil {
				t.Fatal(err)
			}
			hi, err := b.max(at)
			if err != nil {
				t.Fatal(err)
			}
			if lo.Version() != uuid.Version(b.version) || lo.Variant() != uuid.RFC4122 ||
				hi.Version() != uuid.Version(b.version) || hi.Variant() != uuid.RFC4122 {
				t.Fatalf("%v and %v are not of version %d", lo, hi, b.version)
			}
			for _, u := range []uuid.UUID{lo, hi} {
				if got, err := Time(u); err != nil || !got.Truncate(b.unit).Equal(at.Truncate(b.unit)) {
					t.Fatalf("the bound %v of %v is of %v, %v", u, at, got, err)
				}
			}
			return !less(u, lo) && !less(hi, u)
		}
		for range 5000 {
			at := time.Unix(1+rnd.Int64N(9e10), rnd.Int64N(1e9))
			clock := testClock{at}
			random := []repeat{0, 0xff, repeat(rnd.IntN(256))}[rnd.IntN(3)]
			u := newUUID(t, newGen(t, b.version, WithClock(clock.now), WithRandom(random)))
			if !between(u, at) {
				t.Fatalf("%v made at %v is out of its bounds", u, at)
			}
			unit := at.Truncate(b.unit)
			for _, other := range []time.Time{unit.Add(-1), unit.Add(b.unit)} {
				if between(u, other) {
					t.Fatalf("%v made at %v is in the bounds of %v", u, at, other)
				}
			}
		}
	}
}

func TestBoundsRange(t *testing.T) {
	for name, tt := range map[string]struct {
		min, max    func(time.Time) (uuid.UUID, error)
		first, last time.Time
	}{
		"6": {minV6, maxV6, time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), time.Unix(103072857660, 684_697_599)},
		"7": {minV7, maxV7, time.Unix(0, 0), time.UnixMilli(1<<48 - 1).Add(999_999)},
	} {
		for _, f := range []func(time.Time) (uuid.UUID, error){tt.min, tt.max} {
			for _, at := range []time.Time{tt.first, tt.last} {
				if u, err := f(at); err != nil || u == uuid.Nil {
					t.Errorf("version %s at %v: %v, %v", name, at, u, err)
				}
			}
			for _, at := range []time.Time{tt.first.Add(-1), tt.last.Add(1), {}, time.Unix(1<<62, 0), time.Unix(-1<<62, 0)} {
				if u, err := f(at); err != nil || u != uuid.Nil {
					t.Errorf("version %s at %v: %v, %v; want the empty range", name, at, u, err)
				}
			}
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"c232ab00-9414-11ec-b3c8-9f6bdeced846",
		"1ec9414c-232a-6b00-b3c8-9f6bdeced846",
		"017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
		"919108f7-52d1-4320-9bac-f847db4148a8",
	} {
		u := uuid.MustParse(s)
		f.Add(u[:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := uuid.FromBytes(data)
		if err != nil {
			return
		}
		at, err := Time(u)
		timed := u.Variant() == uuid.RFC4122 && (u.Version() == 1 || u.Version() == 6 || u.Version() == 7)
		if timed != (err == nil) || !timed && !errors.Is(err, ErrNoTime) {
			t.Fatalf("%v: %v, %v", u, at, err)
		}
		if !timed {
			return
		}
		if u.Version() == 1 {
			// google/uuid reads version 1, but counts nanoseconds from 1970 in an int64 sum that a
			// late time overflows.
			sec, nsec := u.Time().UnixTime()
			if nsec >= 0 && (at.Unix() != sec || int64(at.Nanosecond()) != nsec) {
				t.Fatalf("%v: %v, google/uuid reads %d.%09d", u, at, sec, nsec)
			}
			count := binary.BigEndian.Uint64([]byte{u[6] & 0xf, u[7], u[4], u[5], u[0], u[1], u[2], u[3]})
			binary.BigEndian.PutUint64(u[:8], count>>12<<16|0x6000|count&0xfff)
		}
		lower, upper := minV6, maxV6
		if u.Version() == 7 {
			lower, upper = minV7, maxV7
		}
		lo, err := lower(at)
		if err != nil {
			t.Fatal(err)
		}
		hi, err := upper(at)
		if err != nil {
			t.Fatal(err)
		}
		if less(u, lo) || less(hi, u) {
			t.Fatalf("%v of %v is not in %v to %v", u, at, lo, hi)
		}
	})
}

// Other UUID types are read as they are.
func TestTimeOfOtherTypes(t *testing.T) {
	type otherUUID [16]byte
	u := newUUID(t, newGen(t, 7, WithClock(func() time.Time { return time.Unix(1e9, 0) })))
	if at, err := Time(otherUUID(u)); err != nil || !at.Equal(time.Unix(1e9, 0)) {
		t.Errorf("%v, %v", at, err)
	}
	if c, err := CompareTime([16]byte(u), time.Unix(1e9, 0)); err != nil || c != 0 {
		t.Errorf("%d, %v", c, err)
	}
}
