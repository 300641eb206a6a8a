package scan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// conclude sets the verdict, or explains why the order cannot be determined.
func (e *Evidence) conclude(values []readings, w posterior) {
	best := w.best()
	t := e.Orders[best]
	// There are enough values that the bits are not chance, or there is evidence of a kind for
	// which one value suffices.
	enough := w.effectiveSize[best] >= minIndependent || t.Matches > 0 || mostly(t.Plausible, t.Fits)
	switch {
	case w.order[best] >= namingThreshold && enough:
		e.Verdict, e.Confidence = named(best, e.Subtype), certainty(w.order[best])
		e.explainOrder(best)
	case w.mixed >= namingThreshold && (e.Sample >= 20 || w.matched > 0) && slices.Contains(w.present[:], true):
		e.concludeMixed(w)
	default:
		e.Verdict, e.Confidence = Verdict{Outcome: Undecided}, certainty(w.order[best])
		e.explainDoubt(values, w, best)
	}
}

func (e *Evidence) concludeMixed(w posterior) {
	e.Verdict, e.Confidence = Verdict{Outcome: Mixed}, certainty(w.mixed)
	percent := func(share float64) string { return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) }
	for o := range orders {
		if w.present[o] {
			e.reason("about %s %% of the distinct values are %s", percent(w.share[o]), o.Name(e.Subtype))
		}
	}
	if w.noneShare >= outlierRate {
		e.reason("about %s %% fit no order; they may not be UUIDs", percent(w.noneShare))
	}
	e.Settle = "separate the documents by the program or the time that wrote them; a mixed field cannot be converted as a whole"
}

func (e *Evidence) explainOrder(best Order) {
	t := e.Orders[best]
	if t.Fits > 0 {
		e.reason("%d of %d distinct values have the variant and a version of RFC 9562 in this order; %.0f are expected by chance", t.Fits, e.Sample, t.ByChance)
	}
	for o, other := range e.Orders {
		if Order(o) != best {
			e.reason("read as %s: %d", other.Order, other.Fits)
			if other.Matches > 0 {
				e.reason("read as %s, %d equal ids in %s", other.Order, other.Matches, other.MatchedIn)
			}
		}
	}
	if t.Dated > 0 {
		e.reason("%d of %d values with a time have a plausible date", t.Plausible, t.Dated)
	}
	if t.Matches > 0 {
		e.reason("%d of %d comparable values equal ids of known order in %s", t.Matches, max(t.Comparable, t.Matches), t.MatchedIn)
	}
}

func (e *Evidence) explainDoubt(values []readings, w posterior, best Order) {
	const byMatch = "one value that also occurs in a field of subtype 4 or text"
	t := e.Orders[best]
	var same []string
	var together float64
	for o := range orders {
		if !slices.ContainsFunc(values, func(v readings) bool { return v[o].octets != v[best].octets }) {
			same = append(same, o.Name(e.Subtype))
			together += w.order[o]
		}
	}
	switch {
	case w.sequentialGUIDs:
		e.explainOrder(best)
		e.reason("version 1 in %s may also be a sequential GUID of SQL Server (NEWSEQUENTIALID) in %s, and the values do not determine which",
			t.Order, (Network + CSharp - best).Name(e.Subtype))
		e.Settle = "the UUID of one value, known from the program that wrote it, or " + byMatch
		return
	case e.Sample == 0:
		e.reason("every value is the same in all orders")
		e.Settle = "nothing; the values are the same in every order, so any order can be given"
		return
	case len(same) > 1 && together >= namingThreshold:
		e.reason("the values are the same in the orders %s", strings.Join(same, ", "))
		e.Settle = "nothing; the values are the same in " + strings.Join(same, " and ") + ", so either can be given"
		return
	case w.against > 0:
		bits, other := e.Orders[w.bits], slices.MaxFunc(e.Orders, func(a, b OrderEvidence) int { return a.Matches - b.Matches })
		e.reason("%d of %d distinct values have the variant and a version of RFC 9562 if read as %s", bits.Fits, e.Sample, bits.Order)
		e.reason("read as %s, %d equal ids in %s, and %d of these contradict that order", other.Order, other.Matches, other.MatchedIn, w.against)
		e.Settle = "the UUID of one value, known from the program that wrote it; either " + other.MatchedIn + " has bytes that were copied without conversion, or the variant and version bits mislead"
		return
	case e.matchesDisagree():
		e.reason("values equal ids in other fields in more than one order")
		e.Settle = "separate the documents by the program that wrote them"
		return
	case w.none >= 0.5 || w.noneShare >= 0.98 || t.Fits == 0:
		most := slices.MaxFunc(e.Orders, func(a, b OrderEvidence) int { return a.Fits - b.Fits })
		if deviation := math.Sqrt(most.ByChance * 7 / 8); float64(most.Fits) > most.ByChance+3*deviation {
			e.reason("read as %s, %d of %d distinct values have the variant and a version of RFC 9562, and %.0f are expected by chance; other data with constant bytes there would look the same",
				most.Order, most.Fits, e.Sample, most.ByChance)
		} else {
			e.reason("the values have no variant and version bits: in no order do more values fit than expected by chance (%.0f)", t.ByChance)
		}
		e.Settle = byMatch + "; more values do not help"
		return
	}
	e.reason("%d of %d distinct values fit %s, which count as %.0f independent ones", t.Fits, e.Sample, t.Order, w.effectiveSize[best])
	for o, other := range e.Orders {
		if Order(o) != best {
			e.reason("read as %s: %d", other.Order, other.Fits)
		}
	}
	if e.SettleValues = further(e.Subtype, values, best); e.SettleValues > 0 {
		e.Settle = fmt.Sprintf("about %d more distinct random UUIDs (version 4), or %s", e.SettleValues, byMatch)
	} else {
		e.Settle = byMatch
	}
}

// further returns how many more random UUIDs that fit only this order would make the report name
// it. It returns 0 if a thousand would not suffice.
func further(subtype byte, values []readings, o Order) int {
	values = slices.Clone(values)
	for n, step := 0, 1; n+step <= 1000; step = 1 + n/4 {
		for range step {
			var v readings
			v[o] = reading{version: 4, kind: 4, odds: bitsFactor, cell: uint16(0x40|n&15)<<8 | uint16(0x80|n>>4&63)}
			values = append(values, v)
			n++
		}
		if w := newPosterior(subtype, values); w.order[o] >= namingThreshold && w.effectiveSize[o] >= minIndependent {
			return n
		}
	}
	return 0
}

func (e *Evidence) matchesDisagree() bool {
	n := 0
	for _, t := range e.Orders {
		if t.Matches > 0 {
			n++
		}
	}
	return n > 1
}

func (e *Evidence) reason(format string, args ...any) {
	e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...))
}
