package scan

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var mixtures = flag.Int("mixtures", 1500, "how many fields TestVerdictIsNeverWrong makes")

// clock returns the i-th of the times at which a program makes ids.
type clock func(i int) time.Time

// moments returns a clock whose times are within some span, which ends in the last years.
func moments(r *rand.Rand, span time.Duration) clock {
	begin := now.Add(-span - time.Duration(r.Int64N(int64(3*365*24*time.Hour))))
	step := span / 1000
	return func(i int) time.Time { return begin.Add(time.Duration(i%1000)*step + time.Duration(i/1000)) }
}

// dotNet returns the ticks of .NET: 100 ns since the year 1.
func dotNet(t time.Time) uint64 {
	return uint64(t.Unix()+62_135_596_800)*1e7 + uint64(t.Nanosecond()/100)
}

// generators make a maker of one program: with its machine, and the times at which it makes ids.
var generators = map[string]func(r *rand.Rand, at clock) maker{
	"v1": func(r *rand.Rand, at clock) maker {
		u := version(randomOctets(r), 1)
		return func(_ *rand.Rand, i int) [16]byte {
			ts := uint64(0x01B21DD213814000) + uint64(at(i).UnixNano()/100) + uint64(i)
			binary.BigEndian.PutUint32(u[:4], uint32(ts))
			binary.BigEndian.PutUint16(u[4:], uint16(ts>>32))
			binary.BigEndian.PutUint16(u[6:], uint16(ts>>48)|1<<12)
			return u
		}
	},
	// NEWSEQUENTIALID of SQL Server: version 1 of which the first three groups are shuffled.
	"NEWSEQUENTIALID": func(r *rand.Rand, at clock) maker {
		u := version(randomOctets(r), 1)
		return func(_ *rand.Rand, i int) [16]byte {
			ts := uint64(0x01B21DD213814000) + uint64(at(0).UnixNano()/100) + uint64(i)
			binary.BigEndian.PutUint32(u[:4], uint32(ts))
			binary.BigEndian.PutUint16(u[4:], uint16(ts>>32))
			binary.BigEndian.PutUint16(u[6:], uint16(ts>>48)|1<<12)
			return uuidrep.CSharpLegacy.Permute(u)
		}
	},
	"v3": func(r *rand.Rand, at clock) maker {
		space := uuid.UUID(randomOctets(r))
		return func(_ *rand.Rand, i int) [16]byte { return uuid.NewMD5(space, fmt.Append(nil, i)) }
	},
	"v4": func(*rand.Rand, clock) maker { return v4 },
	"v5": func(*rand.Rand, clock) maker { return v5 },
	"v7": func(r *rand.Rand, at clock) maker {
		return func(r *rand.Rand, i int) [16]byte {
			u := randomOctets(r)
			binary.BigEndian.PutUint64(u[:8], uint64(at(i).UnixMilli())<<16|uint64(u[6])<<8|uint64(u[7]))
			return version(u, 7)
		}
	},
	// GuidCombGenerator of NHibernate: version 4, with days since 1900 and 1/300 s of the day at the end.
	"COMB of NHibernate": func(r *rand.Rand, at clock) maker {
		return func(r *rand.Rand, i int) [16]byte {
			u, t := v4(r, i), at(i)
			binary.BigEndian.PutUint16(u[10:], uint16((t.Unix()+2_208_988_800)/86_400))
			binary.BigEndian.PutUint32(u[12:], uint32((t.Unix()%86_400)*300+int64(t.Nanosecond())*300/1e9))
			return u
		}
	},
	// SequentialGuidGenerator of the ABP Framework: ten random bytes, and milliseconds since the year 1.
	"ABP, SequentialAtEnd": func(r *rand.Rand, at clock) maker {
		return func(r *rand.Rand, i int) [16]byte {
			u := randomOctets(r)
			var ms [8]byte
			binary.BigEndian.PutUint64(ms[:], dotNet(at(i))/1e4)
			copy(u[10:], ms[2:])
			return u
		}
	},
	"ABP, SequentialAsString": func(r *rand.Rand, at clock) maker {
		return func(r *rand.Rand, i int) [16]byte {
			u := randomOctets(r)
			var ms [8]byte
			binary.BigEndian.PutUint64(ms[:], dotNet(at(i))/1e4)
			copy(u[:6], ms[2:])
			return u
		}
	},
	// SequentialGuidValueGenerator of Entity Framework Core: version 4, of which the last eight bytes are a counter.
	"Entity Framework Core": func(r *rand.Rand, at clock) maker {
		begin := dotNet(at(0))
		return func(r *rand.Rand, i int) [16]byte {
			u, c := v4(r, i), begin+uint64(i)
			for place, b := range []int{1, 0, 7, 6, 5, 4, 3, 2} {
				u[8+place] = byte(c >> (8 * b))
			}
			return u
		}
	},
	// NewIdGenerator of MassTransit, NextGuid and NextSequentialGuid.
	"NewId": func(r *rand.Rand, at clock) maker {
		ids, worker := newIDs(at), randomOctets(r)
		return func(*rand.Rand, int) (u [16]byte) {
			t, sequence := ids()
			binary.BigEndian.PutUint32(u[:4], uint32(worker[4])<<24|uint32(worker[5])<<16|uint32(sequence<<8|sequence>>8))
			copy(u[4:], []byte{worker[2], worker[3], worker[0], worker[1], byte(t >> 8), byte(t), byte(t >> 56), byte(t >> 48), byte(t >> 40), byte(t >> 32), byte(t >> 24), byte(t >> 16)})
			return u
		}
	},
	"NewId, NextSequentialGuid": func(r *rand.Rand, at clock) maker {
		ids, worker := newIDs(at), randomOctets(r)
		return func(*rand.Rand, int) (u [16]byte) {
			t, sequence := ids()
			binary.BigEndian.PutUint64(u[:8], t)
			copy(u[8:], worker[:6])
			binary.BigEndian.PutUint16(u[14:], sequence<<8|sequence>>8)
			return u
		}
	},
	"ULID": func(r *rand.Rand, at clock) maker {
		return func(r *rand.Rand, i int) [16]byte {
			u := randomOctets(r)
			binary.BigEndian.PutUint64(u[:8], uint64(at(i).UnixMilli())<<16|uint64(u[6])<<8|uint64(u[7]))
			return u
		}
	},
	// Flake of Boundary: milliseconds, a worker of six bytes, and a counter in each millisecond.
	"Flake": func(r *rand.Rand, at clock) maker {
		worker := randomOctets(r)
		return func(_ *rand.Rand, i int) (u [16]byte) {
			binary.BigEndian.PutUint64(u[:8], uint64(at(i).UnixMilli()))
			copy(u[8:14], worker[:])
			binary.BigEndian.PutUint16(u[14:], uint16(i))
			return u
		}
	},
	// An ObjectID behind four bytes of a tenant, or of zeros.
	"ObjectID": func(r *rand.Rand, at clock) maker {
		process, begin := randomOctets(r), r.Uint32()
		return func(_ *rand.Rand, i int) (u [16]byte) {
			binary.BigEndian.PutUint32(u[12:], begin+uint32(i)) // 24 bits; the process follows
			copy(u[:4], process[8:])
			binary.BigEndian.PutUint32(u[4:], uint32(at(i).Unix()))
			copy(u[8:13], process[:])
			return u
		}
	},
	"00000000-0000-0000-0000-000000000001": func(*rand.Rand, clock) maker { return counter },
	"tenant and counter": func(r *rand.Rand, at clock) maker {
		tenants, begin := 1+r.IntN(50), r.Uint64N(1<<40)
		return func(r *rand.Rand, i int) (u [16]byte) {
			binary.BigEndian.PutUint64(u[:8], uint64(r.IntN(tenants)))
			binary.BigEndian.PutUint64(u[8:], begin+uint64(i))
			return u
		}
	},
	// A fixed beginning, and a counter somewhere in the rest.
	"counter": func(r *rand.Rand, at clock) maker {
		u, place, begin, step := randomOctets(r), r.IntN(9), r.Uint64(), uint64(1)<<r.IntN(40)
		return func(_ *rand.Rand, i int) [16]byte {
			binary.BigEndian.PutUint64(u[place:], begin+uint64(i)*step)
			return u
		}
	},
	"MD5": func(*rand.Rand, clock) maker { return md5Sum },
}

