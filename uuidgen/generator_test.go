package uuidgen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
)

// The vectors of RFC 9562, appendix A, come out of the generators when clock and random bits are
// those that the vectors hold. The bits under version, variant and multicast are given inverted,
// since they must be written over.
func TestRFCVectors(t *testing.T) {
	at := time.Date(2022, 2, 22, 14, 22, 22, 0, time.FixedZone("-05:00", -5*3600))
	for _, tt := range []struct {
		version byte
		at      time.Time
		random  string
		want    string
	}{
		{4, at, "919108f752d1b320dbacf847db4148a8", "919108f7-52d1-4320-9bac-f847db4148a8"},
		{6, at, "73c89e6bdeced846", "1ec9414c-232a-6b00-b3c8-9f6bdeced846"},
		// The vector's 12 bits after the milliseconds are 0xCC3 = 3267; 3267/4096 ms are 797,607.4
		// ns.
		{7, at.Add(797_608), "58c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
	} {
		clock := testClock{tt.at}
		opts := []Option{WithRandom(bytes.NewReader(fromHex(t, tt.random)))}
		if tt.version != 4 {
			opts = append(opts, WithClock(clock.now))
		}
		g := newGen(t, tt.version, opts...)
		if got := newUUID(t, g).String(); got != tt.want {
			t.Errorf("version %d: %s, want %s", tt.version, got, tt.want)
		}
	}
}

// Fields in, fields out: version, variant and time are what another implementation or the
// definition of the field reads.
func TestFields(t *testing.T) {
	rnd := mathrand.New(mathrand.NewPCG(1, 2))
	clock := new(testClock)
	v6, v7 := newGen(t, 6, WithClock(clock.now)), newGen(t, 7, WithClock(clock.now))
	sec, nsec := int64(0), int64(0)
	for range 10_000 {
		// Forwards, so that nothing is held: on average 1,000,000 s.
		sec, nsec = sec+1+rnd.Int64N(2_000_000), rnd.Int64N(1e9)
		clock.t = time.Unix(sec, nsec)

		u := newUUID(t, v7)
		if u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%v is of version %d, variant %v", u, u.Version(), u.Variant())
		}
		if got, want := binary.BigEndian.Uint64(u[:8])>>16, uint64(clock.t.UnixMilli()); got != want {
			t.Fatalf("%v of %v: %d ms, want %d", u, clock.t, got, want)
		}
		if got, want := int64(binary.BigEndian.Uint16(u[6:])&0xfff), nsec%1e6*4096/1e6; got != want {
			t.Fatalf("%v of %v: fraction %d, want %d", u, clock.t, got, want)
		}

		u = newUUID(t, v6)
		if u.Version() != 6 || u.Variant() != uuid.RFC4122 || u.NodeID()[0]&1 != 1 {
			t.Fatalf("%v is of version %d, variant %v, node %x", u, u.Version(), u.Variant(), u.NodeID())
		}
		// Version 1 has the same timestamp, in another order of fields: RFC 9562, figures 6 and 7.
		v1 := u
		count := binary.BigEndian.Uint64(u[:8])>>16<<12 | binary.BigEndian.Uint64(u[:8])&0xfff
		binary.BigEndian.PutUint32(v1[0:], uint32(count))
		binary.BigEndian.PutUint16(v1[4:], uint16(count>>32))
		binary.BigEndian.PutUint16(v1[6:], uint16(count>>48)|0x1000)
		gotSec, gotNsec := v1.Time().UnixTime()
		if gotSec != sec || gotNsec != nsec/100*100 {
			t.Fatalf("%v of %v: google/uuid reads %d.%09d", u, clock.t, gotSec, gotNsec)
		}
	}
}

// The clock is read once for a single id, also for the first of a page.
func TestOneLook(t *testing.T) {
	for version, want := range map[byte]int{6: 5000, 7: 5000} {
		for name, opts := range map[string][]Option{"system": nil, "reader": {WithRandom(repeat(1))}} {
			looks := 0
			g := newGen(t, version, append(opts, WithClock(func() time.Time {
				looks++
				return time.Unix(1e9+int64(looks)*1e7, 0)
			}))...)
			for range 5000 {
				newUUID(t, g)
			}
			if looks != want {
				t.Errorf("version %d, %s: %d looks at the clock for 5000 ids, want %d", version, name, looks, want)
			}
		}
	}
}

