package objectidgen

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/timerange"
)

// MinAt returns the least ObjectID of the second of t: its timestamp, then 8 bytes 0x00. A time before
// 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MinAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Min())
}

// MaxAt returns the greatest ObjectID of the second of t: its timestamp, then 8 bytes 0xFF. A time before
// 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MaxAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Max())
}

// boundAt puts the second of t into id.
func boundAt(t time.Time, id bson.ObjectID) (bson.ObjectID, error) {
	seconds := t.Unix()
	if seconds < 0 || seconds > lastSecond {
		return bson.NilObjectID, fmt.Errorf("objectidgen: %w: %s is not from 1970-01-01T00:00:00Z to 2106-02-07T06:28:15Z",
			ErrTimeRange, t.UTC().Format(time.RFC3339Nano))
	}
	binary.BigEndian.PutUint32(id[0:4], uint32(seconds))
	return id, nil
}

// CompareTime returns -1 if the timestamp of id is before the second of t, 0 if it is that second, and +1 if it is
// after it. It is 0 exactly if MinAt(t) <= id <= MaxAt(t). A time that the timestamp cannot hold is before or after
// every id.
func CompareTime(id bson.ObjectID, t time.Time) int {
	return cmp.Compare(int64(binary.BigEndian.Uint32(id[0:4])), t.Unix())
}

// Range is the ObjectIDs whose second lies in a span of time. It is a plain value, safe to copy and to share. The zero
// Range is empty.
type Range struct {
	Min, Max bson.ObjectID
	HalfOpen bool // whether Max itself is not in the Range
}

// HalfOpen returns the ObjectIDs from the second of from up to, without, the second of to. Ranges that share an end
// share no id.
//
// Instants are compared without bounds: a to after 2106-02-07T06:28:15Z includes the last second, and a from after it, or
// a to before 1970, gives the empty Range. A from that is after to is an error.
//
// The ids go by the clock of their generator. Those of a [Generator] whose clock was set back can be later than the time
// at which they were made: extend to by [Generator.Ahead] to find them.
func HalfOpen(from, to time.Time) (Range, error) {
	return newRange(from, to, true)
}

// Closed returns the ObjectIDs from the second of from to the second of to, both included, as [HalfOpen] does.
func Closed(from, to time.Time) (Range, error) {
	return newRange(from, to, false)
}

var format = timerange.Format[bson.ObjectID]{
	Begin: time.Unix(0, 0),
	First: Min(),
	Last:  Max(),
	Bound: func(t time.Time, upper bool) (bson.ObjectID, error) {
		if upper {
			return MaxAt(t)
		}
		return MinAt(t)
	},
}

func newRange(from, to time.Time, halfOpen bool) (Range, error) {
	b, err := format.Bounds(from, to, halfOpen)
	if err != nil {
		return Range{}, fmt.Errorf("objectidgen: %w", err)
	}
	return Range{Min: b.Low, Max: b.High, HalfOpen: b.Open}, nil
}

// Contains reports whether id lies in the Range.
func (r Range) Contains(id bson.ObjectID) bool {
	c := Compare(id, r.Max)
	return r != (Range{}) && Compare(r.Min, id) <= 0 && (c < 0 || c == 0 && !r.HalfOpen)
}

// Filter returns the query filter for the documents whose field holds an ObjectID of the Range:
// {field: {$gte: Min, $lte: Max}}, or $lt for a half-open Range, or {field: {$in: []}} for the empty one. A field that is
// empty, begins with a dollar sign or contains a zero byte is an error.
func (r Range) Filter(field string) (bson.D, error) {
	if err := timerange.CheckField(field); err != nil {
		return nil, fmt.Errorf("objectidgen: %w", err)
	}
	if r == (Range{}) {
		return bson.D{{Key: field, Value: bson.D{{Key: "$in", Value: bson.A{}}}}}, nil
	}
	upper := "$lte"
	if r.HalfOpen {
		upper = "$lt"
	}
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: r.Min}, {Key: upper, Value: r.Max}}}}, nil
}
