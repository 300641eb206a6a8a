package objectidgen

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The odds that processes make the same ids, by the number of processes n and the ids r that each makes in one second,
// for process values of p bits and counters of c bits: 40 and 24 in an ObjectID.

// sharedValue is the probability that two of the processes at least have the same process value: the birthday problem,
// n(n-1)/2^(p+1) if that is small.
func sharedValue(n, p int) float64 {
	none := 0.0 // the logarithm of the probability that there are none
	for i := range n {
		none += math.Log1p(-float64(i) / math.Exp2(float64(p)))
	}
	return -math.Expm1(none)
}

// overlap is the probability that two processes that share their value make an id twice in one second, their counters
// being anywhere: of the 2^c distances between them, those from -(r-1) to r-1.
func overlap(r, c int) float64 {
	return min(1, float64(2*r-1)/math.Exp2(float64(c)))
}

// duplicates is the expected number of pairs of equal ids in one second: n(n-1)/2 pairs of processes, each with r²
// pairs of ids, each alike with the probability 2^-(p+c).
func duplicates(n, r, p, c int) float64 {
	return float64(n) * float64(n-1) / 2 * float64(r) * float64(r) / math.Exp2(float64(p+c))
}

// TestCollisionOdds checks the formulas by a simulation of real generators, scaled down to process values and counters
// of few bits.
func TestCollisionOdds(t *testing.T) {
	trials := 4000
	switch {
	case raceEnabled:
		trials = 1000
	case long(t):
		trials = 20000
	}
	for _, test := range []struct{ n, r, p, c int }{
		{12, 5, 8, 8},
		{2, 3, 3, 5},
		{30, 1, 9, 6},
		{8, 20, 5, 10},
	} {
		random := &fewBits{rand.New(rand.NewPCG(uint64(test.n), uint64(test.r))), test.p}
		var shared, pairs, overlaps int
		var equal, squares float64
		for range trials {
			processes := make([][]bson.ObjectID, test.n)
			for i := range processes {
				g := newGenerator(t, WithRandom(random), WithClock(at(100)))
				g.width = 1 << test.c
				processes[i] = make([]bson.ObjectID, test.r)
				g.Fill(processes[i])
			}
			any, found := false, 0
			for i, a := range processes {
				for _, b := range processes[:i] {
					if Decode(a[0]).Process != Decode(b[0]).Process {
						continue
					}
					any = true
					pairs++
					if n := common(a, b); n > 0 {
						overlaps++
						found += n
					}
				}
			}
			if any {
				shared++
			}
			equal += float64(found)
			squares += float64(found) * float64(found)
		}
		// The seeds are fixed, so this cannot fail by chance: five standard deviations only say how close is close.
		near := func(what string, got, want, deviation float64) {
			if math.Abs(got-want) > 5*deviation {
				t.Errorf("%+v: %s: %.5f simulated, %.5f by the formula, standard deviation %.5f", test, what, got, want, deviation)
			}
			t.Logf("%+v: %s: %.5f simulated, %.5f by the formula", test, what, got, want)
		}
		share := func(probability float64, of int) float64 {
			return math.Sqrt(probability * (1 - probability) / float64(of))
		}
		want := sharedValue(test.n, test.p)
		near("processes that share a value", float64(shared)/float64(trials), want, share(want, trials))
		want = overlap(test.r, test.c)
		near("those that make an id twice", float64(overlaps)/float64(pairs), want, share(want, pairs))
		mean := equal / float64(trials)
		near("equal ids", mean, duplicates(test.n, test.r, test.p, test.c), math.Sqrt((squares/float64(trials)-mean*mean)/float64(trials)))
	}
}

// The figures in docs/collisions.md.
func TestCollisionFigures(t *testing.T) {
	// said fails unless the guide's figure is the formula's, to the digits that it has.
	said := func(what string, guide, formula, digits float64) {
		t.Helper()
		if math.Abs(formula/guide-1) > digits {
			t.Errorf("%s: %.4g, the guide says %.4g", what, formula, guide)
		}
	}
	const day, year = 86400.0, 365.25 * 86400
	for n, shared := range map[int]float64{10: 4.1e-11, 100: 4.5e-9, 1000: 4.5e-7, 10000: 4.5e-5, 100000: 4.5e-3} {
		got := sharedValue(n, 40)
		said(fmt.Sprint(n, " processes share a value"), shared, got, 0.02)
		said("n(n-1)/2^41", float64(n)*float64(n-1)/math.Exp2(41), got, 0.003)
	}
	said("fleets of ten thousand without", 22000, 1/sharedValue(10000, 40), 0.01)
	for _, pair := range []struct {
		r                 int
		overlap, onceEach float64
	}{
		{1, 6.0e-8, 200 * day}, {10, 1.1e-6, 10 * day}, {100, 1.2e-5, day}, {1000, 1.2e-4, 2*3600 + 20*60},
	} {
		got := overlap(pair.r, 24)
		said(fmt.Sprint(pair.r, " ids a second each"), pair.overlap, got, 0.03)
		said(fmt.Sprint(pair.r, " ids a second each, once in"), pair.onceEach, 1/got, 0.05)
	}
	said("10,000 processes that restart daily, years", 60, day/sharedValue(10000, 40)/year, 0.02)
	said("100 processes that restart daily, years", 600000, day/sharedValue(100, 40)/year, 0.02)
	// As likely as not after n ids if n² / 2^(bits+1) = ln 2.
	said("version 4, years at a billion a second", 86, math.Sqrt(2*math.Ln2*math.Exp2(122))/1e9/year, 0.01)
}

// common counts the ids that are in both.
func common(a, b []bson.ObjectID) int {
	n := 0
	for _, x := range a {
		for _, y := range b {
			if x == y {
				n++
			}
		}
	}
	return n
}

// fewBits is a random source for process values of so many bits.
type fewBits struct {
	rand *rand.Rand
	bits int
}

func (f *fewBits) Read(b []byte) (int, error) {
	var value [8]byte
	binary.BigEndian.PutUint64(value[:], f.rand.Uint64()<<(24+40-f.bits)>>(40-f.bits)|uint64(f.rand.Uint32N(1<<24)))
	return copy(b, value[:]), nil
}