func TestClockRange(t *testing.T) {
	for _, tt := range []struct {
		version byte
		at      time.Time
		want    string // "": an error
	}{
		{7, time.Unix(0, 0), "00000000-0000-7000-8000-000000000000"},
		{7, time.Unix(0, -1), ""},
		{7, time.Time{}, ""},
		{7, time.Unix(-1<<62, 0), ""},
		{7, time.Unix(1<<62, 0), ""},
		{7, time.UnixMilli(1<<48 - 1), "ffffffff-ffff-7000-8000-000000000000"},
		{7, time.UnixMilli(1<<48 - 1).Add(999_999), "ffffffff-ffff-7fff-8000-000000000000"},
		{7, time.UnixMilli(1 << 48), ""},
		{6, time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), "00000000-0000-6000-8000-010000000000"},
		{6, time.Date(1582, 10, 14, 23, 59, 59, 999_999_999, time.UTC), ""},
		{6, time.Time{}, ""},
		{6, time.Unix(-1<<62, 0), ""},
		{6, time.Unix(1<<62, 0), ""},
		// 2^60-1 steps of 100 ns after 1582 are 103072857660.6846975 s after 1970.
		{6, time.Unix(103072857660, 684_697_599), "ffffffff-ffff-6fff-8000-010000000000"},
		{6, time.Unix(103072857660, 684_697_600), ""},
	} {
		clock := testClock{tt.at}
		g := newGen(t, tt.version, WithClock(clock.now), WithRandom(repeat(0)))
		u, err := g.NewUUID()
		if tt.want != "" {
			if err != nil || u.String() != tt.want {
				t.Errorf("version %d at %v: %v, %v; want %s", tt.version, tt.at, u, err, tt.want)
			}
			continue
		}
		if !errors.Is(err, ErrTimeRange) || u != uuid.Nil {
			t.Errorf("version %d at %v: %v, %v; want %v", tt.version, tt.at, u, err, ErrTimeRange)
		}
		ids := []uuid.UUID{uuid.Max, uuid.Max}
		if err := g.Fill(ids); !errors.Is(err, ErrTimeRange) || ids[0] != uuid.Nil || ids[1] != uuid.Nil {
			t.Errorf("version %d at %v: Fill: %v, %v", tt.version, tt.at, ids, err)
		}
		if id, err := g.NewID(); id != nil || !errors.Is(err, ErrTimeRange) {
			t.Errorf("version %d at %v: NewID: %v, %v", tt.version, tt.at, id, err)
		}
		clock.t = time.Unix(1e9, 0) // a clock that was put right
		if _, err := g.NewUUID(); err != nil {
			t.Errorf("version %d: the clock put right: %v", tt.version, err)
		}
	}
}

// Nine steps before the last timestamp there are ten ids left, and then errors.
func TestLastTimestamp(t *testing.T) {
	for version, last := range map[byte]time.Time{
		6: time.Unix(103072857660, 684_697_500-900),
		7: time.UnixMilli(1<<48 - 1).Add(1e6 - 9*245),
	} {
		clock := testClock{last}
		g := newGen(t, version, WithClock(clock.now))
		for i := range 10 {
			if _, err := g.NewUUID(); err != nil {
				t.Fatalf("version %d, id %d: %v", version, i, err)
			}
		}
		for range 3 {
			if u, err := g.NewUUID(); !errors.Is(err, ErrTimeRange) {
				t.Fatalf("version %d beyond the last timestamp: %v, %v", version, u, err)
			}
		}
	}
}

func TestNewID(t *testing.T) {
	for _, version := range []byte{4, 6, 7} {
		id, err := newGen(t, version).NewID()
		if u, ok := id.(uuid.UUID); err != nil || !ok || u.Version() != uuid.Version(version) {
			t.Errorf("version %d: %T %v, %v", version, id, id, err)
		}
	}
}

