package objectidgen

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// MinAt returns the least ObjectID of the second of t: its timestamp, then 8 bytes 0x00. A time before
// 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MinAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Min)
}

// MaxAt returns the greatest ObjectID of the second of t: its timestamp, then 8 bytes 0xFF. A time before
// 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MaxAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Max)
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

// Range is the ObjectIDs whose timestamps lie in a span of time. It is a plain value, safe to copy and to share. The
// zero Range contains the ObjectID of 12 bytes 0x00 alone.
type Range struct {
	Min, Max bson.ObjectID
	HalfOpen bool // whether Max itself is not in the Range
}

// HalfOpen returns the ObjectIDs from the second of from up to, without, the second of to. Ranges that share an end
// share no id. The errors are those of [Closed].
func HalfOpen(from, to time.Time) (Range, error) {
	return newRange(from, to, MinAt, true)
}

// Closed returns the ObjectIDs from the second of from to the second of to, both included. A time out of the range of
// [MinAt] is [ErrTimeRange]; from after to is an error.
func Closed(from, to time.Time) (Range, error) {
	return newRange(from, to, MaxAt, false)
}

func newRange(from, to time.Time, end func(time.Time) (bson.ObjectID, error), halfOpen bool) (Range, error) {
	if from.After(to) {
		return Range{}, fmt.Errorf("objectidgen: the range begins at %v, after its end at %v", from, to)
	}
	low, err := MinAt(from)
	if err != nil {
		return Range{}, err
	}
	high, err := end(to)
	if err != nil {
		return Range{}, err
	}
	return Range{Min: low, Max: high, HalfOpen: halfOpen}, nil
}

// Contains reports whether id lies in the Range.
func (r Range) Contains(id bson.ObjectID) bool {
	c := Compare(id, r.Max)
	return Compare(r.Min, id) <= 0 && (c < 0 || c == 0 && !r.HalfOpen)
}

// Filter returns the query filter for the documents whose field holds an ObjectID of the Range:
// {field: {$gte: Min, $lte: Max}}, or $lt for a half-open Range. A field that is empty or begins with a dollar sign is
// an error.
func (r Range) Filter(field string) (bson.D, error) {
	if field == "" || field[0] == '$' {
		return nil, fmt.Errorf("objectidgen: %q is not the name of a field", field)
	}
	upper := "$lte"
	if r.HalfOpen {
		upper = "$lt"
	}
	return bson.D{{Key: field, Value: bson.D{{Key: "$gte", Value: r.Min}, {Key: upper, Value: r.Max}}}}, nil
}
