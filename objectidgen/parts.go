package objectidgen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	lastSecond  = math.MaxUint32 // 2106-02-07T06:28:15Z
	lastCounter = 1<<24 - 1
)

// Min returns the least ObjectID, 12 bytes 0x00. It equals [bson.NilObjectID].
func Min() bson.ObjectID { return bson.ObjectID{} }

// Max returns the greatest ObjectID, 12 bytes 0xFF.
func Max() bson.ObjectID {
	return bson.ObjectID{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
}

// Parts are the three fields of an ObjectID. It is a plain value, safe to copy and to share.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          seconds since 1970-01-01T00:00:00Z, unsigned         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         process value: 40 bits, random once per process       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| process value |    counter: 24 bits, random start, +1 each    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The seconds and the counter are big-endian, so that the order of the bytes is the order of time.
//
// The specification forbids accessors for the process value and the counter on the ObjectID type, because programs must
// not depend on them. Parts is for diagnosis and for tests.
type Parts struct {
	Seconds uint32  // since 1970-01-01T00:00:00Z, without leap seconds; until 2106-02-07T06:28:15Z
	Process [5]byte // random, once per process; as a number below 2^40
	Counter uint32  // below 2^24
}

// Decode returns the three fields of id. Every ObjectID has them; those of drivers older than the specification hold
// other things in the last 8 bytes, such as a machine and a process id. For the time alone, use the driver's Timestamp
// method.
//
// It implements the layout in section "Specification" of the document "ObjectID format".
func Decode(id bson.ObjectID) Parts {
	return Parts{
		Seconds: binary.BigEndian.Uint32(id[0:4]),
		Process: [5]byte(id[4:9]),
		Counter: uint32(id[9])<<16 | uint32(id[10])<<8 | uint32(id[11]),
	}
}

// ObjectID puts the fields together. A counter above 16777215 is [ErrCounterRange]. It is the inverse of [Decode].
func (p Parts) ObjectID() (bson.ObjectID, error) {
	if p.Counter > lastCounter {
		return bson.NilObjectID, fmt.Errorf("objectidgen: counter %d: %w", p.Counter, ErrCounterRange)
	}
	var id bson.ObjectID
	binary.BigEndian.PutUint32(id[0:4], p.Seconds)
	binary.BigEndian.PutUint32(id[8:12], p.Counter)
	copy(id[4:9], p.Process[:])
	return id, nil
}

// FromBytes returns the ObjectID with the bytes of b, which it copies. A length other than 12 is [ErrLength]. For 24
// hexadecimal digits, use [bson.ObjectIDFromHex].
func FromBytes(b []byte) (bson.ObjectID, error) {
	if len(b) != len(bson.ObjectID{}) {
		return bson.NilObjectID, fmt.Errorf("objectidgen: %w, not %d", ErrLength, len(b))
	}
	return bson.ObjectID(b), nil
}

// Compare returns -1 if a sorts before b, 0 if they are equal and +1 if a sorts after b, in the order of their bytes,
// which is MongoDB's: by second, then by process value, then by counter. It fits [slices.SortFunc].
func Compare(a, b bson.ObjectID) int {
	return bytes.Compare(a[:], b[:])
}
