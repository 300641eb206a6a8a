package uuidgen

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/fork"
	"github.com/bsonids/bsonids/internal/gregorian"
	"github.com/bsonids/bsonids/uuidgen/internal/monotonic"
)

// atBits is the width of what follows the timestamp and its nanoseconds in an id for a given
// instant.
const atBits = 54

// NewUUIDAt returns an id for the instant t, for documents that are older than their ids and for
// tests. It does not read the clock or change what [Generator.NewUUID] returns.
//
// The ids that one Generator makes for given instants differ, and they are in the order of the
// instants to a nanosecond; those for equal instants are in the order of the calls. This holds for
// calls with instants in any order. Beside the ids of NewUUID, they are in order by their
// timestamps; an id of either kind with the same timestamp may be the greater. After the timestamp
// come 7 or 8 bits for the nanoseconds and a number of 54 bits that grows by a random amount with
// each call, so that ids of several generators for one instant differ.
//
// An instant out of the version's range is [ErrTimeRange]; with version 4 the error is [ErrNoTime].
// After 2^33 calls or more it is [ErrExhausted]. Other errors are those of the random source.
func (g *Generator) NewUUIDAt(t time.Time) (uuid.UUID, error) {
	if g.layout == nil {
		return uuid.Nil, errNotMade
	}
	if g.steps == 0 {
		return uuid.Nil, fmt.Errorf("%w in %v: NewUUIDAt does not apply", ErrNoTime, g.layout)
	}
	step, err := g.layout.timestamp(t)
	if err != nil {
		return uuid.Nil, err
	}
	var random [8]byte
	if g.reader != nil {
		err = g.drawRandom(random[:])
	} else {
		err = readFull(systemRandom, random[:])
	}
	if err != nil {
		return uuid.Nil, err
	}

	g.lookSometimes()
	g.atMu.Lock()
	defer g.atMu.Unlock()
	if generation := fork.Generation(); generation != g.atGeneration {
		g.at, g.atGeneration = monotonic.Counter{}, generation
	}
	n, ok := g.at.Next(atBits, binary.BigEndian.Uint64(random[:]))
	if !ok {
		return uuid.Nil, ErrExhausted
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
