package uuidgen

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
)

// Every bit that is not version, variant, multicast or time comes from the reader, and no byte is
// read in vain.
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
			opts := []Option{WithRandom(r)}
			if tt.version != 4 {
				opts = append(opts, WithClock(clock.now))
			}
			g := newGen(t, tt.version, opts...)
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

// The bytes of a reader stand in the ids in the order read, whether drawn one by one or as a batch.
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

// Without a reader the bits are the key stream of AES-256, counter from zero, under keys of the
// system's source. The stream is computed here block by block.
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

// Every random bit of ids from the system's source is 1 about half the time: 50,000 ± 1,000 of
// 100,000, more than six standard deviations.
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

// The system's source fails: so do the first id and ids once the stock is used up, and they come
// again when the source does.
func TestFailingSystem(t *testing.T) {
	broken := errors.New("broken")
	for version, newGenerator := range constructors {
		setSystemRandom(t, iotest.ErrReader(broken))
		g, err := newGenerator()
		if err != nil {
			t.Fatal(err)
		}
		if u, err := g.NewUUID(); u != uuid.Nil || !errors.Is(err, broken) {
			t.Errorf("version %d: %v, %v", version, u, err)
		}
		if g, err := newGenerator(WithRandom(repeat(1))); g == nil || err != nil {
			t.Errorf("version %d with a reader: %v, %v", version, g, err)
		}

		setSystemRandom(t, repeat(1))
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
		if err := g.Renew(); err != nil {
			t.Errorf("version %d: Renew: %v", version, err)
		}
		if u, err := g.NewUUID(); !errors.Is(err, broken) || u != uuid.Nil {
			t.Errorf("version %d, Renew: %v, %v: an id of the old stock", version, u, err)
		}
		setSystemRandom(t, repeat(3))
		newUUID(t, g)
	}
}

// Two copies of a process after the restore of a snapshot: the same stock, so the same random bits,
// until Renew.
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
