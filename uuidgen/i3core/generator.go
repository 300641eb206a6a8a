package i3core

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/idoption"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

func newGenerator(c *idoption.Config, m serial.Maker) *uuidgen.Generator {
	id := func(u uuid.UUID) any { return uuidrep.CSharpLegacyUUID{UUID: u} }
	c.Machine = serial.New("i3core", m, c.MaxWait, id)
	return idoption.NewGenerator(c).(*uuidgen.Generator)
}

// NewRandomGenerator returns a Generator of the random format. The options are [WithCustom] and
// [uuidgen.WithRandom], from whose reader every UUID takes 16 bytes. The error of NewUUID is that of
// the random source; random bits that are all zero are drawn again.
func NewRandomGenerator(opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	c, o, err := newConfig(formatRandom, opts, "WithCustom", "WithRandom")
	if err != nil {
		return nil, err
	}
	m := &randomMaker{custom: o.custom}
	m.stock.Start(c.Random)
	return newGenerator(c, m), nil
}

type randomMaker struct {
	stock  stock.Stock
	custom *byte
}

func (m *randomMaker) Next(bool) (uuid.UUID, bool, error) {
	mask := uint64(1<<60 - 1)
	if m.custom != nil {
		mask = 1<<52 - 1
	}
	m.stock.Now()
	a, b, err := draw(&m.stock, mask, 1<<62-1)
	if err != nil {
		return uuid.Nil, false, err
	}
	f := Random{byte(a >> 52), a & (1<<52 - 1), uint16(b >> 48), b & (1<<48 - 1)}
	if m.custom != nil {
		f.Custom = *m.custom
	}
	return f.join(), true, nil
}

func (m *randomMaker) Renew() error {
	m.stock.Renew()
	return nil
}

func (m *randomMaker) Ahead() time.Duration { return 0 }

func (m *randomMaker) Orders() uint64 { return 0 }

// A source that is random does not give so many draws in a row that are all zero: the shortest has
// 60 bits.
const maxDraws = 4

// draw reads two numbers and masks them. They are not both zero: an interaction without random bits
// would read as unresolved.
func draw(s *stock.Stock, maskA, maskB uint64) (a, b uint64, err error) {
	for range maxDraws {
		if a, err = s.Uint64(); err == nil {
			b, err = s.Uint64()
		}
		if err != nil {
			return 0, 0, fmt.Errorf("i3core: random source: %w", err)
		}
		if a, b = a&maskA, b&maskB; a|b != 0 {
			return a, b, nil
		}
	}
	return 0, 0, errors.New("i3core: the random source gives nothing but zeros")
}
