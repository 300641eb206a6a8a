package fork

import (
	"bytes"
	"crypto/rand"
	"testing"
	"testing/synctest"
	"time"
)

// With the same bytes of the kernel, the clocks make a difference; with other bytes, those do.
func TestReader(t *testing.T) {
	kernel := rand.Reader
	defer func() { rand.Reader = kernel }()
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		for i := range 1000 {
			rand.Reader = zeros{byte(i / 500)}
			b := make([]byte, 100)
			if n, err := Reader.Read(b); n != len(b) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			for from := 0; from < len(b); from += 25 {
				if seen[string(b[from:from+25])] {
					t.Fatalf("the same bytes again at %d", i)
				}
				seen[string(b[from:from+25])] = true
			}
			if i != 499 { // then the bytes of the kernel change, and the clock stands still
				time.Sleep(time.Nanosecond)
			}
		}
	})
}

type zeros struct{ b byte }

func (z zeros) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte{z.b}, len(p))), nil
}

func TestReaderNothing(t *testing.T) {
	if n, err := Reader.Read(nil); n != 0 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
