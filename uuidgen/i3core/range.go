package i3core

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// HalfOpenSequential returns the sequential UUIDs from the microsecond of from up to, without, the
// microsecond of to, in the order of memory: the order of the representation csharpLegacy. It fits
// every version, and timestamps of the default clock. The errors are those of [SequentialAt]; from
// after to is an error too.
func HalfOpenSequential(from, to time.Time) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, true, uuidrep.CSharpLegacy, MinSequentialAt, MaxSequentialAt)
}

// ClosedSequential returns the sequential UUIDs from the microsecond of from to the microsecond of
// to, both included. The errors are those of [HalfOpenSequential].
func ClosedSequential(from, to time.Time) (uuidgen.Range, error) {
	return uuidgen.NewRange(from, to, false, uuidrep.CSharpLegacy, MinSequentialAt, MaxSequentialAt)
}

// CompareTime compares the timestamp of the fields, microseconds since 2000-01-01T00:00:00Z, with
// the microsecond of t: -1 if f is from an earlier one, 0 if it is from the same, and +1 if it is
// from a later one.
func (f Sequential) CompareTime(t time.Time) int { return compareMicroseconds(f.Time(), t) }

// CompareTime compares the instance sequence, microseconds since 2000-01-01T00:00:00Z, with the
// microsecond of t, as [Sequential.CompareTime] does.
func (f Notifier) CompareTime(t time.Time) int { return compareMicroseconds(f.Time(), t) }

// CompareTime compares the timestamp of the fields with the 100 ns of t, as
// [Sequential.CompareTime] does.
func (f TimeBased) CompareTime(t time.Time) int {
	return f.Time().Compare(time.Unix(t.Unix(), int64(t.Nanosecond())/100*100))
}

func compareMicroseconds(at, t time.Time) int {
	return at.Compare(time.Unix(t.Unix(), int64(t.Nanosecond())/1e3*1e3))
}

// MinSequentialAt returns the lowest UUID in the order of memory with the timestamp of t, a
// microsecond wide, for queries by time. It fits every version, and is not one to store. It is for
// timestamps of the default clock; the errors are those of [SequentialAt].
func MinSequentialAt(t time.Time) (uuid.UUID, error) { return sequentialBound(t, 0x00) }

// MaxSequentialAt returns the highest UUID in the order of memory with the timestamp of t. The
// errors are those of [SequentialAt].
func MaxSequentialAt(t time.Time) (uuid.UUID, error) { return sequentialBound(t, 0xFF) }

func sequentialBound(t time.Time, rest byte) (uuid.UUID, error) {
	f, err := SequentialAt(t)
	if err != nil {
		return uuid.Nil, err
	}
	var m [16]byte
	binary.BigEndian.PutUint64(m[0:], f.Timestamp<<8)
	for i := 7; i < len(m); i++ {
		m[i] = rest
	}
	return FromMemory(m), nil
}
