package i3core

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/timerange"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// HalfOpenSequential returns the sequential UUIDs from the microsecond of from up to, without, the
// microsecond of to, in the order of memory: the order of the representation csharpLegacy. It fits
// every version, and timestamps of the default clock. Instants are compared without bounds, as
// [uuidgen.HalfOpenV7] does; the first one is 2000-01-01, the last one in 4283-05-31. A from that is
// after to is an error.
func HalfOpenSequential(from, to time.Time) (uuidgen.Range, error) { return newRange(from, to, true) }

// ClosedSequential returns the sequential UUIDs from the microsecond of from to the microsecond of
// to, both included, as [HalfOpenSequential] does.
func ClosedSequential(from, to time.Time) (uuidgen.Range, error) { return newRange(from, to, false) }

var sequential = timerange.Format[uuid.UUID]{
	Begin: timeOf(0),
	First: sequentialBound(0, 0x00),
	Last:  sequentialBound(1<<56-1, 0xFF),
	Bound: func(t time.Time, upper bool) (uuid.UUID, error) {
		f, err := sequentialAt(t)
		if upper {
			return sequentialBound(f.Timestamp, 0xFF), err
		}
		return sequentialBound(f.Timestamp, 0x00), err
	},
}

func newRange(from, to time.Time, halfOpen bool) (uuidgen.Range, error) {
	b, err := sequential.Bounds(from, to, halfOpen)
	if err != nil {
		return uuidgen.Range{}, fmt.Errorf("i3core: %w", err)
	}
	return uuidgen.Range{Min: b.Low, Max: b.High, HalfOpen: b.Open, Order: uuidrep.CSharpLegacy}, nil
}

// sequentialBound returns the first UUID of a timestamp in the order of memory, or the last one: all
// bytes after the timestamp are rest, which fits every version.
func sequentialBound(timestamp uint64, rest byte) uuid.UUID {
	var m [16]byte
	binary.BigEndian.PutUint64(m[0:], timestamp<<8)
	for i := 7; i < len(m); i++ {
		m[i] = rest
	}
	return ofMemory(m)
}