func TestInvalid(t *testing.T) {
	ms := time.Millisecond
	for version, newGenerator := range constructors {
		name := fmt.Sprintf("version %d", version)
		for opt, tt := range map[string]struct {
			opt  Option
			want string // "": valid
		}{
			"nil":                  {nil, "uuidgen: nil Option"},
			"nil clock":            {WithClock(nil), "uuidgen: WithClock: nil function"},
			"nil reader":           {WithRandom(nil), "uuidgen: WithRandom: nil reader"},
			"negative MaxAhead":    {WithMaxAhead(-1), "uuidgen: WithMaxAhead: negative duration -1ns"},
			"negative MaxWait":     {WithMaxWait(-1), "uuidgen: WithMaxWait: negative duration -1ns"},
			"clock":                {WithClock(time.Now), "uuidgen: WithClock does not apply to " + name},
			"MaxAhead":             {WithMaxAhead(ms), "uuidgen: WithMaxAhead does not apply to " + name},
			"MaxWait":              {WithMaxWait(ms), "uuidgen: WithMaxWait does not apply to " + name},
			"random":               {WithRandom(repeat(1)), ""},
			"MaxAhead beyond time": {WithMaxAhead(1<<63 - 1), "uuidgen: WithMaxAhead does not apply to " + name},
		} {
			want := tt.want
			if version != 4 && strings.Contains(want, "apply") {
				want = ""
			}
			g, err := newGenerator(WithRandom(repeat(2)), tt.opt)
			if (g == nil) == (err == nil) || want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("%s, %s: %v, want %q", name, opt, err, want)
			}
		}
		g := newGen(t, version)
		if err := g.Fill(nil); err != nil {
			t.Errorf("%s: Fill(nil): %v", name, err)
		}
		for u, err := range g.UUIDs(-1) {
			t.Errorf("%s: UUIDs(-1): %v, %v", name, u, err)
		}
	}
	var zero Generator
	ids := []uuid.UUID{uuid.Max}
	for range 2 {
		_, err := zero.NewUUID()
		_, idErr := zero.NewID()
		_, atErr := zero.NewUUIDAt(time.Unix(0, 0))
		for _, err := range []error{err, idErr, atErr, zero.Fill(ids), zero.Renew()} {
			if err == nil {
				t.Error("the zero Generator gives no error")
			}
		}
		for u, err := range zero.UUIDs(3) {
			if err == nil || u != uuid.Nil {
				t.Errorf("the zero Generator iterates over %v", u)
			}
		}
	}
	if ids[0] != uuid.Nil {
		t.Errorf("the zero Generator made %v", ids[0])
	}
	if d := zero.Ahead(); d != 0 {
		t.Errorf("the zero Generator is %v ahead", d)
	}
}

// An iterator gives what Fill would, in pieces, and can end early.
func TestUUIDs(t *testing.T) {
	clock := testClock{time.UnixMilli(1_700_000_000_000)}
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		a := newGen(t, 7, WithClock(clock.now), WithRandom(repeat(1)))
		b := newGen(t, 7, WithClock(clock.now), WithRandom(repeat(1)))
		want := make([]uuid.UUID, n)
		if err := a.Fill(want); err != nil {
			t.Fatal(err)
		}
		var got []uuid.UUID
		for u, err := range b.UUIDs(n) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, u)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d ids: %v, want %v", n, got, want)
		}
		for range b.UUIDs(n) {
			break
		}
	}
	broken := errors.New("broken")
	r := io.MultiReader(io.LimitReader(repeat(1), 256*8), iotest.ErrReader(broken))
	good, bad := 0, 0
	for u, err := range newGen(t, 7, WithRandom(r)).UUIDs(1000) {
		switch {
		case err == nil:
			good++
		case errors.Is(err, broken) && u == uuid.Nil:
			bad++
		default:
			t.Errorf("%v, %v", u, err)
		}
	}
	if good != 256 || bad != 1 {
		t.Errorf("%d ids and %d errors, want 256 and 1", good, bad)
	}
}

// The package-level functions draw from the defaults, which the process shares.
func TestDefaults(t *testing.T) {
	for version, tt := range map[uuid.Version]struct {
		newUUID  func() (uuid.UUID, error)
		defaults func() *Generator
	}{4: {NewV4, DefaultV4}, 7: {NewV7, DefaultV7}} {
		var last uuid.UUID
		for range 1000 {
			u, err := tt.newUUID()
			if err != nil || u.Version() != version {
				t.Fatalf("version %d: %v, %v", version, u, err)
			}
			v := newUUID(t, tt.defaults())
			if u == v || version != 4 && (!less(last, u) || !less(u, v)) {
				t.Fatalf("version %d: %v, %v, %v", version, last, u, v)
			}
			last = v
		}
	}
}

// Drawing allocates nothing an id.
func TestAllocs(t *testing.T) {
	for _, version := range []byte{4, 6, 7} {
		g := newGen(t, version)
		if n := testing.AllocsPerRun(2000, func() { _, _ = g.NewUUID() }); n != 0 {
			t.Errorf("version %d: %v allocations an id", version, n)
		}
	}
}