// newIDs returns the ticks and the sequence of the next NewId of a process. The sequence begins anew with each tick.
func newIDs(at clock) func() (ticks uint64, sequence uint16) {
	i, last, n := 0, uint64(0), -1
	return func() (uint64, uint16) {
		if t := dotNet(at(i)); t > last {
			last, n = t, -1
		}
		i, n = i+1, n+1
		return last, uint16(n)
	}
}

// proving are the generators whose UUIDs prove an order by themselves, whatever else is there. Version 1 proves at most that of
// Java.
var proving = []string{"v3", "v4", "v5", "v7", "COMB of NHibernate"}

// A verdict names an order only if some values are in it, and mixed only if values are in two orders, whatever programs
// wrote a field. A hundred UUIDs with a version, if they are at least half of the values, tell an order.
func TestVerdictIsNeverWrong(t *testing.T) {
	var names []string
	for name := range generators {
		names = append(names, name)
	}
	slices.Sort(names)
	seeds := []uint64{13481, 28224} // ObjectIDs: a process that looks like a plausible time, and a counter of which most values have the same bits
	for seed := range uint64(*mixtures) {
		seeds = append(seeds, seed)
	}
	verdicts := make(map[Verdict]int)
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 45))
		s := newScan(t)
		c, users := s.collector(t, "c"), s.collector(t, "users")
		elsewhere := []int{0, 0, 0, 1, 20, 50, 100}[r.IntN(7)] // of 100 values, how many are also in another collection
		single, rep := r.IntN(2) == 0, legacy[r.IntN(3)]
		var of []string
		var all int
		in, proof := make(map[string]bool), make(map[string]int)
		for range 1 + r.IntN(4) {
			if !single {
				rep = legacy[r.IntN(3)]
			}
			name, n := names[r.IntN(len(names))], 1+r.IntN(1<<r.IntN(11))
			of, all = append(of, fmt.Sprint(n, " ", name, " ", rep)), all+n
			m := generators[name](r, moments(r, time.Microsecond<<r.IntN(49))) // up to nine years
			for i := range n {
				u := m(r, i)
				for _, is := range legacy { // some values are the same in two orders
					in[is.String()] = in[is.String()] || is.Permute(u) == rep.Permute(u)
				}
				collect(t, c, bson.D{{Key: "id", Value: stored(u, 3, rep)}})
				if r.IntN(100) < elsewhere {
					collect(t, users, bson.D{{Key: "_id", Value: uuid.UUID(u).String()}})
				}
			}
			if slices.Contains(proving, name) {
				proof[rep.String()] += n
			}
		}
		e := evidence(t, s)
		verdicts[e.Verdict]++
		wrong := e.Verdict == Mixed && single || e.Verdict.Named() && !in[string(e.Verdict)]
		for order, n := range proof {
			if n >= 100 && 2*n >= all && e.Verdict != Mixed && string(e.Verdict) != order {
				wrong = true
			}
		}
		if wrong {
			t.Errorf("seed %d: %s, %d %% elsewhere: %s\n  %s", seed, strings.Join(of, ", "), elsewhere, e.Verdict, strings.Join(e.Reasons, "\n  "))
		}
	}
	t.Log(verdicts)
	for _, v := range []Verdict{Mixed, Undetermined, "javaLegacy", "csharpLegacy", "pythonLegacy"} {
		if verdicts[v] < *mixtures/30 {
			t.Errorf("%s: %d of %d", v, verdicts[v], *mixtures)
		}
	}
}
