package objectidgen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	lastSecond  = math.MaxUint32 // 2106-02-07T06:28:15Z
	lastCounter = 1<<24 - 1
)

var (
	// Min is the least ObjectID, 12 octets of 0x00: the lower bound of every range, and the same value as
	// [bson.NilObjectID].
	Min = bson.ObjectID{}

	// Max is the greatest ObjectID, 12 octets of 0xFF: the upper bound of every range.
	Max = bson.ObjectID{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
)

// Parts are the three fields of an ObjectID. It is a plain value, safe to copy and to share.
//
// The specification forbids accessors for the process value and the counter on the type that is an ObjectID, since
// nothing should depend on them; Parts is for diagnosis and for tests.
type Parts struct {
	Seconds uint32  // since 1970-01-01T00:00:00Z, leap seconds not counted; until 2106-02-07T06:28:15Z
	Process [5]byte // random, once per process
	Counter uint32  // 0 to 16777215 (24 bits)
}

// Inspect returns the three fields of id, for diagnosis: which process made it, and how far its counter had come.
// Every ObjectID has them. Ids that were made by other means, or by drivers older than the specification, may hold
// something else in the last 8 octets: a machine and a process id, for instance.
//
// It reads the layout of section "Specification" of the document "ObjectID format". For the time alone there is the
// driver's own Timestamp.
func Inspect(id bson.ObjectID) Parts {
	return Parts{
		Seconds: binary.BigEndian.Uint32(id[0:4]),
		Process: [5]byte(id[4:9]),
		Counter: uint32(id[9])<<16 | uint32(id[10])<<8 | uint32(id[11]),
	}
}

// FromParts returns the ObjectID that has the given fields: seconds since 1970-01-01T00:00:00Z, the 5 octets of the
// process value, and the counter, 0 to 16777215. A greater counter is [ErrCounterRange]. It is the inverse of
// [Inspect].
func FromParts(seconds uint32, process [5]byte, counter uint32) (bson.ObjectID, error) {
	if counter > lastCounter {
		return bson.NilObjectID, fmt.Errorf("objectidgen: counter %d: %w", counter, ErrCounterRange)
	}
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[0:4], seconds)
	binary.BigEndian.PutUint32(id[8:12], counter)
	copy(id[4:9], process[:])
	return id, nil
}

// FromBytes returns the ObjectID whose octets are b, which must be 12 long: everything else is [ErrLength]. The
// octets are copied. For 24 hexadecimal digits there is [bson.ObjectIDFromHex].
func FromBytes(b []byte) (bson.ObjectID, error) {
	if len(b) != len(bson.ObjectID{}) {
		return bson.NilObjectID, fmt.Errorf("objectidgen: %w, not %d", ErrLength, len(b))
	}
	return bson.ObjectID(b), nil
}

// MinAt returns the least ObjectID of the second that t is in: its timestamp, then 8 octets of 0x00. With "$gte" it
// bounds a range query over _id from below, with "$lt" from above. A time before 1970-01-01T00:00:00Z or from
// 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MinAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Min)
}

// MaxAt returns the greatest ObjectID of the second that t is in: its timestamp, then 8 octets of 0xFF. With "$lte" it
// bounds a range query over _id from above, with "$gt" from below. A time before 1970-01-01T00:00:00Z or from
// 2106-02-07T06:28:16Z on is [ErrTimeRange].
func MaxAt(t time.Time) (bson.ObjectID, error) {
	return boundAt(t, Max)
}

// boundAt puts the second of t into id.
func boundAt(t time.Time, id bson.ObjectID) (bson.ObjectID, error) {
	seconds := t.Unix()
	if seconds < 0 || seconds > lastSecond {
		return bson.NilObjectID, fmt.Errorf("objectidgen: %s: %w", t.UTC().Format(time.RFC3339Nano), ErrTimeRange)
	}
	binary.BigEndian.PutUint32(id[0:4], uint32(seconds))
	return id, nil
}

// Compare returns -1 where a sorts before b, 0 where they are equal and +1 where a sorts after b, by their octets as
// MongoDB and memcmp order them: first by second, then by process value, then by counter. It fits [slices.SortFunc].
func Compare(a, b bson.ObjectID) int {
	return bytes.Compare(a[:], b[:])
}
