package uuidgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/internal/numbers"
	"github.com/bsonids/bsonids/internal/serial"
	"github.com/bsonids/bsonids/internal/stock"
)

// atBits is the width of what follows the timestamp and its nanoseconds in an id for a given
// instant.
const atBits = 54

// instants makes the ids for given instants.
type instants struct {
	mu      sync.Mutex
	stock   stock.Stock
	numbers numbers.Counter
}

// next returns the next number of atBits.
func (i *instants) next() (uint64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, copied := i.stock.Now(); copied {
		i.numbers.Jump()
	}
	random, err := i.stock.Uint64()
	if err != nil {
		return 0, fmt.Errorf("uuidgen: random source: %w", err)
	}
	n, ok := i.numbers.Next(1<<atBits-1, random)
	if !ok {
		return 0, fmt.Errorf("uuidgen: %w for given instants", ErrExhausted)
	}
	return n, nil
}

func (i *instants) renew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.numbers = numbers.Counter{}
	i.stock.Renew()
}

// NewUUIDAt returns an id for the instant t, for documents that are older than their ids and for
// tests. It does not read the clock or change what [Generator.NewUUID] returns.
//
// The ids that one Generator makes for given instants differ, and they are in the order of the
// instants to a nanosecond; those for equal instants are in the order of the calls. This holds for
// calls with instants in any order. Beside the ids of NewUUID, they are in order by their
// timestamps; an id of either kind with the same timestamp may be the greater. After the timestamp
// come 7 or 8 bits for the nanoseconds and a number of 54 bits that grows by a random amount with
// each call, so that ids of several generators for one instant differ. The amount is at most 2^20,
// so that neighbouring ids of one instant tell about each other. In a process that may be a copy,
// the next number jumps ahead by at most 1/1024 of the numbers left: the order goes on, and copies
// differ. Idle time and what [WithClock] shows do not change the numbers.
//
// An instant out of the version's range is [ErrTimeRange]. With version 4 the error is [ErrNoTime], and
// with the formats of packages peabody01 and i3core it is [errors.ErrUnsupported].
// When no number is left, which is after 2^33 calls or more, and after 2^32 or more in a process
// that may have been copied 10,000 times, it is [ErrExhausted] until [Generator.Renew]. Other errors
// are those of the random source.
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) {
	switch {
	case g.layout == nil && g.machine == nil:
		return uuid.Nil, serial.ErrNotMade
	case g.layout == nil || g.layout.sequence:
		return uuid.Nil, fmt.Errorf("uuidgen: NewUUIDAt in a format of another package: %w", errors.ErrUnsupported)
	case g.steps == 0:
		return uuid.Nil, fmt.Errorf("%w in %v: NewUUIDAt does not apply", ErrNoTime, g.layout)
	}
	step, err := g.layout.timestamp(t)
	if err != nil {
		return uuid.Nil, err
	}
	n, err := g.instants.next()
	if err != nil {
		return uuid.Nil, err
	}
	elapsed := uint64(t.Nanosecond() - g.layout.time(step).Nanosecond())
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], g.layout.word(step))
	binary.BigEndian.PutUint64(u[8:], g.layout.rest(elapsed<<atBits|n))
	return u, nil
}

// The nanoseconds in a step fit beside the number: 61 bits in version 6, 62 in the others.
const (
	_ = uint(1<<(61-atBits) - int(gregorian.Tick))
	_ = uint(1<<(62-atBits) - (1_000_000_000/unixPerSecond + 1))
)
