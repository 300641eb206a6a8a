package i3core

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// clock is a time that a test sets.
type clock struct{ at atomic.Int64 }

func newClock(at time.Time) *clock {
	c := new(clock)
	c.at.Store(at.UnixNano())
	return c
}

func (c *clock) now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func next(t testing.TB, g *uuidgen.Generator) uuid.UUID {
	t.Helper()
	u, err := g.NewUUID()
	must(t, err)
	return u
}

func nextSequential(t testing.TB, g *uuidgen.Generator) Sequential {
	t.Helper()
	f, err := DecodeSequential(next(t, g), 0xD)
	must(t, err)
	return f
}

func nextNotifier(t testing.TB, g *uuidgen.Generator) Notifier {
	t.Helper()
	f, err := DecodeNotifier(next(t, g))
	must(t, err)
	return f
}

var (
	someTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	// 2020-01-01 in microseconds since 2000, from the vector of the notifier format: L bits 0–51.
	someMicros uint64 = 0x23E0786C26000
	someNode          = [6]byte{0x02, 0x42, 0xac, 0x12, 0x00, 0x02}
)

func TestRandomGenerator(t *testing.T) {
	var custom [256]bool
	for _, opts := range [][]uuidgen.Option{nil, {WithCustom(0xAB)}, {WithCustom(0)}} {
		g, err := NewRandomGenerator(opts...)
		must(t, err)
		// Every random bit is seen set and clear: one that is not, in 200 draws, has a chance of
		// 2^-199.
		var set, clear Random
		for range 200 {
			f, err := DecodeRandom(next(t, g))
			must(t, err)
			set.Random52, clear.Random52 = set.Random52|f.Random52, clear.Random52|^f.Random52&(1<<52-1)
			set.Random14, clear.Random14 = set.Random14|f.Random14, clear.Random14|^f.Random14&(1<<14-1)
			set.Random48, clear.Random48 = set.Random48|f.Random48, clear.Random48|^f.Random48&(1<<48-1)
			set.Custom, clear.Custom = set.Custom|f.Custom, clear.Custom|^f.Custom
			custom[f.Custom] = true
		}
		all := Random{0xFF, 1<<52 - 1, 1<<14 - 1, 1<<48 - 1}
		switch {
		case opts == nil && (set != all || clear != all):
			t.Errorf("bits seen set %+v, clear %+v", set, clear)
		case opts != nil && (set.Custom != ^clear.Custom || set.Random52 != all.Random52 || clear.Random48 != all.Random48):
			t.Errorf("with a custom octet: bits seen set %+v, clear %+v", set, clear)
		}
	}
	if !custom[0xAB] || !custom[0] {
		t.Error("a custom octet that was asked for did not come")
	}

	// What is random and all zero is drawn again, whatever the custom byte's bits are.
	for _, opts := range [][]uuidgen.Option{nil, {WithCustom(0xAB)}} {
		first := make([]byte, 16)
		first[8] = 0xC0 // the place of the variant
		if opts != nil {
			first[0], first[1] = 0x0F, 0xF0 // the place of the custom byte, which is not drawn
		}
		second := bytes.Repeat([]byte{1}, 16)
		g, err := NewRandomGenerator(append(opts, uuidgen.WithRandom(bytes.NewReader(append(first, second...))))...)
		must(t, err)
		f, err := DecodeRandom(next(t, g))
		if err != nil || f.Random52 != 0x1010101010101 || f.Random14 != 0x101 || f.Random48 != 0x10101010101 {
			t.Errorf("after zeros: %+v, %v", f, err)
		}
		g, err = NewRandomGenerator(append(opts, uuidgen.WithRandom(zeros{}))...)
		must(t, err)
		if u, err := g.NewUUID(); err == nil || u != uuid.Nil {
			t.Errorf("of zeros alone: %v, %v", u, err)
		}
	}
}

func TestRandomSourceFails(t *testing.T) {
	broken := errors.New("broken")
	for name, use := range map[string]func(io.Reader) error{
		"random": func(r io.Reader) error {
			g, err := NewRandomGenerator(uuidgen.WithRandom(r))
			must(t, err)
			u, err := g.NewUUID()
			if err != nil && u != uuid.Nil {
				t.Errorf("made %v beside %v", u, err)
			}
			return err
		},
		"sequential": func(r io.Reader) error {
			_, err := NewSequentialGenerator(WithVersion(1), uuidgen.WithRandom(r))
			return err
		},
		"interaction": func(r io.Reader) error { _, err := NewInteraction(1, 0, uuidgen.WithRandom(r)); return err },
	} {
		for _, c := range []struct {
			r    io.Reader
			want error
		}{
			{iotest.ErrReader(broken), broken},
			{bytes.NewReader(nil), io.EOF},
			{bytes.NewReader(make([]byte, 15)), io.ErrUnexpectedEOF},
			{zeros{}, nil},
		} {
			if err := use(c.r); err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: error %v, want %v", name, err, c.want)
			}
		}
		if err := use(iotest.OneByteReader(strings.NewReader("0123456789abcdef"))); err != nil {
			t.Errorf("%s, an octet at a time: %v", name, err)
		}
	}
}

