package uuidgen

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/stock"
)

var constructors = map[byte]func(...Option) (*Generator, error){4: NewV4Generator, 6: NewV6Generator, 7: NewV7Generator}

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

// A testClock is a clock that shows the time it is set to.
type testClock struct{ t time.Time }

func (c *testClock) now() time.Time { return c.t }

// repeat is a reader that gives one byte for ever.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// counting counts the bytes read through it.
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
	old := stock.Source
	t.Cleanup(func() { stock.Source = old })
	stock.Source = r
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func minV6(t time.Time) (uuid.UUID, error) { r, err := ClosedV6(t, t); return r.Min, err }
func maxV6(t time.Time) (uuid.UUID, error) { r, err := ClosedV6(t, t); return r.Max, err }
func minV7(t time.Time) (uuid.UUID, error) { r, err := ClosedV7(t, t); return r.Min, err }
func maxV7(t time.Time) (uuid.UUID, error) { r, err := ClosedV7(t, t); return r.Max, err }
