package scan

import (
	"math"
	"slices"
)

// posterior is the result of the model.
type posterior struct {
	order         [orders]float64 // probability that all values are in the order
	mixed, none   float64
	share         [orders]float64 // of the values, in the best mixture
	noneShare     float64
	present       [orders]bool    // the mixture needs the order
	effectiveSize [orders]float64 // number of independent values among those that fit
	matched       int

	// against is the number of values that are equal to ids elsewhere and contradict the order that
	// the bits name, if there are too many to ignore.
	against int
	bits    Order

	// sequentialGUIDs is true if the values may be sequential GUIDs of SQL Server in the other one
	// of network and C# order.
	sequentialGUIDs bool
}

func (w *posterior) best() Order {
	best := Network
	for o := range orders {
		if w.order[o] > w.order[best] {
			best = o
		}
	}
	return best
}

func newPosterior(subtype byte, values []readings) posterior {
	var w posterior
	mix := fitMixture(values)
	copy(w.share[:], mix.share[:])
	w.noneShare = mix.share[orders]

	best := Network
	for o := range orders {
		w.effectiveSize[o] = effectiveSize(values, o)
		if w.share[o] > w.share[best] {
			best = o
		}
	}
	// Values with the same bytes at the version and the variant count once: they may be UUIDs of
	// the clock of one machine, or keys with a fixed beginning. The evidence of all values is
	// scaled by the proportion of independent values in the best order.
	var fits [orders]float64
	for _, v := range values {
		for o := range orders {
			if v[o].version > 0 {
				fits[o]++
			}
		}
	}
	scale := 1.0
	if fits[best] > 0 {
		scale = w.effectiveSize[best] / fits[best]
	}
	for _, v := range values {
		if v.matched() {
			w.matched++
		}
	}

	// The shares of the mixture were fitted to the values. Each free share costs half the logarithm
	// of the number of values (Schwarz).
	price := math.Log(float64(len(values))*scale+1) / 2
	priorOrder, priorMixed, priorNone := prior(subtype)
	logs := make([]float64, 0, orders+2)
	whole := mix.likelihood(values, scale)
	var alone [orders]float64
	for o := range orders {
		m := mix
		for other := range orders {
			if other != o {
				m = m.without(other)
			}
		}
		alone[o] = m.likelihood(values, scale)
		log := single(values, o, outlierRate).likelihood(values, scale)
		if strays := 1 - fits[o]/float64(len(values)+1); strays < outlierRate {
			log = max(log, single(values, o, strays).likelihood(values, scale)-price)
		}
		logs = append(logs, math.Log(priorOrder[o])+log)
	}
	logs = append(logs, math.Log(priorMixed)+whole-float64(orders)*price)
	none := 0.0
	for o := range orders {
		none = max(none, math.Log(sharedBytesPrior)+logSharedBytes(values, o, scale))
	}
	logs = append(logs, math.Log(priorNone)+none)
	top := slices.Max(logs)
	var sum float64
	for i := range logs {
		logs[i] = math.Exp(logs[i] - top)
		sum += logs[i]
	}
	for o := range orders {
		w.order[o] = logs[o] / sum
	}
	w.mixed, w.none = logs[orders]/sum, logs[orders+1]/sum
	for o := range orders {
		gain := whole - mix.without(o).likelihood(values, scale)
		w.present[o] = gain-price >= math.Log(namingThreshold/(1-namingThreshold))
		if w.share[o] < 1-outlierRate {
			continue
		}
		// A mixture of one part and strays means the same as that part alone, unless the strays are
		// in another order.
		gain = whole - alone[o] - float64(orders-1)*price
		others := 1 / (1 + priorOrder[o]/priorMixed*math.Exp(-gain))
		w.order[o], w.mixed = w.order[o]+w.mixed*(1-others), w.mixed*others
	}
	if w.noneShare >= 1-outlierRate {
		w.none, w.mixed = w.none+w.mixed, 0
	}
	return w
}

// withConflicts returns the weights if the bits alone name an order, and some values that fit it
// are equal to ids elsewhere in another order. A few such values are ignored. If there are more,
// either the bits or the equal ids are misleading, for example because the ids were copied with
// their bytes unchanged. No order is then certain.
func withConflicts(subtype byte, values []readings, w posterior) posterior {
	blind, kept := slices.Clone(values), slices.Clone(values)
	for i := range blind {
		for o := range orders {
			blind[i][o].matches = nil
		}
	}
	bits := newPosterior(subtype, blind)
	named := bits.best()
	if bits.order[named] < namingThreshold || bits.effectiveSize[named] < minIndependent {
		return w
	}
	against := 0
	for i, v := range values {
		if v[named].version > 0 && len(v[named].matches) == 0 && v.matched() {
			against++
			kept[i] = blind[i]
		}
	}
	switch {
	case against == 0:
		return w
	case float64(against) < outlierRate*float64(len(values)):
		return newPosterior(subtype, kept)
	}
	for o := range orders {
		w.order[o] = (w.order[o] + bits.order[o]) / 2
	}
	w.mixed, w.none = (w.mixed+bits.mixed)/2, (w.none+bits.none)/2
	w.against, w.bits = against, named
	return w
}

// withMinority returns the weights if most values are in one order, and those that do not fit it
// are, by themselves, in another order. If the values of the majority are worth little each, as the
// UUIDs of the clock of one machine are, the others are worth as little next to them and would be
// taken for strays.
func withMinority(subtype byte, values []readings, w posterior) posterior {
	best := w.best()
	if w.order[best] < namingThreshold {
		return w
	}
	strays := slices.DeleteFunc(slices.Clone(values), func(v readings) bool { return v[best].version > 0 || len(v[best].matches) > 0 })
	if len(strays) < minIndependent {
		return w
	}
	of := newPosterior(subtype, strays)
	other := of.best()
	fits, plausible := 0, 0
	for _, v := range strays {
		if v[other].version > 0 {
			fits++
		}
		if v[other].plausible {
			plausible++
		}
	}
	if other == best || of.order[other] < namingThreshold || of.effectiveSize[other] < minIndependent && !mostly(plausible, fits) {
		return w
	}
	w.mixed += w.order[best] * of.order[other]
	w.order[best] *= 1 - of.order[other]
	w.present[best], w.present[other] = true, true
	return w
}

// mostly reports whether so many of the values that fit have a plausible time that it is not
// chance.
func mostly(plausible, fits int) bool { return plausible > 0 && plausible >= fits*9/10 }

// allowSequentialGUIDs checks for UUIDs that may be from SQL Server. Its NEWSEQUENTIALID makes
// UUIDs of version 1 and shuffles the bytes of the first three groups as C# order does. In network
// order, they look like version 1 in C# order, and the reverse. Only an equal id elsewhere
// distinguishes the two cases.
func (w *posterior) allowSequentialGUIDs(values []readings) {
	best := w.best()
	if best == Java {
		return
	}
	fits, first := 0, 0
	for _, v := range values {
		if len(v[best].matches) > 0 {
			return
		}
		if v[best].version > 0 {
			fits++
		}
		if v[best].version == 1 && v[best].plausible {
			first++
		}
	}
	if !mostly(first, fits) {
		return
	}
	w.sequentialGUIDs = true
	if over := w.order[best] - (1 - sequentialPrior); over > 0 {
		w.order[best] -= over
		w.order[Network+CSharp-best] += over
	}
}
