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

var (
	// Min is the least ObjectID, 12 bytes 0x00. It equals [bson.NilObjectID].
	Min = bson.ObjectID{}

	// Max is the greatest ObjectID, 12 bytes 0xFF.
	Max = bson.ObjectID{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
)

// Parts are the three fields of an ObjectID. It is a plain value, safe to copy and to share.
//
// The specification forbids accessors for the process value and the counter on the ObjectID type, because programs must
// not depend on them. Parts is for diagnosis and for tests.
type Parts struct {
	Seconds uint32  // since 1970-01-01T00:00:00Z, without leap seconds; until 2106-02-07T06:28:15Z
	Process [5]byte // random, once per process
	Counter uint32  // 0 to 16777215 (24 bits)
}

// Inspect returns the three fields of id. Every ObjectID has them; those of drivers older than the specification hold
// other things in the last 8 bytes, such as a machine and a process id. For the time alone, use the driver's Timestamp
// method.
//
// It implements the layout in section "Specification" of the document "ObjectID format".
func Inspect(id bson.ObjectID) Parts {
	return Parts{
		Seconds: binary.BigEndian.Uint32(id[0:4]),
		Process: [5]byte(id[4:9]),
		Counter: uint32(id[9])<<16 | uint32(id[10])<<8 | uint32(id[11]),
	}
}

// FromParts returns the ObjectID with the given fields: the seconds since 1970-01-01T00:00:00Z, the process value and
// the counter, 0 to 16777215. A greater counter is [ErrCounterRange]. It is the inverse of [Inspect].
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
