package stock

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"
)

// repeat gives one byte for ever.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func setSource(t *testing.T, r io.Reader) {
	old := Source
	t.Cleanup(func() { Source = old })
	Source = r
}

func number(t *testing.T, s *Stock) uint64 {
	t.Helper()
	n, err := s.Uint64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The numbers are the key stream of AES-256 in counter mode, computed here block by block, and each stock has a key of its own.
func TestKeyStream(t *testing.T) {
	setSource(t, repeat(7))
	block, err := aes.NewCipher(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	var s Stock
	s.Start(nil)
	for i := range uint64(2 * size / 16) {
		var want [16]byte
		binary.BigEndian.PutUint64(want[8:], i%(size/16))
		block.Encrypt(want[:], want[:])
		a, b := number(t, &s), number(t, &s)
		if a != binary.BigEndian.Uint64(want[:8]) || b != binary.BigEndian.Uint64(want[8:]) {
			t.Fatalf("block %d: %x %x, want %x", i, a, b, want)
		}
		for _, used := range s.bytes[:16*(i%(size/16)+1)] {
			if used != 0 {
				t.Fatalf("block %d: what was used is kept", i)
			}
		}
	}
}

// What a copy finds, and what it discards.
func TestNow(t *testing.T) {
	const old = 2 * time.Millisecond
	for name, test := range map[string]struct {
		wall, mono, idle  time.Duration
		copied, discarded bool
	}{
		"nothing":                     {0, 0, 0, false, false},
		"a millisecond":               {old, old, 0, false, false},
		"idle":                        {old, old, MaxIdle, false, true},
		"the monotonic clock goes on": {time.Hour, old, 0, true, true},
		"the wall clock goes on":      {0, time.Hour, 0, true, true},
		"the wall clock was set back": {-time.Hour, old, 0, true, true},
		"set by what NTP adjusts":     {old + time.Millisecond, old, 0, false, false},
		"another machine, younger":    {0, -time.Hour, 0, true, true},
	} {
		setSource(t, repeat(1))
		var s Stock
		s.Start(nil)
		s.Now()
		first := number(t, &s)
		second := number(t, &s)
		setSource(t, repeat(2))
		s.Disturb(test.wall, test.mono, test.idle)
		if _, copied := s.Now(); copied != test.copied {
			t.Errorf("%s: copied %t", name, copied)
		}
		if _, copied := s.Now(); copied {
			t.Errorf("%s: copied again", name)
		}
		var fresh Stock
		fresh.Start(nil)
		n, want := number(t, &s), number(t, &fresh)
		if (n == want) != test.discarded || n == first || n == second {
			t.Errorf("%s: discarded %t", name, n == want)
		}
	}
}

// A reader gives eight bytes for each number, and its error; a failed draw leaves nothing behind.
func TestReader(t *testing.T) {
	var s Stock
	s.Start(bytes.NewReader([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}))
	if n := number(t, &s); n != 0x0102030405060708 {
		t.Errorf("%#x", n)
	}
	if n, err := s.Uint64(); !errors.Is(err, io.ErrUnexpectedEOF) || n != 0 {
		t.Errorf("%#x, %v", n, err)
	}
	broken := errors.New("broken")
	setSource(t, iotest.ErrReader(broken))
	var system Stock
	system.Start(nil)
	for range 2 {
		if n, err := system.Uint64(); !errors.Is(err, broken) || n != 0 {
			t.Errorf("%#x, %v", n, err)
		}
	}
	Source = repeat(3)
	a := number(t, &system)
	system.Renew()
	if b := number(t, &system); a != b { // the first of the same key
		t.Errorf("%#x after Renew, %#x before", b, a)
	}
}
