package scan

import (
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// Order is a byte order that stored octets may be in.
type Order int

const (
	Network Order = iota // as standard and pythonLegacy, and as Go programs write without a codec
	CSharp
	Java
	orders
)

var representations = [orders]uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// Name returns the name of the order for values of the subtype, as bsonids convert --from takes it where it does.
func (o Order) Name(subtype byte) string {
	if subtype == bson.TypeBinaryGeneric {
		return [...]string{"generic", "subtype 0 in C# order", "subtype 0 in Java order"}[o]
	}
	return representations[o].String()
}

// Evidence is what speaks for the byte order of the values of one subtype at one path, and the verdict. All of it goes
// by distinct values, of which Sample were looked at.
type Evidence struct {
	Subtype       byte  `json:"subtype"`
	Distinct      int64 `json:"distinct"` // about how many distinct values there are
	Sample        int   `json:"sample"`
	Uninformative int   `json:"uninformative,omitempty"` // the same in every order, such as the nil UUID; not in Sample

	Orders []OrderEvidence `json:"orders"`

	// Verdict is the name of an order, "mixed" or "cannot tell"; Confidence is the probability of that order, or of a
	// mixture, given the evidence, never 1. For "cannot tell" it is that of the likeliest of the orders.
	Verdict    string  `json:"verdict"`
	Confidence float64 `json:"confidence"`

	// Settle says what would settle a case that cannot be told: a number of further distinct values, where more of the
	// kind would do, and in words.
	SettleValues int    `json:"settleValues,omitempty"`
	Settle       string `json:"settle,omitempty"`

	Reasons []string `json:"reasons"`
}

// OrderEvidence is what the values look like when they are read in one order.
type OrderEvidence struct {
	Order       string  `json:"order"`
	Fits        int     `json:"fits"`     // variant of RFC 9562, and a version from 1 to 8
	ByChance    float64 `json:"byChance"` // how many would fit if the octets were random
	Versions    [9]int  `json:"versions"` // of those that fit, by version; [0] is unused
	Dated       int     `json:"dated"`    // versions 1, 6 and 7
	Plausible   int     `json:"plausible"`
	Matches     int     `json:"matches"` // equal to an id of subtype 4 or text elsewhere
	MatchedIn   string  `json:"matchedIn,omitempty"`
	Comparable  int     `json:"comparable,omitempty"` // values that could have matched there
	Share       float64 `json:"share"`                // of the values, as the best mixture has it
	Probability float64 `json:"probability"`          // that all values are in this order
}

// The model. A value in a given order is a UUID of one of the versions below, all other bits being anything; a UUID with
// a time was made between the version's first use and now, one time in a hundred excepted. With probability stray it
// is no such UUID, and any 128 bits are equally likely. All likelihoods are relative to the latter.
const (
	stray    = 0.02
	misdated = 0.01
	fitting  = 64 // values of 128 random bits for each that has the variant and a given version

	// match is what an id that stands elsewhere in a known order weighs: it has 128 bits in common with a value that
	// it needn't have been anything like. It is far below 2¹²⁸ so that a handful of oddities stays what it is.
	match = 1e9

	// sure is the probability from which an order is named, and few the number of independent values below which the
	// variant and version bits alone name none: two values are a story, not a sample.
	sure = 0.99
	few  = 3
)

// versionShare is how often each version is met where nothing is known.
var versionShare = [9]float64{1: .1, 2: .001, 3: .05, 4: .6, 5: .05, 6: .049, 7: .1, 8: .05}

// prior is the probability of each hypothesis before any value is looked at: one of the orders, a mixture, or octets
// that are no UUIDs at all, which is much likelier for subtype 0.
func prior(subtype byte) (order [orders]float64, mixed, none float64) {
	if subtype == bson.TypeBinaryGeneric {
		return [orders]float64{.5, .05, .05}, .05, .35
	}
	return [orders]float64{.3, .3, .3}, .05, .05
}

var (
	// UUIDs with a time were not made before these.
	firstV1 = time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)
	firstV6 = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	firstV7 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
)

