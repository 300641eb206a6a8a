package uuidgen

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/stock"
)

// The clocks that a restored copy of the process finds, and how many ids it may repeat at most. A
// reader is for the caller to renew, and given instants need no stock.
func TestRestored(t *testing.T) {
	const old = 2 * time.Millisecond // the last reading of the wall clock is not used any more
	for name, tt := range map[string]struct {
		wall, mono, idle time.Duration
		found            bool
	}{
		"the monotonic clock goes on":    {time.Hour, old, 0, true},
		"another machine":                {time.Hour, -24 * time.Hour, 0, true},
		"both show the present":          {old, old, stock.MaxIdle, true},
		"both show the present, at once": {old, old, 0, false}, // no clock gives it away
	} {
		for version := range constructors {
			for _, custom := range []bool{false, true} {
				if custom && version == 4 {
					continue
				}
				var opts []Option
				if custom {
					opts = append(opts, WithClock(func() time.Time { return time.Unix(1e9, 0) }))
				}
				setSystemRandom(t, repeat(1))
				g := newGen(t, version, opts...)
				newUUID(t, g)
				setSystemRandom(t, repeat(2))
				stream := keyStream(t, 2)
				g.system.Disturb(tt.wall, tt.mono)
				g.looked.Add(-int64(tt.idle))
				limit := 1
				if version == 4 {
					limit = lookEvery/2 + 1
				}
				repeated := 0
				for ; repeated < 300; repeated++ {
					if u := newUUID(t, g); bytes.Contains(stream, u[11:]) {
						break
					}
				}
				if tt.found != (repeated < limit) {
					t.Errorf("%s, version %d, clock of its own %t: %d ids of the old stock, want fewer than %d to be %t",
						name, version, custom, repeated, limit, tt.found)
				}
			}
		}
	}
}

// The version 6 of package peabody01 keeps its clock sequence from one page to the next, and has another one in a copy (RFC 4122,
// section 4.1.5).
func TestClockSequence(t *testing.T) {
	c := idoption.New("test", "version 6")
	c.V6 = &idoption.V6{Node: 0xabc << 36, RandomBits: 36}
	g := newFormatGenerator(c)
	sequence := func() int {
		t.Helper()
		u := newUUID(t, g)
		if node := binary.BigEndian.Uint64(u[8:]) & (1<<48 - 1); u[6]>>4 != 6 || node>>36 != 0xabc {
			t.Fatalf("%v: version %d, node %#x", u, u.Version(), node)
		}
		return u.ClockSequence()
	}
	first := sequence()
	for range 3 * pageWords {
		if got := sequence(); got != first {
			t.Fatalf("clock sequence %#x after %#x", got, first)
		}
	}
	if err := g.Fill(make([]uuid.UUID, 3*pageWords)); err != nil || sequence() != first {
		t.Errorf("after a batch: %v, another clock sequence", err)
	}
	g.system.Disturb(time.Hour, 2*time.Millisecond)
	second := sequence()
	if second == first || sequence() != second {
		t.Errorf("restored: clock sequence %#x after %#x", second, first)
	}
	if err := g.Renew(); err != nil || sequence() == second {
		t.Errorf("renewed: %v, the same clock sequence", err)
	}
	if u, err := g.NewUUIDAt(time.Unix(1e9, 0)); !errors.Is(err, errors.ErrUnsupported) || u != uuid.Nil {
		t.Errorf("%v, %v, want ErrUnsupported", u, err)
	}
}

// keyStream is the stock of random bytes under a key of which all bytes are b.
func keyStream(t *testing.T, b byte) []byte {
	t.Helper()
	block, err := aes.NewCipher(bytes.Repeat([]byte{b}, 32))
	if err != nil {
		t.Fatal(err)
	}
	var stream []byte
	for i := range pageWords / 2 {
		counter := uuid.UUID{14: byte(i >> 8), 15: byte(i)}
		block.Encrypt(counter[:], counter[:])
		stream = append(stream, counter[:]...)
	}
	return stream
}
