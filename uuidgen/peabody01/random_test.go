package peabody01

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// bytes gives these, and then ones.
type octets []byte

func (o *octets) Read(b []byte) (int, error) {
	n := copy(b, *o)
	*o = (*o)[n:]
	for i := n; i < len(b); i++ {
		b[i] = 0xFF
	}
	return len(b), nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestNode(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			// The node is what was drawn, and zeros are drawn again.
			source := make(octets, 7*8)
			g, err := k.make(uuidgen.WithRandom(&source))
			must(t, err)
			if got, width := k.node(t, next(t, g)); got != 1<<width-1 {
				t.Errorf("node %#x, want %d ones", got, width)
			}

			g, err = k.make(uuidgen.WithRandom(zeros{}))
			must(t, err)
			if u, err := g.NewUUID(); err == nil || u != uuid.Nil {
				t.Errorf("of zeros alone: %v, %v", u, err)
			}

			// The machine id is right after the sequence, and is enough for a node that is not
			// zero.
			_, width := k.node(t, uuid.Must(g0(k).NewUUID()))
			for _, bits := range []int{1, 10, width - 16} {
				for _, id := range []uint64{0, 1, 1<<bits - 1} {
					g, err := k.make(WithMachineID(id, bits))
					must(t, err)
					if got, _ := k.node(t, next(t, g)); got>>(width-bits) != id || got == 0 {
						t.Errorf("machine %#x of %d bits: node %#x", id, bits, got)
					}
				}
				g, err := k.make(WithMachineID(1, bits), uuidgen.WithRandom(zeros{}))
				must(t, err)
				if got, _ := k.node(t, next(t, g)); got != 1<<(width-bits) {
					t.Errorf("machine 1 of %d bits, zeros: node %#x", bits, got)
				}
				g, err = k.make(WithMachineID(0, bits), uuidgen.WithRandom(zeros{}))
				must(t, err)
				if _, err := g.NewUUID(); err == nil {
					t.Error("machine 0, zeros: no error")
				}
			}
			for _, c := range []struct {
				id   uint64
				bits int
			}{{0, 0}, {0, -1}, {0, width - 15}, {0, 64}, {2, 1}, {1 << 20, 20}} {
				if _, err := k.make(WithMachineID(c.id, c.bits)); err == nil {
					t.Errorf("machine %#x of %d bits: no error", c.id, c.bits)
				}
			}
		})
	}
}

func g0(k kind) *uuidgen.Generator {
	g, err := k.make()
	if err != nil {
		panic(err)
	}
	return g
}

func TestRandomSourceFails(t *testing.T) {
	broken := errors.New("broken")
	for _, k := range kinds() {
		for name, c := range map[string]struct {
			r    io.Reader
			want error
		}{
			"at once":  {iotest.ErrReader(broken), broken},
			"at end":   {bytes.NewReader(nil), io.EOF},
			"too soon": {bytes.NewReader(make([]byte, 3)), io.ErrUnexpectedEOF},
		} {
			g, err := k.make(uuidgen.WithRandom(c.r))
			if err == nil {
				var u uuid.UUID
				if u, err = g.NewUUID(); u != uuid.Nil {
					t.Errorf("%s, %s: made %v", k.name, name, u)
				}
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s, %s: error %v, want %v", k.name, name, err, c.want)
			}
		}
		// What failed costs no sequence, and a source that stutters is read to the end.
		frozen := uuidgen.WithClock(func() time.Time { return someTime })
		source := &failing{r: iotest.OneByteReader(new(octets))}
		g, err := k.make(uuidgen.WithRandom(source), frozen)
		must(t, err)
		a := next(t, g)
		source.err = broken
		if _, err := g.NewUUID(); !errors.Is(err, broken) {
			t.Errorf("%s: error %v, want %v", k.name, err, broken)
		}
		source.err = nil
		b := next(t, g)
		if compare(a, b) >= 0 || k.sequence != nil && k.sequence(t, b) != 1 {
			t.Errorf("%s: %v follows %v", k.name, b, a)
		}
	}
}

type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.r.Read(b)
}