// reading is what one value looks like in one order.
type reading struct {
	version   int // 0: doesn't fit
	dated     bool
	plausible bool
	matches   []int32
	weight    float64 // likelihood, relative to random octets
	cell      uint16  // the octets that hold version and variant
}

func read(u [16]byte, refs *references, now time.Time) reading {
	r := reading{cell: uint16(u[6])<<8 | uint16(u[8])}
	if v := int(u[6] >> 4); u[8]>>6 == 0b10 && v >= 1 && v <= 8 {
		r.version = v
		r.weight = fitting * versionShare[v]
		if t, err := uuidgen.Time(u); err == nil {
			r.dated = true
			first := firstV1
			var span float64 // how much of what the version can hold is plausible
			switch v {
			case 7:
				first = firstV7
				span = float64(now.Sub(first).Milliseconds()) / (1 << 48)
			default:
				if v == 6 {
					first = firstV6
				}
				span = float64(now.Sub(first).Microseconds()) * 10 / (1 << 60)
			}
			r.plausible = !t.Before(first) && !t.After(now.Add(24*time.Hour))
			if r.plausible {
				r.weight *= (1 - misdated) / span
			} else {
				r.weight *= misdated
			}
		}
	}
	if r.matches = refs.ids[u]; len(r.matches) > 0 {
		r.weight = max(r.weight, 1) * match
	}
	return r
}

func symmetric(v [16]byte) bool {
	return uuidrep.CSharpLegacy.Permute(v) == v && uuidrep.JavaLegacy.Permute(v) == v
}

// judge weighs the values in s, the distinct ones of count.
func judge(subtype byte, count int64, s *sketch, refs *references, now time.Time) Evidence {
	e := Evidence{Subtype: subtype, Distinct: min(s.distinct(), count)}
	var values [][orders]reading
	for _, entry := range s.entries {
		if symmetric(entry.value) {
			e.Uninformative++
			continue
		}
		var v [orders]reading
		for o := range orders {
			v[o] = read(representations[o].Permute(entry.value), refs, now)
		}
		values = append(values, v)
	}
	e.Sample = len(values)
	w := weigh(subtype, values)
	e.tally(values, s, refs, w)
	e.conclude(values, w)
	return e
}

// weights are the outcome of the model.
type weights struct {
	order       [orders]float64 // probability that all values are in the order
	mixed, none float64
	share       [orders]float64 // of the values, in the best mixture
	noneShare   float64
	independent [orders]float64 // how many independent values those that fit are worth
	matched     int
}

func weigh(subtype byte, values [][orders]reading) weights {
	var w weights
	share := mixture(values)
	copy(w.share[:], share[:])
	w.noneShare = share[orders]

	best := Network
	for o := range orders {
		w.independent[o] = independent(values, o)
		if w.share[o] > w.share[best] {
			best = o
		}
	}
	// Values with the same octets where version and variant are say it once, not many times: one machine's time-based
	// UUIDs, or keys with a fixed beginning. The evidence of all counts in the proportion in which that of the best
	// order's is independent.
	fits := 0
	for _, v := range values {
		if v[best].version > 0 {
			fits++
		}
	}
	scale := 1.0
	if fits > 0 {
		scale = w.independent[best] / float64(fits)
	}
	likelihood := func(share [orders + 1]float64) float64 {
		var sum float64
		for _, v := range values {
			p, matched := share[orders], false
			for o := range orders {
				p += share[o] * v[o].weight
				matched = matched || len(v[o].matches) > 0
			}
			if matched {
				sum += math.Log(p)
			} else {
				sum += math.Log(p) * scale
			}
		}
		return sum
	}
	for _, v := range values {
		for o := range orders {
			if len(v[o].matches) > 0 {
				w.matched++
				break
			}
		}
	}

	priorOrder, priorMixed, priorNone := prior(subtype)
	logs := make([]float64, 0, orders+2)
	for o := range orders {
		var single [orders + 1]float64
		single[o], single[orders] = 1-stray, stray
		logs = append(logs, math.Log(priorOrder[o])+likelihood(single))
	}
	// The mixture was fitted to the values with three free shares, for which half a logarithm of their number is the
	// usual price (Schwarz).
	free := 1.5 * math.Log(float64(len(values))*scale+1)
	logs = append(logs, math.Log(priorMixed)+likelihood(share)-free, math.Log(priorNone))
	top := logs[0]
	for _, l := range logs {
		top = max(top, l)
	}
	var sum float64
	for i := range logs {
		logs[i] = math.Exp(logs[i] - top)
		sum += logs[i]
	}
	for o := range orders {
		w.order[o] = logs[o] / sum
	}
	w.mixed, w.none = logs[orders]/sum, logs[orders+1]/sum
	// A mixture of one part says what that part says.
	for o := range orders {
		if w.share[o] >= 1-stray {
			w.order[o], w.mixed = w.order[o]+w.mixed, 0
		}
	}
	if w.noneShare >= 1-stray {
		w.none, w.mixed = w.none+w.mixed, 0
	}
	return w
}

