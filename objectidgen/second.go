package objectidgen

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/order"
)

const (
	// beforeAll is the second in use before the first id: every second of a clock is later.
	beforeAll = -1

	// closed is set in second.taken when no more ids may be taken.
	closed = 1 << 63
)

// second is one timestamp and the ids that are made with it. All but taken is fixed. Closing a second keeps further ids
// from being taken and fixes how many were, so that the following second goes on with exactly the next counter.
type second struct {
	seconds int64   // beforeAll, or 0 to lastSecond
	end     uint64  // the end of it, in nanoseconds since 1970
	start   uint32  // the counter of the first id
	process [5]byte // its process value
	high    uint64  // bytes 0 to 7 of every id
	low     uint32  // byte 8 of every id, as the top byte
	order   *order.Order
	origin  clock.Origin // when the process value was drawn

	// taken is how many ids were taken, with closed when that is final.
	taken atomic.Uint64
}

func newSecond(seconds int64, s start, in *order.Order, o clock.Origin) *second {
	return &second{
		seconds: seconds,
		end:     uint64(seconds+1) * uint64(time.Second),
		start:   s.counter,
		process: s.process,
		high:    uint64(seconds)<<32 | uint64(binary.BigEndian.Uint32(s.process[:4])),
		low:     uint32(s.process[4]) << 24,
		order:   in,
		origin:  o,
	}
}

// after returns a later second, which goes on with the counter after n ids.
func (s *second) after(seconds int64, n, width uint64) *second {
	counter := (uint64(s.start) + n) & (width - 1)
	return newSecond(seconds, start{s.process, uint32(counter)}, s.order, s.origin)
}

// id returns the id number n of the second, counted from 0.
func (s *second) id(n, width uint64) bson.ObjectID {
	var id bson.ObjectID
	binary.BigEndian.PutUint64(id[0:8], s.high)
	binary.BigEndian.PutUint32(id[8:12], s.low|(s.start+uint32(n))&uint32(width-1))
	return id
}

// fill sets ids to those from number n on.
func (s *second) fill(ids []bson.ObjectID, n, width uint64) {
	high, low, mask := s.high, s.low, uint32(width-1)
	counter := s.start + uint32(n)
	for i := range ids {
		id := &ids[i]
		binary.BigEndian.PutUint64(id[0:8], high)
		binary.BigEndian.PutUint32(id[8:12], low|counter&mask)
		counter++
	}
}
