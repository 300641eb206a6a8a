package bench

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsonids/bsonids/objectidgen"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// objectIDCases returns the cases of package objectidgen. ObjectID draws one id at a time,
// ObjectIDFill a thousand at once. In the cases with x2, two goroutines draw at the same time. The
// time is always the time per id. The generators use the system clock.
//
// ObjectIDDuplicates draws from two goroutines as fast as they can for two seconds. It reports the
// number of ids (ids/run) and the number of ids that were drawn before (dups/run).
func objectIDCases() []Case {
	var cases []Case
	for _, at := range []struct {
		suffix string
		procs  int
	}{{"", 1}, {"x2", 2}} {
		add := func(work, impl string, run func(b *testing.B)) {
			cases = append(cases, Case{Work: work + at.suffix, Impl: impl, Procs: at.procs, Run: run})
		}
		add("ObjectID", "bsonids", inBursts(func(g *objectidgen.Generator, n int) {
			var id bson.ObjectID
			for range n {
				id = g.NewObjectID()
			}
			runtime.KeepAlive(id)
		}))
		add("ObjectID", "driver", inBursts(func(_ *objectidgen.Generator, n int) {
			var id bson.ObjectID
			for range n {
				id = bson.NewObjectID()
			}
			runtime.KeepAlive(id)
		}))
		add("ObjectID", "xid", drawXID)
		add("ObjectIDFill", "bsonids", inBursts(func(g *objectidgen.Generator, n int) {
			ids := make([]bson.ObjectID, 1000)
			for ; n > 0; n -= len(ids) {
				g.Fill(ids[:min(n, len(ids))])
			}
		}))
		add("ObjectIDFill", "driver", inBursts(func(_ *objectidgen.Generator, n int) {
			ids := make([]bson.ObjectID, 1000)
			for ; n > 0; n -= len(ids) {
				for i := range ids[:min(n, len(ids))] {
					ids[i] = bson.NewObjectID()
				}
			}
		}))
	}
	g := objectidgen.Default()
	for _, c := range []struct {
		impl string
		fill func(ids []bson.ObjectID)
	}{
		{"bsonids", func(ids []bson.ObjectID) {
			for i := range ids {
				ids[i] = g.NewObjectID()
			}
		}},
		{"bsonids-fill", g.Fill},
		{"driver", func(ids []bson.ObjectID) {
			for i := range ids {
				ids[i] = bson.NewObjectID()
			}
		}},
		{"driver-timestamp", func(ids []bson.ObjectID) {
			now := time.Now() // once per batch
			for i := range ids {
				ids[i] = bson.NewObjectIDFromTimestamp(now)
			}
		}},
	} {
		cases = append(cases, Case{Work: "ObjectIDDuplicates", Impl: c.impl, Procs: 2, Run: countDuplicates(c.fill)})
	}
	return cases
}

// inBursts draws b.N ids on as many goroutines as there are processors, in bursts of 2^23. A
// generator that does not repeat ids draws at most 2^24 in one second and then waits, so each burst
// gets a second of its own. This measures the work without the wait.
func inBursts(draw func(g *objectidgen.Generator, n int)) func(b *testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		workers := runtime.GOMAXPROCS(0)
		const burst = 1 << 23
		for left := b.N; left > 0; left -= burst {
			g, err := objectidgen.NewGenerator()
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() { draw(g, (min(left, burst)+w)/workers) })
			}
			wg.Wait()
		}
	}
}

const countSeconds = 2

// seenIDs has a bit for every counter value of some seconds.
type seenIDs struct {
	first     uint32
	seconds   [countSeconds + 4][1 << 24 / 64]uint64
	ids, dups atomic.Int64
}

// add records ids. It records ids with consecutive counters together, so that it does not slow the
// generator down.
func (s *seenIDs) add(ids []bson.ObjectID) bool {
	s.ids.Add(int64(len(ids)))
	for len(ids) > 0 {
		high, low := binary.BigEndian.Uint64(ids[0][:8]), binary.BigEndian.Uint32(ids[0][8:])
		second := uint32(high>>32) - s.first
		if second >= uint32(len(s.seconds)) {
			return false
		}
		run, limit := 1, min(len(ids), 64-int(low%64))
		for run < limit && binary.BigEndian.Uint64(ids[run][:8]) == high &&
			binary.BigEndian.Uint32(ids[run][8:]) == low+uint32(run) {
			run++
		}
		mask := ^uint64(0) >> (64 - run) << (low % 64)
		old := atomic.OrUint64(&s.seconds[second][low&0xFFFFFF/64], mask)
		s.dups.Add(int64(bits.OnesCount64(old & mask)))
		ids = ids[run:]
	}
	return true
}

func countDuplicates(fill func(ids []bson.ObjectID)) func(b *testing.B) {
	return func(b *testing.B) {
		var ids, dups int64
		for range b.N {
			now := time.Now()
			time.Sleep(now.Truncate(time.Second).Add(time.Second).Sub(now)) // start at the beginning of a second
			seen := &seenIDs{first: uint32(time.Now().Unix())}
			end := time.Now().Add(countSeconds * time.Second)
			var wg sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					batch := make([]bson.ObjectID, 1<<14)
					for time.Now().Before(end) {
						fill(batch)
						if !seen.add(batch) {
							b.Error("an id is of another time")
							return
						}
					}
				})
			}
			wg.Wait()
			ids += seen.ids.Load()
			dups += seen.dups.Load()
		}
		b.ReportMetric(float64(ids)/float64(b.N), "ids/run")
		b.ReportMetric(float64(dups)/float64(b.N), "dups/run")
	}
}