// mixture fits the shares of the orders, and of values that are no UUIDs, by expectation and maximization.
func mixture(values [][orders]reading) [orders + 1]float64 {
	share := [orders + 1]float64{.25, .25, .25, .25}
	if len(values) == 0 {
		return share
	}
	for range 200 {
		var next [orders + 1]float64
		for _, v := range values {
			p := share[orders]
			for o := range orders {
				p += share[o] * v[o].weight
			}
			if p == 0 {
				continue
			}
			for o := range orders {
				next[o] += share[o] * v[o].weight / p
			}
			next[orders] += share[orders] / p
		}
		for i := range next {
			share[i] = next[i] / float64(len(values))
		}
	}
	return share
}

// independent returns what the number of values that fit is worth: all where the octets around version and variant vary
// as random ones would, the fewer the more often the same ones come.
func independent(values [][orders]reading, o Order) float64 {
	cells := make(map[uint16]struct{})
	var n [9]int
	total := 0
	for _, v := range values {
		if v[o].version > 0 {
			cells[v[o].cell] = struct{}{}
			n[v[o].version]++
			total++
		}
	}
	var expected float64
	for _, k := range n {
		const m = 1 << 10 // 4 bits beside the version, 6 beside the variant
		expected += m * -math.Expm1(float64(k)*math.Log1p(-1.0/m))
	}
	if expected == 0 {
		return 0
	}
	return float64(total) * min(1, float64(len(cells))/expected)
}

func (e *Evidence) tally(values [][orders]reading, s *sketch, refs *references, w weights) {
	for o := range orders {
		t := OrderEvidence{
			Order:       o.Name(e.Subtype),
			ByChance:    float64(len(values)) * 8 / 64,
			Share:       round(w.share[o]),
			Probability: certainty(w.order[o]),
		}
		in := make(map[int32]int)
		for _, v := range values {
			r := v[o]
			if r.version > 0 {
				t.Fits++
				t.Versions[r.version]++
			}
			if r.dated {
				t.Dated++
			}
			if r.plausible {
				t.Plausible++
			}
			if len(r.matches) > 0 {
				t.Matches++
			}
			for _, m := range r.matches {
				in[m]++
			}
		}
		most := int32(-1)
		for m, n := range in {
			if most < 0 || n > in[most] || n == in[most] && refs.names[m] < refs.names[most] {
				most = m
			}
		}
		if most >= 0 {
			t.MatchedIn, t.Comparable = refs.names[most], refs.comparable(s, most)
		}
		e.Orders = append(e.Orders, t)
	}
}