func TestOptions(t *testing.T) {
	all := map[string]uuidgen.Option{
		"WithClock": uuidgen.WithClock(time.Now), "WithRandom": uuidgen.WithRandom(zeros{}), "WithCustom": WithCustom(1),
		"WithVersion": WithVersion(1), "WithDBMS": WithDBMS(DBMSBinary),
		"WithTimestamps": WithTimestamps(func() uint64 { return 0 }), "WithMaxWait": uuidgen.WithMaxWait(1),
		"WithMaxAhead": uuidgen.WithMaxAhead(1), "WithMaxRollback": uuidgen.WithMaxRollback(1),
	}
	for format, c := range map[string]struct {
		make func(...uuidgen.Option) (*uuidgen.Generator, error)
		has  string
	}{
		"random":     {NewRandomGenerator, "WithRandom WithCustom"},
		"sequential": {NewSequentialGenerator, "WithVersion WithDBMS WithClock WithTimestamps WithMaxRollback WithRandom"},
		"notifier": {func(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
			return NewNotifierGenerator(someNode, 1, opts...)
		},
			"WithCustom WithClock WithMaxWait"},
	} {
		for name, opt := range all {
			_, err := c.make(opt)
			if refused := err != nil && strings.Contains(err.Error(), name+" does not apply to the "+format); refused == strings.Contains(c.has, name) {
				t.Errorf("%s with %s: %v", format, name, err)
			}
		}
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":            {func() error { _, err := NewRandomGenerator(nil); return err }(), "nil Option"},
		"nil clock":      {func() error { _, err := NewSequentialGenerator(uuidgen.WithClock(nil)); return err }(), "WithClock: nil function"},
		"nil timestamps": {func() error { _, err := NewSequentialGenerator(WithTimestamps(nil)); return err }(), "WithTimestamps: nil function"},
		"nil reader":     {func() error { _, err := NewInteraction(1, 0, uuidgen.WithRandom(nil)); return err }(), "WithRandom: nil reader"},
		"negative wait": {func() error { _, err := NewNotifierGenerator(someNode, 1, uuidgen.WithMaxWait(-1)); return err }(),
			"WithMaxWait: negative duration -1ns"},
		"two clocks": {func() error {
			_, err := NewSequentialGenerator(WithVersion(1), all["WithTimestamps"], all["WithClock"])
			return err
		}(), "WithClock does not apply to the sequential format with WithTimestamps"},
	} {
		if c.err == nil || c.err.Error() != "i3core: "+c.want {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	for name, err := range map[string]error{
		"no version":     func() error { _, err := NewSequentialGenerator(); return err }(),
		"another DBMS":   func() error { _, err := NewSequentialGenerator(WithVersion(1), WithDBMS(2)); return err }(),
		"a wide version": func() error { _, err := NewSequentialGenerator(WithVersion(16)); return err }(),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for d, want := range map[DBMS]string{DBMSBinary: "binary", DBMSSQLServer: "SQL Server", 3: "DBMS(3)"} {
		if d.String() != want {
			t.Errorf("%q, want %q", d, want)
		}
	}
}

// As an id, what the database holds is i3core's memory, with the driver's own registry too.
func TestNewID(t *testing.T) {
	for name, make := range map[string]func() (*uuidgen.Generator, error){
		"random":     func() (*uuidgen.Generator, error) { return NewRandomGenerator() },
		"sequential": func() (*uuidgen.Generator, error) { return NewSequentialGenerator(WithVersion(0xD)) },
		"notifier":   func() (*uuidgen.Generator, error) { return NewNotifierGenerator(someNode, 1) },
	} {
		g, err := make()
		must(t, err)
		id, err := g.NewID()
		must(t, err)
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		must(t, err)
		subtype, octets := bson.Raw(doc).Lookup("_id").Binary()
		m := inMemory(id.(uuidrep.CSharpLegacyUUID).UUID)
		if subtype != 3 || !bytes.Equal(octets, m[:]) {
			t.Errorf("%s: %v stored as subtype %d, %x", name, id, subtype, octets)
		}
	}
}

// Ten million UUIDs over the formats, from generators shared by all cores: none twice, and in order
// where there is one.
func TestUnique(t *testing.T) {
	total := 10_000_000
	if testing.Short() {
		total = 300_000
	}
	// A clock that moves on by half a microsecond with each look, and steps back at times.
	var asks atomic.Int64
	ticking := uuidgen.WithClock(func() time.Time {
		n := asks.Add(1)
		at := someTime.Add(time.Duration(n) * 500)
		if n%1000 > 990 {
			at = at.Add(-time.Millisecond)
		}
		return at
	})
	workers := max(2, runtime.GOMAXPROCS(0))
	each := total/3/workers + 1
	ms := make([][16]byte, workers*each)
	order := func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
	for _, c := range []struct {
		name    string
		make    func() (*uuidgen.Generator, error)
		ordered bool
	}{
		{"random", func() (*uuidgen.Generator, error) { return NewRandomGenerator(WithCustom(1)) }, false},
		{"sequential", func() (*uuidgen.Generator, error) { return NewSequentialGenerator(WithVersion(0xD), ticking) }, true},
		{"notifier", func() (*uuidgen.Generator, error) { return NewNotifierGenerator(someNode, 1, ticking) }, false},
	} {
		g, err := c.make()
		must(t, err)
		var group sync.WaitGroup
		for w := range workers {
			own := ms[w*each : (w+1)*each]
			group.Go(func() {
				for i := range own {
					u, err := g.NewUUID()
					if err != nil {
						t.Errorf("%s: %v", c.name, err)
						return
					}
					own[i] = inMemory(u)
				}
				for i := 1; i < len(own) && c.ordered; i++ {
					if order(own[i-1], own[i]) >= 0 {
						t.Errorf("%s: %x came after %x", c.name, own[i], own[i-1])
						return
					}
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		slices.SortFunc(ms, order)
		if n := len(slices.Compact(ms)); n != len(ms) {
			t.Fatalf("%s: %d of %d are duplicates", c.name, len(ms)-n, len(ms))
		}
	}
}
