package objectidgen

import (
	"encoding/binary"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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
// An instant before 1970-01-01T00:00:00Z or from 2106-02-07T06:28:16Z on is [ErrTimeRange]. The first call draws 8
// random bytes; an error of the random source is returned.
func (g *Generator) NewObjectIDAt(t time.Time) (bson.ObjectID, error) {
	id, err := MinAt(t)
	if err != nil {
		return bson.NilObjectID, err
	}
	if g.now == nil {
		if _, ok := g.system.Read(); !ok {
			g.turn(g.current.Load()) // looks for a copy of the process
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if cur := g.current.Load(); g.copied(cur) {
		g.renew(cur, cur.seconds)
	}
	if !g.instants.started {
		s, err := drawStart(g.random)
		if err != nil {
			return bson.NilObjectID, err
		}
		if s.process[0] == 0xFF {
			s.process[0] = 0x7F // leaves 2^56 numbers before 0 follows
		}
		g.instants = s.instants()
	}
	binary.BigEndian.PutUint64(id[4:], g.nextInstant())
	return id, nil
}

// instants numbers the ids for given instants. A number is the process value and the counter, in 64 bits, and none is
// used twice whatever the timestamps are.
type instants struct {
	started     bool
	first, next uint64
}

// instants returns the numbers that begin with s.
func (s start) instants() instants {
	n := s.number()
	return instants{true, n, n}
}

// contains reports whether numbers in use have the process value.
func (i *instants) contains(process [5]byte) bool {
	p := start{process: process}.number()
	return i.started && i.first>>24<<24 <= p && p <= i.next
}

// nextInstant returns the next number. It passes over the process values that other ids have. It needs mu.
func (g *Generator) nextInstant() uint64 {
	n := g.instants.next
	for (n&lastCounter == 0 || n == g.instants.first) && g.hasProcess(startOf(n).process) {
		n += 1 << 24
	}
	g.instants.next = n + 1
	return n
}

// retireInstants ends the numbers in use, so that others begin with the next id. It needs mu.
func (g *Generator) retireInstants() {
	if i := g.instants; i.started {
		for p := max(i.first>>24, i.next>>24-min(i.next>>24, maxUsed)); p <= i.next>>24; p++ {
			g.addUsed(startOf(p << 24).process)
		}
	}
	g.instants = instants{}
}
