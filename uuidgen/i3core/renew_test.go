package i3core

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// A clock that was once far ahead pins a generator until it is renewed.
func TestRenewRecovers(t *testing.T) {
	far := 50 * 365 * 24 * time.Hour
	for name, make := range map[string]func(c *clock) (*uuidgen.Generator, error){
		"sequential": func(c *clock) (*uuidgen.Generator, error) {
			return NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now))
		},
		"notifier": func(c *clock) (*uuidgen.Generator, error) {
			return NewNotifierGenerator(someNode, 1, uuidgen.WithClock(c.now), uuidgen.WithMaxWait(0))
		},
	} {
		c := newClock(someTime)
		g, err := make(c)
		must(t, err)
		c.add(time.Second)
		next(t, g)
		if d := g.Ahead(); d != 0 {
			t.Errorf("%s: %v ahead", name, d)
		}
		c.add(far)
		a := next(t, g)
		c.add(-far)
		if d := g.Ahead(); d < far-time.Microsecond || d > far {
			t.Errorf("%s: %v ahead, want %v", name, d, far)
		}
		must(t, g.Renew())
		c.add(time.Second)
		b := next(t, g)
		if d := g.Ahead(); d != 0 || a == b {
			t.Errorf("%s, renewed: %v ahead", name, d)
		}
		c.at.Store(0)
		if d := g.Ahead(); d != math.MaxInt64 {
			t.Errorf("%s, clock in 1970: %v ahead", name, d)
		}
	}
	random, err := NewRandomGenerator()
	must(t, err)
	if err := random.Renew(); err != nil || random.Ahead() != 0 {
		t.Error(err)
	}
	broken := iotest.ErrReader(errors.New("broken"))
	g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithRandom(io.MultiReader(bytes.NewReader([]byte("0123456789abcdef")), broken)))
	must(t, err)
	before := nextSequential(t, g)
	if err := g.Renew(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Renew: %v", err)
	}
	if f := nextSequential(t, g); f.Random1 != before.Random1 || f.CounterLo != before.CounterLo+1 {
		t.Errorf("%+v after %+v", f, before)
	}
}

func TestBatches(t *testing.T) {
	c := newClock(someTime)
	g, err := NewSequentialGenerator(WithVersion(0xD), uuidgen.WithClock(c.now))
	must(t, err)
	us := make([]uuid.UUID, 10)
	must(t, g.Fill(us))
	for u, err := range g.UUIDs(10) {
		must(t, err)
		us = append(us, u)
	}
	order := func(a, b uuid.UUID) int { x, y := inMemory(a), inMemory(b); return bytes.Compare(x[:], y[:]) }
	if len(us) != 20 || !slices.IsSortedFunc(us, order) || len(slices.Compact(us)) != 20 {
		t.Errorf("%v", us)
	}
	c.at.Store(0)
	if err := g.Fill(us); !errors.Is(err, uuidgen.ErrTimeRange) || us[0] != uuid.Nil {
		t.Errorf("%v, %v", err, us)
	}
	n := 0
	for u, err := range g.UUIDs(5) {
		if n++; n > 1 || !errors.Is(err, uuidgen.ErrTimeRange) || u != uuid.Nil {
			t.Errorf("%v, %v", u, err)
		}
	}
}

// Drawing allocates nothing for each UUID.
func TestAllocs(t *testing.T) {
	random, err := NewRandomGenerator(WithCustom(1))
	must(t, err)
	sequential, err := NewSequentialGenerator(WithVersion(1))
	must(t, err)
	for name, g := range map[string]*uuidgen.Generator{"random": random, "sequential": sequential} {
		if n := testing.AllocsPerRun(100, func() { _, _ = g.NewUUID() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// MD5 is refused with an error, not with a panic, if the program allows functions of FIPS 140
// alone.
func TestFIPS(t *testing.T) {
	const variable = "I3CORE_TEST_FIPS"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFIPS$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1", "GODEBUG=fips140=only")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	u, err := NewNameBased(uuid.NameSpaceDNS, []byte("name"))
	if !errors.Is(err, uuidgen.ErrHash) || u != uuid.Nil {
		t.Errorf("%v, %v", u, err)
	}
	t.Log("refused:", err)
}
