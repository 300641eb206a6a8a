package objectidgen

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/numbers"
)

// NewObjectIDAt returns an ObjectID with the timestamp of the given instant, for documents that are older than their
// ids and for tests.
//
// The ids that one Generator makes for given instants differ from each other and from the ids of its other methods,
// until it is copied with its process. Among themselves they are in the order of their seconds, and within a second in
// the order of the calls, also when the instants are in any order and more than 2^24 are in one second: after the
// counter 0xFFFFFF comes the process value plus 1. They have a process value of their own, so ids of the other methods
// in the same second are all less or all greater, at random.
//
// In a process that may be a copy, the process value and the counter jump ahead by at most 1/1024 of the values left:
// the order goes on, and copies differ. A new order of the other ids, and what [WithClock] shows, does not change them;
// [Generator.Renew] draws them again.
//
// An instant before 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange]. The first process value is
// below 2^39. When the last one is used up, which is after 2^63 ids or, in a process that may have been copied 10,000
// times, after 2^48 or more, the error is [ErrExhausted] until Renew. The first call draws 8 random bytes, and so does
// the first in a copy; an error of the random source is returned.
func (g *Generator) NewObjectIDAt(t time.Time) (bson.ObjectID, error) {
	cur := g.current.Load()
	if cur == nil {
		return bson.NilObjectID, errNotMade
	}
	id, err := MinAt(t)
	if err != nil {
		return bson.NilObjectID, err
	}
	if g.now == nil {
		if _, ok := g.system.Read(); !ok {
			g.turn(cur) // looks for a copy of the process
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n, err := g.nextInstant()
	if err != nil {
		return bson.NilObjectID, err
	}
	binary.BigEndian.PutUint64(id[4:], n)
	return id, nil
}

// instants numbers the ids for given instants. A number is the process value and the counter, in 64 bits, and none is
// used twice whatever the timestamps are.
type instants struct {
	numbers     numbers.Counter
	origin      clock.Origin // of the last number
	begun       bool
	first, last uint64 // since the last jump
}

// startInstants makes the numbers begin with s.
func (g *Generator) startInstants(s start) {
	g.instants = instants{origin: g.system.Origin()}
	g.instants.numbers.Start(max(s.number(), 1) - 1)
}

// contains reports whether numbers in use have the process value.
func (i *instants) contains(process [5]byte) bool {
	p := start{process: process}.number()
	return i.begun && i.first>>24<<24 <= p && p <= i.last
}

// nextInstant returns the next number. It passes over the process values that other ids have. It needs mu.
func (g *Generator) nextInstant() (uint64, error) {
	i := &g.instants
	if origin := g.system.Origin(); origin != i.origin {
		if cur := g.current.Load(); g.copied(cur) {
			g.renew(cur, cur.seconds)
		}
		i.numbers.Jump()
		i.origin = origin
	}
	var random uint64
	drawn := i.numbers.Drawn()
	if drawn {
		s, err := drawStart(g.random)
		if err != nil {
			return 0, err
		}
		random = s.number()
	}
	n, ok := i.numbers.Next(math.MaxUint64, random)
	for begins := drawn || !i.begun || n&lastCounter == 0; ok && begins && g.hasProcess(startOf(n).process); {
		n += 1 << 24
		i.numbers.Start(n)
		ok = n >= 1<<24
	}
	if !ok {
		i.numbers.Start(math.MaxUint64)
		return 0, fmt.Errorf("objectidgen: %w for given instants", ErrExhausted)
	}
	if drawn {
		g.retireInstants()
		i.first = n
	}
	if !i.begun {
		i.begun, i.first = true, n
	}
	i.last = n
	return n, nil
}

// retireInstants keeps the process values of the numbers in use from being drawn again. It needs mu.
func (g *Generator) retireInstants() {
	if i := g.instants; i.begun {
		first, last := i.first>>24, i.last>>24
		for p := max(first, last-min(last, maxUsed)); p <= last; p++ {
			g.addUsed(startOf(p << 24).process)
		}
	}
}
