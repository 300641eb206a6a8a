package objectidgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bsonids/bsonids/internal/clock"
	"github.com/bsonids/bsonids/internal/fork"
)

// maxUsed is how many process values of the past are kept, so that a renewal draws none of them.
const maxUsed = 1024

// start has the random values of a generator.
type start struct {
	process [5]byte
	counter uint32 // of the first id
}

func drawStart(random io.Reader) (start, error) {
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return start{}, fmt.Errorf("objectidgen: reading 8 random bytes: %w", err)
	}
	return startOf(binary.BigEndian.Uint64(b[:])), nil
}

// startOf and number convert between a start and the last 8 bytes of its first id.
func startOf(n uint64) start {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return start{[5]byte(b[:5]), uint32(n & lastCounter)}
}

func (s start) number() uint64 {
	var b [8]byte
	copy(b[:], s.process[:])
	return binary.BigEndian.Uint64(b[:]) | uint64(s.counter)
}

// copied reports whether this may be a copy of the process that drew the process value of cur.
func (g *Generator) copied(cur *second) bool {
	return g.system.Origin() != cur.origin
}

// Renew draws the process value and the counter again, as a new process would, and takes the timestamp back to the
// clock's time if it is ahead. It is for a program that continues after its memory was copied, for instance in a
// restored snapshot of a virtual machine. It may run at the same time as any other method; calls that begin after it
// has returned use the new values, those of [Generator.NewObjectIDAt] too.
//
// The ids that follow differ from those before, but they may sort before ids with the same or a later timestamp.
//
// It is an error if the random source fails, ends, or does not give a new process value in four attempts. The Generator
// then continues as before.
func (g *Generator) Renew() error {
	g.at(pointRenew)
	g.mu.Lock()
	defer g.mu.Unlock()
	cur := g.current.Load()
	if cur == nil {
		return errNotMade
	}
	now := g.read()
	o := g.system.Origin()
	s, err := g.drawNew(g.source(cur))
	if err != nil {
		return err
	}
	g.retireInstants()
	g.instants = instants{}
	g.renewAt(cur, now.seconds, s, o)
	return nil
}

// renew begins a new order in the second that is due, and cannot fail. If no random source gives a process value, the
// next one that was not used follows. It needs mu.
func (g *Generator) renew(cur *second, due int64) *second {
	o := g.system.Origin() // before the draw: a fork in between makes it old
	s, err := g.drawNew(g.source(cur))
	if err != nil {
		s, err = g.drawNew(fork.Reader)
	}
	if err != nil {
		s = start{cur.process, cur.start}
		for g.isUsed(s.process) {
			s = startOf(s.number() + 1<<24)
		}
	}
	return g.renewAt(cur, due, s, o)
}

func (g *Generator) renewAt(cur *second, seconds int64, s start, o clock.Origin) *second {
	g.addUsed(cur.process)
	return g.replace(cur, func(uint64) *second { return newSecond(seconds, s, cur.order.Next(uint64(max(seconds, 0))), o) })
}

// source returns where to draw from: once the process was copied not from the reader of WithRandom, of which the
// original may have a copy. It needs mu.
func (g *Generator) source(cur *second) io.Reader {
	if g.copied(cur) {
		g.random = fork.Reader
	}
	return g.random
}

// drawNew returns a start with a process value that is not in use. It needs mu.
func (g *Generator) drawNew(random io.Reader) (start, error) {
	for range 4 {
		s, err := drawStart(random)
		if err != nil || !g.isUsed(s.process) {
			return s, err
		}
	}
	return start{}, errors.New("objectidgen: the random source returns the same process value again and again")
}

// isUsed reports whether ids have the process value. It needs mu.
func (g *Generator) isUsed(process [5]byte) bool {
	return g.hasProcess(process) || g.instants.contains(process)
}

// hasProcess is the same without the ids for given instants.
func (g *Generator) hasProcess(process [5]byte) bool {
	return process == g.current.Load().process || slices.Contains(g.used, process)
}

func (g *Generator) addUsed(process [5]byte) {
	if n := len(g.used); n >= maxUsed {
		g.used = slices.Delete(g.used, 0, n-maxUsed+1)
	}
	g.used = append(g.used, process)
}
