package scan

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The model. A value in a given order is a UUID of one of the shapes below, and all its other bits
// are arbitrary. With probability stray it is not such a UUID, and any 128 bits are equally likely.
// All likelihoods are relative to the latter. The values of a field are usually of similar origin,
// so the shares of the shapes are learned from them. The prior shares are kindShare, which weighs as
// much as one value (a Dirichlet distribution).
const (
	outlierRate = 0.02
	// sharedBytesPrior is the prior probability that bytes that are not UUIDs are alike exactly at
	// the version and the variant (see logSharedBytes).
	sharedBytesPrior = 0.001
	// bitsFactor is the number of values of 128 random bits for each one that has the variant and a
	// given version.
	bitsFactor = 64

	// matchFactor is the weight of an equal id elsewhere whose order is known. The 128 bits are
	// equal, although nothing requires it. The factor is far below 2¹²⁸, so that a few exceptions
	// do not outweigh everything else.
	matchFactor = 1e9

	// namingThreshold is the least probability at which an order is named. minIndependent is the
	// least number of independent values for which the variant and version bits alone name an
	// order. Two values are too few.
	namingThreshold = 0.99
	minIndependent  = 3

	// sequentialPrior is the least probability that a field of version 1 in network or C# order
	// contains sequential GUIDs of SQL Server in the other order. The values do not distinguish the
	// two cases, so neither order is named.
	sequentialPrior = 0.4
)

// kindShare is the frequency of each kind before any value is known.
var kindShare = [shapes]float64{
	1: .09, 2: .01, 3: .05, 4: .59, 5: .05, 6: .04, 7: .09, 8: .05, misdated1: .01, misdated6: .01, misdated7: .01,
}

// prior returns the probability of each hypothesis before any value is examined: one of the orders,
// a mixture, or bytes that are not UUIDs, which is much more likely for subtype 0.
func prior(subtype byte) (order [orders]float64, mixed, none float64) {
	if subtype == bson.TypeBinaryGeneric {
		return [orders]float64{.5, .05, .05}, .05, .35
	}
	return [orders]float64{.3, .3, .3}, .05, .05
}

// model describes the origin of the values of a field: the shares of the orders and of values that
// are not UUIDs, and the shares of the shapes in each order.
type model struct {
	share  [orders + 1]float64
	shapes [orders][shapes]float64
}

// posteriorShares returns the shares of the shapes, given the number of values of each kind.
func posteriorShares(n [shapes]float64) (shares [shapes]float64) {
	total := 1.0
	for _, k := range n {
		total += k
	}
	for k := range shares {
		shares[k] = (n[k] + kindShare[k]) / total
	}
	return shares
}

// single returns the model in which all values except strays are in one order. strays is the share
// of the strays.
func single(values []readings, o Order, strays float64) model {
	m := model{}
	m.share[o], m.share[orders] = 1-strays, strays
	var n [shapes]float64
	for _, v := range values {
		n[v[o].kind]++
	}
	n[0] = 0
	m.shapes[o] = posteriorShares(n)
	return m
}

// fitMixture fits a model by expectation maximization.
func fitMixture(values []readings) model {
	m := model{share: [orders + 1]float64{.25, .25, .25, .25}, shapes: [orders][shapes]float64{kindShare, kindShare, kindShare}}
	if len(values) == 0 {
		return m
	}
	for range 200 {
		last := m
		share, n, _ := m.expect(values, 1)
		for part := range share {
			m.share[part] = share[part] / float64(len(values))
		}
		for o := range n {
			m.shapes[o] = posteriorShares(n[o])
		}
		if m.near(&last) {
			break
		}
	}
	return m
}

// near reports whether the shares of the models differ by no more than matters among thousands of
// values.
func (m *model) near(other *model) bool {
	const little = 1e-6
	for o := range orders {
		for k := range shapes {
			if math.Abs(m.share[o]*m.shapes[o][k]-other.share[o]*other.shapes[o][k]) > little {
				return false
			}
		}
	}
	return math.Abs(m.share[orders]-other.share[orders]) <= little
}

// expect returns the number of values from each part of m, the number of each kind in each order,
// and the log-likelihood of the values. In the latter two, values that are not equal to an id
// elsewhere count with the weight scale.
func (m *model) expect(values []readings, scale float64) (share [orders + 1]float64, n [orders][shapes]float64, log float64) {
	for i := range values {
		v := &values[i]
		p, by := m.share[orders], scale
		var part [orders]float64
		for o := range orders {
			part[o] = m.share[o] * v[o].weight(&m.shapes[o])
			p += part[o]
			if len(v[o].matches) > 0 {
				by = 1
			}
		}
		if p == 0 {
			continue
		}
		for o := range orders {
			share[o] += part[o] / p
			if v[o].kind > 0 {
				n[o][v[o].kind] += by * part[o] / p
			}
		}
		share[orders] += m.share[orders] / p
		log += by * math.Log(p)
	}
	return share, n, log
}

// likelihood returns the log-likelihood of the values, without what m has learned about their shapes
// from them.
func (m model) likelihood(values []readings, scale float64) float64 {
	_, n, log := m.expect(values, scale)
	for o := range n {
		for k, count := range n[o] {
			if count > 0 {
				log -= count * math.Log(m.shapes[o][k])
			}
		}
		log += logDirichletMultinomial(n[o][:], kindShare[:])
	}
	return log
}

// without returns m with the share of one order assigned to values that are not UUIDs.
func (m model) without(o Order) model {
	m.share[orders] += m.share[o]
	m.share[o] = 0
	return m
}

// logDirichletMultinomial returns the log-likelihood of a sequence with n of each kind if the
// shares are known only as well as from one observation with the shares first.
func logDirichletMultinomial(n, first []float64) float64 {
	gamma := func(x float64) float64 { l, _ := math.Lgamma(x); return l }
	var log, total float64
	for i := range n {
		if n[i] > 0 {
			log += gamma(first[i]+n[i]) - gamma(first[i])
			total += n[i]
		}
	}
	return log - gamma(1+total)
}

// logSharedBytes returns the log-likelihood of the values, relative to random bytes, if they are
// not UUIDs but share some bytes, as numbers, addresses and keys do. The bits at the version and
// the bits at the variant of the order are then independent of each other. Among UUIDs and other
// values, they depend on each other.
func logSharedBytes(values []readings, o Order, scale float64) float64 {
	var versions [16]float64
	var variants [4]float64
	for _, v := range values {
		versions[v[o].cell>>12] += scale
		variants[v[o].cell>>6&3] += scale
	}
	even := func(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }
	return float64(len(values))*scale*math.Log(bitsFactor) + logDirichletMultinomial(versions[:], even(16)) + logDirichletMultinomial(variants[:], even(4))
}

// effectiveSize returns the number of random values that would have as many different bits around
// the version and the variant as the values that fit.
func effectiveSize(values []readings, o Order) (worth float64) {
	const m = 1 << 10 // 4 bits next to the version, 6 next to the variant
	var n, cells [9]float64
	seen := make(map[uint16]struct{})
	for _, v := range values {
		r := &v[o]
		if r.version == 0 {
			continue
		}
		n[r.version]++
		if _, ok := seen[r.cell]; !ok {
			seen[r.cell] = struct{}{}
			cells[r.version]++
		}
	}
	for version, k := range cells {
		worth += min(n[version], math.Log1p(-k/m)/math.Log1p(-1.0/m))
	}
	return worth
}
