// Package stock keeps random bytes for generators, and finds out when the process may be a copy of the one that drew
// them.
package stock

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"io"
	"time"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/fork"
)

// MaxIdle is how old the last look at the clock may be. After a longer time the process may be a copy that was restored
// with both clocks at the present, which nothing else tells from one that was idle.
const MaxIdle = time.Second

// Source is where keys come from. It differs in copies of a machine whose kernels give the same bytes. Tests set it.
var Source io.Reader = fork.Reader

// KeyStream fills b with the key stream of AES-256 in counter mode under a key of [Source]. The key is used only here,
// so that the counter may start at zero.
func KeyStream(b []byte) error {
	var key [32]byte
	if _, err := io.ReadFull(Source, key[:]); err != nil {
		return err
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return err
	}
	clear(b)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(b, b)
	return nil
}

// size is how many bytes a Stock draws at once. They cost a key, some 0.6 µs.
const size = 1 << 10

// A Stock gives random numbers to a generator. It is not safe for concurrent use: the lock of the generator covers it.
// [Stock.Start] makes it ready.
type Stock struct {
	reader io.Reader // nil: the key stream
	number [8]byte   // what was read of reader, here so that it is not allocated for each number

	clock  clock.Clock
	origin clock.Origin
	looked time.Time

	bytes *[size]byte // nil until the first draw
	left  []byte      // of bytes
}

// Start sets the reader from which every number is read, nil for the system's source, and makes the Stock watch for
// copies from now on.
func (s *Stock) Start(reader io.Reader) {
	s.reader = reader
	s.clock.Start()
	s.origin = s.clock.Origin()
	s.looked = time.Now()
}

// Now returns the time of the system's clock, and whether the process may be a copy of the one that called before: the
// generation of package fork is another one, or wall and monotonic clock, which are compared once a millisecond, are
// apart. Such a copy, and a process that was idle for [MaxIdle], gives away its bytes.
func (s *Stock) Now() (now time.Time, copied bool) {
	if ns, ok := s.clock.At(s.clock.Elapsed()); ok && fork.Generation() == s.origin.Fork() {
		return time.Unix(0, int64(ns)), false
	}
	now = s.clock.Now()
	// Unsigned, so that a clock that goes back counts: a bubble of testing/synctest has another monotonic clock.
	looked := time.Now()
	idle := uint64(looked.Sub(s.looked)) >= uint64(MaxIdle)
	s.looked = looked
	origin := s.clock.Origin()
	if copied = origin != s.origin; copied || idle {
		s.origin, s.left = origin, nil
	}
	return now, copied
}

// Renew discards the bytes in stock.
func (s *Stock) Renew() { s.left = nil }

// Uint64 returns a random number. The caller has called [Stock.Now] before.
func (s *Stock) Uint64() (uint64, error) {
	if s.reader != nil {
		if _, err := io.ReadFull(s.reader, s.number[:]); err != nil {
			return 0, err
		}
		return binary.BigEndian.Uint64(s.number[:]), nil
	}
	if len(s.left) == 0 {
		if s.bytes == nil {
			s.bytes = new([size]byte)
		}
		if err := KeyStream(s.bytes[:]); err != nil {
			return 0, err
		}
		s.left = s.bytes[:]
	}
	n := binary.BigEndian.Uint64(s.left)
	binary.BigEndian.PutUint64(s.left, 0)
	s.left = s.left[8:]
	return n, nil
}

// Disturb does what [clock.Clock.Disturb] does, and makes the last look at the clock older. It is for tests.
func (s *Stock) Disturb(wall, mono, idle time.Duration) {
	s.clock.Disturb(wall, mono)
	s.looked = s.looked.Add(-idle)
}
