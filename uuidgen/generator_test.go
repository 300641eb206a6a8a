package uuidgen

import (
	"bytes"
	"crypto/aes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
)

var constructors = map[byte]func(...Option) (*Generator, error){4: NewV4, 6: NewV6, 7: NewV7}

func newGen(t testing.TB, version byte, opts ...Option) *Generator {
	t.Helper()
	g, err := constructors[version](opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newUUID(t testing.TB, g *Generator) uuid.UUID {
	t.Helper()
	u, err := g.NewUUID()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func less(a, b uuid.UUID) bool { return bytes.Compare(a[:], b[:]) < 0 }

// A testClock is a clock that stands where it is set.
type testClock struct{ t time.Time }

func (c *testClock) now() time.Time { return c.t }

// repeat is a reader that gives one octet for ever.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// counting counts the octets read through it.
type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// setSystemRandom stands in for the system's source until the test ends.
func setSystemRandom(t *testing.T, r io.Reader) {
	old := rand.Reader
	t.Cleanup(func() { rand.Reader = old })
	rand.Reader = r
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of RFC 9562, appendix A, come out of the generators when clock and random bits are those that the vectors
// hold. The bits under version, variant and multicast are given inverted, since they must be written over.
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
		// The vector's 12 bits after the milliseconds are 0xCC3 = 3267; 3267/4096 ms are 797,607.4 ns.
		{7, at.Add(797_608), "58c4dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
	} {
		clock := testClock{tt.at}
		g := newGen(t, tt.version, WithClock(clock.now), WithRandom(bytes.NewReader(fromHex(t, tt.random))))
		if got := newUUID(t, g).String(); got != tt.want {
			t.Errorf("version %d: %s, want %s", tt.version, got, tt.want)
		}
	}
}

// Every bit that is not version, variant, multicast or time comes from the reader, and no octet is read in vain.
func TestRandomBits(t *testing.T) {
	clock := testClock{time.Unix(0, 0)}
	for _, tt := range []struct {
		version    byte
		width      int
		zeros, one string
	}{
		{4, 16, "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"},
		{6, 8, "1b21dd21-3814-6000-8000-010000000000", "1b21dd21-3814-6000-bfff-ffffffffffff"},
		{7, 8, "00000000-0000-7000-8000-000000000000", "00000000-0000-7000-bfff-ffffffffffff"},
	} {
		for b, want := range map[repeat]string{0: tt.zeros, 0xff: tt.one} {
			r := &counting{r: b}
			g := newGen(t, tt.version, WithClock(clock.now), WithRandom(r))
			if got := newUUID(t, g).String(); got != want {
				t.Errorf("version %d of %#x: %s, want %s", tt.version, byte(b), got, want)
			}
			if err := g.Fill(make([]uuid.UUID, 3000)); err != nil {
				t.Fatal(err)
			}
			if want := 3001 * tt.width; r.n != want {
				t.Errorf("version %d: %d octets read for 3001 ids, want %d", tt.version, r.n, want)
			}
		}
	}
}

// The octets of a reader stand in the ids in the order read, whether drawn one by one or as a batch.
func TestReaderOrder(t *testing.T) {
	const n = 2500
	octets := make([]byte, n*16)
	mathrand.NewChaCha8([32]byte{1}).Read(octets)
	for _, version := range []byte{4, 6, 7} {
		width := 8
		if version == 4 {
			width = 16
		}
		batch := make([]uuid.UUID, n)
		r := iotest.OneByteReader(bytes.NewReader(octets))
		if err := newGen(t, version, WithRandom(r)).Fill(batch); err != nil {
			t.Fatal(err)
		}
		single := newGen(t, version, WithRandom(iotest.DataErrReader(bytes.NewReader(octets[:n*width]))))
		for i, u := range batch {
			v := newUUID(t, single)
			want := octets[i*width:][:width]
			for _, got := range [][]byte{u[16-width:], v[16-width:]} {
				if got[width-8]&0x3f != want[width-8]&0x3f || !bytes.Equal(got[width-5:], want[width-5:]) {
					t.Fatalf("version %d, id %d: %x of %x", version, i, got, want)
				}
			}
		}
		if _, err := single.NewUUID(); !errors.Is(err, io.EOF) {
			t.Errorf("version %d at the reader's end: %v", version, err)
		}
	}
}

// Without a reader the bits are the key stream of AES-256, counter from zero, under keys of the system's source. The
// stream is computed here block by block.
func TestSystemRandom(t *testing.T) {
	setSystemRandom(t, repeat(7))
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	g := newGen(t, 4)
	for i := range uint64(504) {
		var want uuid.UUID
		binary.BigEndian.PutUint64(want[8:], i)
		block.Encrypt(want[:], want[:])
		want[6] = want[6]&0x0f | 0x40
		want[8] = want[8]&0x3f | 0x80
		if got := newUUID(t, g); got != want {
			t.Fatalf("id %d: %v, want %v", i, got, want)
		}
	}

	// A large batch has a key of its own, and no trace of the batch before in it.
	var batches [2][300]uuid.UUID
	for i := range batches {
		if err := g.Fill(batches[i][:]); err != nil {
			t.Fatal(err)
		}
	}
	var want uuid.UUID
	block.Encrypt(want[:], want[:])
	if got := batches[0][0]; got[0] != want[0] || !bytes.Equal(got[9:], want[9:]) || batches[0] != batches[1] {
		t.Errorf("batches under one key: %v and %v, want %v", got, batches[1][0], want)
	}

	setSystemRandom(t, repeat(8)) // the next stock asks for a new key
	before := newUUID(t, g)
	setSystemRandom(t, repeat(9))
	if err := g.Renew(); err != nil {
		t.Fatal(err)
	}
	after := newUUID(t, g)
	for i, u := range []uuid.UUID{before, after} {
		block, err := aes.NewCipher(bytes.Repeat([]byte{byte(8 + i)}, 32))
		if err != nil {
			t.Fatal(err)
		}
		var want uuid.UUID
		block.Encrypt(want[:], want[:])
		if u[0] != want[0] || !bytes.Equal(u[9:], want[9:]) {
			t.Errorf("after key %d: %v is not of %v", 8+i, u, want)
		}
	}
}

// Every random bit of ids from the system's source is 1 about half the time: 50,000 ± 1,000 of 100,000, more than six
// standard deviations.
func TestBitsBalanced(t *testing.T) {
	for version, fixed := range map[byte]string{
		4: "00000000-0000-f000-c000-000000000000",
		6: "ffffffff-ffff-ffff-c000-010000000000",
		7: "ffffffff-ffff-ffff-c000-000000000000",
	} {
		ids := make([]uuid.UUID, 100_000)
		if err := newGen(t, version).Fill(ids); err != nil {
			t.Fatal(err)
		}
		mask := uuid.MustParse(fixed)
		for bit := range 128 {
			octet, m := bit/8, byte(0x80)>>(bit%8)
			if mask[octet]&m != 0 {
				continue
			}
			ones := 0
			for i := range ids {
				if ids[i][octet]&m != 0 {
					ones++
				}
			}
			if ones < 49_000 || ones > 51_000 {
				t.Errorf("version %d, bit %d: %d of 100,000 are 1", version, bit, ones)
			}
		}
	}
}

// Fields in, fields out: version, variant and time are what another implementation or the definition of the field reads.
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

// A model in arbitrary precision: the timestamp is the clock's, rounded down to a step, or the last one plus one,
// whichever is greater.
type model struct {
	epoch    time.Time
	num, den int64 // steps per nanosecond
	next     *big.Int
}

func (m *model) draw(now time.Time) *big.Int {
	ns := new(big.Int).Mul(big.NewInt(now.Unix()-m.epoch.Unix()), big.NewInt(1e9))
	ns.Add(ns, big.NewInt(int64(now.Nanosecond())))
	step := ns.Mul(ns, big.NewInt(m.num))
	step.Div(step, big.NewInt(m.den))
	if step.Cmp(m.next) < 0 {
		step.Set(m.next)
	}
	m.next.Add(step, big.NewInt(1))
	return step
}

func (m *model) uuid(version byte, step *big.Int) uuid.UUID {
	high := new(big.Int).Rsh(step, 12)
	high.Lsh(high, 4).Or(high, big.NewInt(int64(version)))
	high.Lsh(high, 12).Or(high, new(big.Int).And(step, big.NewInt(0xfff)))
	var u uuid.UUID
	high.FillBytes(u[:8])
	u[8] = 0x80
	if version == 6 {
		u[10] = 1
	}
	return u
}

func TestModel(t *testing.T) {
	for _, version := range []byte{6, 7} {
		for seed := range uint64(30) {
			rnd := mathrand.New(mathrand.NewPCG(seed, uint64(version)))
			m := model{epoch: time.Unix(0, 0), num: 4096, den: 1e6, next: new(big.Int)}
			if version == 6 {
				m = model{epoch: time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), num: 1, den: 100, next: new(big.Int)}
			}
			clock := testClock{time.Unix(rnd.Int64N(4e9), rnd.Int64N(1e9))}
			fromReader := newGen(t, version, WithClock(clock.now), WithRandom(repeat(0)))
			fromStock := newGen(t, version, WithClock(clock.now)) // only its timestamps can be foretold
			for range 100 {
				switch rnd.IntN(8) {
				case 0: // years ahead, in the end beyond what a page counts
					clock.t = clock.t.AddDate(rnd.IntN(20), 0, 0)
				case 1: // back
					clock.t = clock.t.Add(-time.Duration(rnd.Int64N(int64(time.Second))))
				case 2: // a moment
					clock.t = clock.t.Add(time.Duration(rnd.Int64N(int64(time.Millisecond))))
				case 3:
					if err := fromStock.Renew(); err != nil {
						t.Fatal(err)
					}
				}
				n := 1
				if rnd.IntN(10) == 0 {
					n = rnd.IntN(2500)
				}
				ids, others := make([]uuid.UUID, n), make([]uuid.UUID, n)
				if n == 1 {
					ids[0], others[0] = newUUID(t, fromReader), newUUID(t, fromStock)
				} else if err := errors.Join(fromReader.Fill(ids), fromStock.Fill(others)); err != nil {
					t.Fatal(err)
				}
				for i, got := range ids {
					want := m.uuid(version, m.draw(clock.t))
					if got != want {
						t.Fatalf("seed %d, clock %v, id %d of %d: %v, want %v", seed, clock.t, i, n, got, want)
					}
					if other := others[i]; [8]byte(other[:8]) != [8]byte(want[:8]) {
						t.Fatalf("seed %d, clock %v, id %d of %d: %v, want the timestamp of %v", seed, clock.t, i, n, other, want)
					}
				}
			}
		}
	}
}

// A clock that leaps further than the state of a page counts, and back.
func TestLeaps(t *testing.T) {
	for _, version := range []byte{6, 7} {
		clock := testClock{time.Unix(0, 0)}
		g := newGen(t, version, WithClock(clock.now))
		last := newUUID(t, g)
		for _, year := range []int{2400, 1990, 2700, 3100, 5000, 2026, 5235} {
			clock.t = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			u := newUUID(t, g)
			if !less(last, u) {
				t.Fatalf("version %d, year %d: %v after %v", version, year, u, last)
			}
			got, err := Time(u)
			if err != nil || got.Year() < year {
				t.Fatalf("version %d, year %d: %v, %v", version, year, got, err)
			}
			last = u
		}
	}
}

// The clock is read once for a single id, also for the first of a page.
func TestOneLook(t *testing.T) {
	for version, want := range map[byte]int{4: 0, 6: 5000, 7: 5000} {
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

// With a clock that stands still the timestamp counts on, and after 4096 ids carries into the milliseconds.
func TestFrozenClock(t *testing.T) {
	clock := testClock{time.UnixMilli(1_700_000_000_123)}
	g := newGen(t, 7, WithClock(clock.now))
	ids := make([]uuid.UUID, 10_000)
	for i := range ids {
		ids[i] = newUUID(t, g)
		ms := int64(binary.BigEndian.Uint64(ids[i][:8]) >> 16)
		fraction := int(binary.BigEndian.Uint16(ids[i][6:]) & 0xfff)
		if ms != 1_700_000_000_123+int64(i)/4096 || fraction != i%4096 {
			t.Fatalf("id %d: %d ms and %d", i, ms, fraction)
		}
	}
	// Ten thousand ids are 2.44 ms, so that 3 ms later the clock has caught up.
	clock.t = clock.t.Add(3 * time.Millisecond)
	u := newUUID(t, g)
	if got, err := Time(u); err != nil || !got.Equal(clock.t) {
		t.Errorf("3 ms later: %v, %v; want %v", got, err, clock.t)
	}
	if !less(ids[len(ids)-1], u) {
		t.Errorf("%v after %v", u, ids[len(ids)-1])
	}
}

func TestStepBack(t *testing.T) {
	for _, version := range []byte{6, 7} {
		start := time.UnixMilli(1_700_000_000_000)
		clock := testClock{start}
		g := newGen(t, version, WithClock(clock.now))
		last := newUUID(t, g)
		for i := range 3000 {
			clock.t = start.Add(-time.Hour + time.Duration(i)*time.Millisecond)
			u := newUUID(t, g)
			if !less(last, u) {
				t.Fatalf("version %d, id %d after the step back: %v after %v", version, i, u, last)
			}
			if held, err := Time(u); err != nil || held.Sub(start) > time.Millisecond {
				t.Fatalf("version %d, id %d after the step back: %v, %v; want %v held", version, i, held, err, start)
			}
			last = u
		}
	}
}

// The order of ids from two generators is the order of their clocks, to a step of the timestamp.
func TestOrderIsTime(t *testing.T) {
	rnd := mathrand.New(mathrand.NewPCG(3, 4))
	for version, step := range map[byte]int64{6: 100, 7: 245} {
		for range 2000 {
			a := testClock{time.Unix(rnd.Int64N(9e10), rnd.Int64N(1e9))}
			b := testClock{a.t.Add(time.Duration(step + rnd.Int64N(1<<rnd.IntN(60))))}
			u := newUUID(t, newGen(t, version, WithClock(a.now), WithRandom(repeat(0xff))))
			v := newUUID(t, newGen(t, version, WithClock(b.now), WithRandom(repeat(0))))
			if !less(u, v) {
				t.Fatalf("%v of %v, %v of %v", u, a.t, v, b.t)
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

func TestFailingReader(t *testing.T) {
	broken := errors.New("broken")
	for _, version := range []byte{4, 6, 7} {
		width := 8
		if version == 4 {
			width = 16
		}
		for _, tt := range []struct {
			name string
			r    func() io.Reader
			want error
		}{
			{"error", func() io.Reader { return iotest.ErrReader(broken) }, broken},
			{"empty", func() io.Reader { return bytes.NewReader(nil) }, io.EOF},
			{"short", func() io.Reader { return io.LimitReader(repeat(1), int64(width-1)) }, io.ErrUnexpectedEOF},
			{"error late", func() io.Reader {
				return io.MultiReader(io.LimitReader(repeat(1), int64(width-1)), iotest.ErrReader(broken))
			}, broken},
		} {
			g := newGen(t, version, WithRandom(tt.r()))
			if u, err := g.NewUUID(); !errors.Is(err, tt.want) || u != uuid.Nil {
				t.Errorf("version %d, %s: %v, %v", version, tt.name, u, err)
			}
			if id, err := newGen(t, version, WithRandom(tt.r())).NewID(); !errors.Is(err, tt.want) || id != nil {
				t.Errorf("version %d, %s: NewID: %v, %v", version, tt.name, id, err)
			}
		}

		// The reader fails in the middle of a batch: no id of it is left.
		g := newGen(t, version, WithRandom(io.LimitReader(repeat(1), int64(width*1500))))
		ids := make([]uuid.UUID, 3000)
		for i := range ids {
			ids[i] = uuid.Max
		}
		if err := g.Fill(ids); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("version %d: Fill: %v", version, err)
		}
		if i := slices.IndexFunc(ids, func(u uuid.UUID) bool { return u != uuid.Nil }); i >= 0 {
			t.Errorf("version %d: Fill failed and left %v at %d", version, ids[i], i)
		}
	}
}

// The system's source fails: so does making a Generator, so do ids once the stock is used up, and they come again when
// the source does.
func TestFailingSystem(t *testing.T) {
	broken := errors.New("broken")
	for version, newGenerator := range constructors {
		setSystemRandom(t, iotest.ErrReader(broken))
		if g, err := newGenerator(); g != nil || !errors.Is(err, broken) {
			t.Errorf("version %d: %v, %v", version, g, err)
		}
		if g, err := newGenerator(WithRandom(repeat(1))); g == nil || err != nil {
			t.Errorf("version %d with a reader: %v, %v", version, g, err)
		}

		setSystemRandom(t, repeat(1))
		g := newGen(t, version)
		last := newUUID(t, g)
		setSystemRandom(t, iotest.ErrReader(broken))
		for _, n := range []int{1000, 5000} {
			ids := make([]uuid.UUID, n)
			for i := range ids {
				ids[i] = uuid.Max
			}
			if err := g.Fill(ids); !errors.Is(err, broken) || ids[0] != uuid.Nil || ids[n-1] != uuid.Nil {
				t.Errorf("version %d, source broken: Fill: %v, %v", version, ids[0], err)
			}
		}
		n := 0
		for ; n < 2000; n++ {
			u, err := g.NewUUID()
			if err != nil {
				if !errors.Is(err, broken) || u != uuid.Nil {
					t.Errorf("version %d, stock used up: %v, %v", version, u, err)
				}
				break
			}
			last = u
		}
		if most := map[byte]int{4: 504 - 1, 6: 1008 - 1, 7: 1008 - 1}[version]; n != most {
			t.Errorf("version %d: %d ids of the stock, want %d", version, n, most)
		}
		if err := g.Fill(make([]uuid.UUID, 5)); !errors.Is(err, broken) {
			t.Errorf("version %d, stock used up: Fill: %v", version, err)
		}
		setSystemRandom(t, repeat(2))
		if u := newUUID(t, g); version != 4 && !less(last, u) {
			t.Errorf("version %d, source back: %v after %v", version, u, last)
		}

		setSystemRandom(t, iotest.ErrReader(broken))
		if err := g.Renew(); !errors.Is(err, broken) {
			t.Errorf("version %d: Renew: %v", version, err)
		}
		if u, err := g.NewUUID(); !errors.Is(err, broken) || u != uuid.Nil {
			t.Errorf("version %d, Renew failed: %v, %v: an id of the old stock", version, u, err)
		}
		setSystemRandom(t, repeat(3))
		newUUID(t, g)
	}
}

// Two copies of a process after the restore of a snapshot: the same stock, so the same random bits, until Renew.
func TestRenew(t *testing.T) {
	setSystemRandom(t, repeat(1))
	a, b := newGen(t, 4), newGen(t, 4)
	if u, v := newUUID(t, a), newUUID(t, b); u != v {
		t.Fatalf("the copies differ before Renew: %v, %v", u, v)
	}
	setSystemRandom(t, mathrand.NewChaCha8([32]byte{}))
	seen := make(map[uuid.UUID]bool)
	for _, g := range []*Generator{a, b} {
		if err := g.Renew(); err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			seen[newUUID(t, g)] = true
		}
	}
	if len(seen) != 4000 {
		t.Errorf("%d of 4000 ids are distinct after Renew", len(seen))
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
	for version, newGenerator := range constructors {
		if g, err := newGenerator(WithClock(nil)); g != nil || err == nil {
			t.Errorf("version %d: a nil clock: %v, %v", version, g, err)
		}
		if g, err := newGenerator(WithRandom(nil)); g != nil || err == nil {
			t.Errorf("version %d: a nil reader: %v, %v", version, g, err)
		}
		g := newGen(t, version)
		if err := g.Fill(nil); err != nil {
			t.Errorf("version %d: Fill(nil): %v", version, err)
		}
	}
	var zero Generator
	ids := []uuid.UUID{uuid.Max}
	for range 2 {
		_, err := zero.NewUUID()
		_, idErr := zero.NewID()
		for _, err := range []error{err, idErr, zero.Fill(ids), zero.Renew()} {
			if err == nil {
				t.Error("the zero Generator gives no error")
			}
		}
	}
	if ids[0] != uuid.Nil {
		t.Errorf("the zero Generator made %v", ids[0])
	}
}

// What one goroutine has, the next id of every other is greater than.
func TestConcurrentOrder(t *testing.T) {
	for _, version := range []byte{6, 7} {
		for name, opts := range map[string][]Option{
			"system": nil,
			"reader": {WithRandom(mathrand.NewChaCha8([32]byte{}))},
			"frozen": {WithClock(func() time.Time { return time.Unix(1e9, 0) })},
		} {
			g := newGen(t, version, opts...)
			var shown atomic.Pointer[uuid.UUID]
			shown.Store(new(uuid.UUID))
			var wg sync.WaitGroup
			for worker := range 8 {
				wg.Go(func() {
					ids := make([]uuid.UUID, 1)
					for i := range 2000 {
						if i%100 == 99 {
							ids = make([]uuid.UUID, 1+(i*worker)%1500)
							if worker == 0 {
								if err := g.Renew(); err != nil {
									t.Error(err)
								}
							}
						}
						before := *shown.Load()
						if len(ids) == 1 {
							u, err := g.NewUUID()
							if err != nil {
								t.Error(err)
								return
							}
							ids[0] = u
						} else if err := g.Fill(ids); err != nil {
							t.Error(err)
							return
						}
						for _, u := range ids {
							if !less(before, u) {
								t.Errorf("version %d, %s: %v after %v", version, name, u, before)
								return
							}
							before = u
						}
						shown.Store(&before)
						ids = ids[:1]
					}
				})
			}
			wg.Wait()
		}
	}
}

// Ten million ids, drawn on all processors, are distinct.
func TestUnique(t *testing.T) {
	total := 10_000_000
	if testing.Short() || raceEnabled {
		total = 300_000
	}
	for _, version := range []byte{4, 6, 7} {
		g := newGen(t, version)
		all := make([]uuid.UUID, total)
		workers := runtime.GOMAXPROCS(0)
		var parts [][]uuid.UUID
		var wg sync.WaitGroup
		for w := range workers {
			part := all[total/workers*w : total/workers*(w+1)]
			parts = append(parts, part)
			wg.Go(func() {
				for rest := part; len(rest) > 0; {
					n := min(len(rest), 1500)
					if err := g.Fill(rest[:n/2]); err != nil {
						t.Error(err)
					}
					for i := n / 2; i < n; i++ {
						var err error
						if rest[i], err = g.NewUUID(); err != nil {
							t.Error(err)
						}
					}
					rest = rest[n:]
				}
				if version == 4 {
					slices.SortFunc(part, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
				}
			})
		}
		wg.Wait()

		// The parts are sorted, those of versions 6 and 7 as they came. Merge them.
		var last uuid.UUID
		merged := 0
		for {
			next := -1
			for i, p := range parts {
				if len(p) > 0 && (next < 0 || less(p[0], parts[next][0])) {
					next = i
				}
			}
			if next < 0 {
				break
			}
			u := parts[next][0]
			if !less(last, u) {
				t.Fatalf("version %d: %v after %v among %d ids", version, u, last, total)
			}
			last, parts[next] = u, parts[next][1:]
			merged++
		}
		if want := total / workers * workers; merged != want {
			t.Errorf("version %d: %d ids, want %d", version, merged, want)
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