// conclude names the order, or says why it can't.
func (e *Evidence) conclude(values [][orders]reading, w weights) {
	best := Network
	for o := range orders {
		if w.order[o] > w.order[best] {
			best = o
		}
	}
	t := e.Orders[best]
	// Enough that the bits cannot be chance, or a kind of evidence that one value is enough of.
	enough := w.independent[best] >= few || t.Matches > 0 || t.Plausible > 0 && t.Plausible >= t.Fits*9/10
	present := 0
	for o := range orders {
		if w.share[o] >= stray {
			present++
		}
	}
	switch {
	case w.order[best] >= sure && enough:
		e.Verdict, e.Confidence = best.Name(e.Subtype), certainty(w.order[best])
		e.explainOrder(best)
	case w.mixed+w.order[best] >= sure && w.mixed >= 0.5 && w.noneShare < 0.98 && (e.Sample >= 20 || w.matched > 0):
		e.concludeMixed(w, present)
	default:
		e.Verdict, e.Confidence = "cannot tell", certainty(w.order[best])
		e.explainDoubt(w, best)
	}
}

func (e *Evidence) concludeMixed(w weights, present int) {
	e.Confidence = certainty(w.mixed)
	if present == 0 {
		e.Verdict = "cannot tell"
		e.explainDoubt(w, Network)
		return
	}
	e.Verdict = "mixed"
	for o := range orders {
		if w.share[o] >= stray {
			e.reason("about %.0f %% of the distinct values are %s", w.share[o]*100, o.Name(e.Subtype))
		}
	}
	if w.noneShare >= stray {
		e.reason("about %.0f %% fit no order and may be no UUIDs", w.noneShare*100)
	}
	e.Settle = "a mixed field cannot be converted as a whole: separate its documents first, by the time or the program that wrote them"
}

func (e *Evidence) explainOrder(best Order) {
	t := e.Orders[best]
	if t.Fits > 0 {
		e.reason("%d of %d distinct values have the variant and a version of RFC 9562 in this order; chance would give %.0f", t.Fits, e.Sample, t.ByChance)
	}
	for o, other := range e.Orders {
		if Order(o) != best {
			e.reason("read as %s, %d do", other.Order, other.Fits)
		}
	}
	if t.Dated > 0 {
		e.reason("%d of the %d with a time give a plausible date", t.Plausible, t.Dated)
	}
	if t.Matches > 0 {
		e.reason("%d of %d that could are equal to ids in %s, whose order is known", t.Matches, max(t.Comparable, t.Matches), t.MatchedIn)
	}
}

func (e *Evidence) explainDoubt(w weights, best Order) {
	const byMatch = "one value that also stands in a field of subtype 4 or text"
	t := e.Orders[best]
	switch {
	case e.Sample == 0:
		e.reason("every value is the same in all orders")
		e.Settle = "nothing: the values are the same in every order, and any of them may be named"
		return
	case e.matchesDisagree():
		e.reason("values match ids elsewhere in more than one order")
		e.Settle = "separating the documents by the program that wrote them"
		return
	case w.none >= 0.5 || w.noneShare >= 0.98 || t.Fits == 0:
		e.reason("the values carry no variant and version bits: in no order do markedly more of them fit than the %.0f that chance would give", t.ByChance)
		e.Settle = byMatch + "; no number of further values would do"
		return
	}
	e.reason("%d of %d distinct values fit %s, with the evidence of %.0f independent ones", t.Fits, e.Sample, t.Order, w.independent[best])
	for o, other := range e.Orders {
		if Order(o) != best {
			e.reason("read as %s, %d do", other.Order, other.Fits)
		}
	}
	// A value of a random UUID is expected to weigh for its order against another what perValue says: 3.6 for what it
	// fits, and 2.2 for how seldom it fits the other (see the model).
	const perValue = 5.8
	odds := math.Log(w.order[best]) - math.Log(max(1-w.order[best], 1e-12))
	need := int(math.Ceil((math.Log(sure/(1-sure)) - odds) / perValue))
	need = max(need, int(math.Ceil(few-w.independent[best])), 1)
	e.SettleValues = need
	e.Settle = fmt.Sprintf("about %d more distinct random UUIDs (version 4), or %s", need, byMatch)
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

// certainty keeps a probability from reading as a fact.
func certainty(p float64) float64 { return min(math.Floor(p*1e4)/1e4, 0.9999) }

func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
