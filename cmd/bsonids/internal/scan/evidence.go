package scan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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
	Probability float64 `json:"probability"`          // that all values but strays are in this order
}

// The model. A value in a given order is a UUID of one of the kinds below, all other bits being anything; with
// probability stray it is no such UUID, and any 128 bits are equally likely. All likelihoods are relative to the latter.
// What made the values of a field is much alike from one to the next: the shares of the kinds are learned from them,
// beginning with kindShare, which weighs as much as one value (a Dirichlet distribution).
const (
	stray   = 0.02
	similar = 0.001 // of the octets that are no UUIDs, those alike just where the version and the variant stand (see alike)
	fitting = 64    // values of 128 random bits for each that has the variant and a given version

	// match is what an id that stands elsewhere in a known order weighs: it has 128 bits in common with a value that
	// it needn't have been anything like. It is far below 2¹²⁸ so that a handful of oddities stays what it is.
	match = 1e9

	// sure is the probability from which an order is named, and few the number of independent values below which the
	// variant and version bits alone name none: two values are a story, not a sample.
	sure = 0.99
	few  = 3

	// shuffled is the part of the fields with version 1 in network or C# order that are sequential GUIDs of SQL Server in the
	// other one, at least.
	shuffled = 0.009
)

// The kinds of UUIDs are the versions, and those of the versions with a time whose time is not plausible: a clock that is
// wrong, or a format that isn't the RFC's.
const (
	misdated1 = 9 + iota
	misdated6
	misdated7
	kinds
)

// kindShare is how often each kind is met where nothing is known.
var kindShare = [kinds]float64{
	1: .09, 2: .01, 3: .05, 4: .59, 5: .05, 6: .04, 7: .09, 8: .05, misdated1: .01, misdated6: .01, misdated7: .01,
}

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
	kind      int
	dated     bool
	plausible bool
	matches   []int32
	odds      float64 // likelihood for a UUID of the kind, relative to random octets; 0 where it doesn't fit
	cell      uint16  // the octets that hold version and variant
	octets    [16]byte
}

// weight is the likelihood, relative to random octets, where the kinds have these shares.
func (r *reading) weight(shares *[kinds]float64) float64 {
	w := r.odds * shares[r.kind]
	if len(r.matches) > 0 {
		w = max(w, 1) * match
	}
	return w
}

func read(u [16]byte, refs *references, now time.Time) reading {
	r := reading{cell: uint16(u[6])<<8 | uint16(u[8]), octets: u, matches: refs.ids[u]}
	if v := int(u[6] >> 4); u[8]>>6 == 0b10 && v >= 1 && v <= 8 {
		r.version, r.kind, r.odds = v, v, fitting
		if t, err := uuidgen.Time(u); err == nil {
			r.dated = true
			first, misdated := firstV1, misdated1
			var span float64 // how much of what the version can hold is plausible
			switch v {
			case 7:
				first, misdated = firstV7, misdated7
				span = float64(now.Sub(first).Milliseconds()) / (1 << 48)
			default:
				if v == 6 {
					first, misdated = firstV6, misdated6
				}
				span = float64(now.Sub(first).Microseconds()) * 10 / (1 << 60)
			}
			r.plausible = !t.Before(first) && !t.After(now.Add(24*time.Hour))
			if r.plausible {
				r.odds /= span
			} else {
				r.kind = misdated
				r.odds /= 1 - span
			}
		}
	}
	return r
}

// readings is one value in each order.
type readings [orders]reading

// matched reports whether the value is equal to an id elsewhere in any order.
func (r *readings) matched() bool {
	return slices.ContainsFunc(r[:], func(r reading) bool { return len(r.matches) > 0 })
}

func symmetric(v [16]byte) bool {
	return uuidrep.CSharpLegacy.Permute(v) == v && uuidrep.JavaLegacy.Permute(v) == v
}

// judge weighs the values in s, the distinct ones of count.
func judge(subtype byte, count int64, s *sketch, refs *references, now time.Time) Evidence {
	e := Evidence{Subtype: subtype, Distinct: min(s.distinct(), count)}
	var values []readings
	for _, entry := range s.entries {
		if symmetric(entry.value) {
			e.Uninformative++
			continue
		}
		var v readings
		for o := range orders {
			v[o] = read(representations[o].Permute(entry.value), refs, now)
		}
		values = append(values, v)
	}
	e.Sample = len(values)
	w := weigh(subtype, values)
	if w.matched > 0 {
		w = reconcile(subtype, values, w)
	}
	w = second(subtype, values, w)
	w.shuffle(values)
	e.tally(values, s, refs, w)
	e.conclude(values, w)
	return e
}

// reconcile returns the weights of values whose bits alone name an order, and of which some that fit it are equal to ids
// elsewhere in another one. A few such are left out of account. Where there are more, either the bits mislead or the ids
// elsewhere do, which somebody may have copied with their octets as they were: nothing is sure.
func reconcile(subtype byte, values []readings, w weights) weights {
	blind, kept := slices.Clone(values), slices.Clone(values)
	for i := range blind {
		for o := range orders {
			blind[i][o].matches = nil
		}
	}
	bits := weigh(subtype, blind)
	named := bits.best()
	if bits.order[named] < sure || bits.independent[named] < few {
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
	case float64(against) < stray*float64(len(values)):
		return weigh(subtype, kept)
	}
	for o := range orders {
		w.order[o] = (w.order[o] + bits.order[o]) / 2
	}
	w.mixed, w.none = (w.mixed+bits.mixed)/2, (w.none+bits.none)/2
	w.against, w.bits = against, named
	return w
}

// second returns the weights of values of which most are in one order, and those that don't fit it, by themselves, in another
// one. Where the values of the first are worth little each, as the UUIDs of one machine's clock are, so are the others beside
// them, and would pass for strays.
func second(subtype byte, values []readings, w weights) weights {
	best := w.best()
	if w.order[best] < sure {
		return w
	}
	strays := slices.DeleteFunc(slices.Clone(values), func(v readings) bool { return v[best].version > 0 || len(v[best].matches) > 0 })
	if len(strays) < few {
		return w
	}
	of := weigh(subtype, strays)
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
	if other == best || of.order[other] < sure || of.independent[other] < few && !mostly(plausible, fits) {
		return w
	}
	w.mixed += w.order[best] * of.order[other]
	w.order[best] *= 1 - of.order[other]
	w.present[best], w.present[other] = true, true
	return w
}

// mostly reports whether so many of the values that fit have a plausible date that it is no chance.
func mostly(plausible, fits int) bool { return plausible > 0 && plausible >= fits*9/10 }

// shuffle looks for UUIDs that may be of SQL Server. What its NEWSEQUENTIALID makes are version 1 with the octets of the first
// three groups shuffled as C# order shuffles them: read in network order they are what version 1 is in C# order, and the other
// way round. Nothing but an id elsewhere tells the two apart.
func (w *weights) shuffle(values []readings) {
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
	w.shuffled = true
	if over := w.order[best] - (1 - shuffled); over > 0 {
		w.order[best] -= over
		w.order[Network+CSharp-best] += over
	}
}

// weights are the outcome of the model.
type weights struct {
	order       [orders]float64 // probability that all values are in the order
	mixed, none float64
	share       [orders]float64 // of the values, in the best mixture
	noneShare   float64
	present     [orders]bool    // whether the mixture needs the order
	independent [orders]float64 // how many independent values those that fit are worth
	matched     int

	// How many values are equal to ids elsewhere against the order that the bits name, where these are too many to be left
	// out of account.
	against int
	bits    Order

	shuffled bool // the values may be sequential GUIDs of SQL Server in the other one of network and C# order
}

func (w *weights) best() Order {
	best := Network
	for o := range orders {
		if w.order[o] > w.order[best] {
			best = o
		}
	}
	return best
}

func weigh(subtype byte, values []readings) weights {
	var w weights
	mix := mixture(values)
	copy(w.share[:], mix.share[:])
	w.noneShare = mix.share[orders]

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
		scale = w.independent[best] / fits[best]
	}
	for _, v := range values {
		if v.matched() {
			w.matched++
		}
	}

	// The mixture was fitted to the values with free shares, for which half a logarithm of their number each is the
	// usual price (Schwarz).
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
		log := single(values, o, stray).likelihood(values, scale)
		if strays := 1 - fits[o]/float64(len(values)+1); strays < stray {
			log = max(log, single(values, o, strays).likelihood(values, scale)-price)
		}
		logs = append(logs, math.Log(priorOrder[o])+log)
	}
	logs = append(logs, math.Log(priorMixed)+whole-float64(orders)*price)
	none := 0.0
	for o := range orders {
		none = max(none, math.Log(similar)+alike(values, o, scale))
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
		w.present[o] = gain-price >= math.Log(sure/(1-sure))
		if w.share[o] < 1-stray {
			continue
		}
		// A mixture of one part and strays says what that part says, unless the strays are in another order.
		gain = whole - alone[o] - float64(orders-1)*price
		others := 1 / (1 + priorOrder[o]/priorMixed*math.Exp(-gain))
		w.order[o], w.mixed = w.order[o]+w.mixed*(1-others), w.mixed*others
	}
	if w.noneShare >= 1-stray {
		w.none, w.mixed = w.none+w.mixed, 0
	}
	return w
}

// model says how the values of a field came about: the shares of the orders, and of values that are no UUIDs, and in each
// order those of the kinds.
type model struct {
	share [orders + 1]float64
	kinds [orders][kinds]float64
}

// learned returns the shares of the kinds of which there are so many.
func learned(n [kinds]float64) (shares [kinds]float64) {
	total := 1.0
	for _, k := range n {
		total += k
	}
	for k := range shares {
		shares[k] = (n[k] + kindShare[k]) / total
	}
	return shares
}

// single is the model in which all values but strays, of which this is the share, are in one order.
func single(values []readings, o Order, strays float64) model {
	m := model{}
	m.share[o], m.share[orders] = 1-strays, strays
	var n [kinds]float64
	for _, v := range values {
		n[v[o].kind]++
	}
	n[0] = 0
	m.kinds[o] = learned(n)
	return m
}

// mixture fits a model by expectation and maximization.
func mixture(values []readings) model {
	m := model{share: [orders + 1]float64{.25, .25, .25, .25}, kinds: [orders][kinds]float64{kindShare, kindShare, kindShare}}
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
			m.kinds[o] = learned(n[o])
		}
		if m.near(&last) {
			break
		}
	}
	return m
}

// near reports whether the two models differ, in the shares of what they know of, by no more than matters among thousands
// of values.
func (m *model) near(other *model) bool {
	const little = 1e-6
	for o := range orders {
		for k := range kinds {
			if math.Abs(m.share[o]*m.kinds[o][k]-other.share[o]*other.kinds[o][k]) > little {
				return false
			}
		}
	}
	return math.Abs(m.share[orders]-other.share[orders]) <= little
}

// expect returns how many of the values come from each part of m, how many of each kind there are in each order, and the
// logarithm of how likely the values are. Those that are not equal to an id elsewhere count scale in the latter two.
func (m *model) expect(values []readings, scale float64) (share [orders + 1]float64, n [orders][kinds]float64, log float64) {
	for i := range values {
		v := &values[i]
		p, by := m.share[orders], scale
		var part [orders]float64
		for o := range orders {
			part[o] = m.share[o] * v[o].weight(&m.kinds[o])
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

// likelihood is the logarithm of how likely the values are, without what m knows of their kinds from them.
func (m model) likelihood(values []readings, scale float64) float64 {
	_, n, log := m.expect(values, scale)
	for o := range n {
		for k, count := range n[o] {
			if count > 0 {
				log -= count * math.Log(m.kinds[o][k])
			}
		}
		log += dirichlet(n[o][:], kindShare[:])
	}
	return log
}

// without is m with one order's share given to values that are no UUIDs.
func (m model) without(o Order) model {
	m.share[orders] += m.share[o]
	m.share[o] = 0
	return m
}

// dirichlet is the logarithm of how likely a sequence with so many of each is when the shares are known no better than by
// one observation with the shares first.
func dirichlet(n, first []float64) float64 {
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

// alike is the logarithm of how likely the values are, relative to random octets, when they are no UUIDs but have some
// octets in common, as numbers, addresses and keys do: the bits where an order has the version go their way, and those where
// it has the variant go theirs. In UUIDs among others, they go together.
func alike(values []readings, o Order, scale float64) float64 {
	var versions [16]float64
	var variants [4]float64
	for _, v := range values {
		versions[v[o].cell>>12] += scale
		variants[v[o].cell>>6&3] += scale
	}
	even := func(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }
	return float64(len(values))*scale*math.Log(fitting) + dirichlet(versions[:], even(16)) + dirichlet(variants[:], even(4))
}

// independent returns what the number of values that fit is worth: how many random ones would have as many different octets
// around version and variant.
func independent(values []readings, o Order) (worth float64) {
	const m = 1 << 10 // 4 bits beside the version, 6 beside the variant
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

func (e *Evidence) tally(values []readings, s *sketch, refs *references, w weights) {
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
func (e *Evidence) conclude(values []readings, w weights) {
	best := w.best()
	t := e.Orders[best]
	// Enough that the bits cannot be chance, or a kind of evidence that one value is enough of.
	enough := w.independent[best] >= few || t.Matches > 0 || mostly(t.Plausible, t.Fits)
	switch {
	case w.order[best] >= sure && enough:
		e.Verdict, e.Confidence = best.Name(e.Subtype), certainty(w.order[best])
		e.explainOrder(best)
		if w.shuffled {
			e.reason("version 1 may also be a sequential GUID of SQL Server (NEWSEQUENTIALID) in %s: compare one value with the program that wrote it",
				(Network + CSharp - best).Name(e.Subtype))
		}
	case w.mixed >= sure && (e.Sample >= 20 || w.matched > 0) && slices.Contains(w.present[:], true):
		e.concludeMixed(w)
	default:
		e.Verdict, e.Confidence = "cannot tell", certainty(w.order[best])
		e.explainDoubt(values, w, best)
	}
}

func (e *Evidence) concludeMixed(w weights) {
	e.Verdict, e.Confidence = "mixed", certainty(w.mixed)
	percent := func(share float64) string { return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) }
	for o := range orders {
		if w.present[o] {
			e.reason("about %s %% of the distinct values are %s", percent(w.share[o]), o.Name(e.Subtype))
		}
	}
	if w.noneShare >= stray {
		e.reason("about %s %% fit no order and may be no UUIDs", percent(w.noneShare))
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
			if other.Matches > 0 {
				e.reason("read as %s, %d are equal to ids in %s", other.Order, other.Matches, other.MatchedIn)
			}
		}
	}
	if t.Dated > 0 {
		e.reason("%d of the %d with a time give a plausible date", t.Plausible, t.Dated)
	}
	if t.Matches > 0 {
		e.reason("%d of %d that could are equal to ids in %s, whose order is known", t.Matches, max(t.Comparable, t.Matches), t.MatchedIn)
	}
}

func (e *Evidence) explainDoubt(values []readings, w weights, best Order) {
	const byMatch = "one value that also stands in a field of subtype 4 or text"
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
	case e.Sample == 0:
		e.reason("every value is the same in all orders")
		e.Settle = "nothing: the values are the same in every order, and any of them may be named"
		return
	case len(same) > 1 && together >= sure:
		e.reason("the values are the same in these orders: %s", strings.Join(same, ", "))
		e.Settle = "nothing: the values are the same in them, and either of " + strings.Join(same, " and ") + " may be named"
		return
	case w.against > 0:
		bits, other := e.Orders[w.bits], slices.MaxFunc(e.Orders, func(a, b OrderEvidence) int { return a.Matches - b.Matches })
		e.reason("%d of %d distinct values have the variant and a version of RFC 9562 read as %s", bits.Fits, e.Sample, bits.Order)
		e.reason("read as %s, %d are equal to ids in %s, and %d of these contradict it", other.Order, other.Matches, other.MatchedIn, w.against)
		e.Settle = "one value whose UUID is known from the program that wrote it: either " + other.MatchedIn + " holds octets that were copied as they were, or the bits mislead"
		return
	case e.matchesDisagree():
		e.reason("values match ids elsewhere in more than one order")
		e.Settle = "separating the documents by the program that wrote them"
		return
	case w.none >= 0.5 || w.noneShare >= 0.98 || t.Fits == 0:
		most := slices.MaxFunc(e.Orders, func(a, b OrderEvidence) int { return a.Fits - b.Fits })
		if deviation := math.Sqrt(most.ByChance * 7 / 8); float64(most.Fits) > most.ByChance+3*deviation {
			e.reason("read as %s, %d of %d distinct values have the variant and a version of RFC 9562, where chance would give %.0f; but octets that are no UUIDs and alike in these places would as well",
				most.Order, most.Fits, e.Sample, most.ByChance)
		} else {
			e.reason("the values carry no variant and version bits: in no order do markedly more of them fit than the %.0f that chance would give", t.ByChance)
		}
		e.Settle = byMatch + "; no number of further values would do"
		return
	}
	e.reason("%d of %d distinct values fit %s, with the evidence of %.0f independent ones", t.Fits, e.Sample, t.Order, w.independent[best])
	for o, other := range e.Orders {
		if Order(o) != best {
			e.reason("read as %s, %d do", other.Order, other.Fits)
		}
	}
	if e.SettleValues = further(e.Subtype, values, best); e.SettleValues > 0 {
		e.Settle = fmt.Sprintf("about %d more distinct random UUIDs (version 4), or %s", e.SettleValues, byMatch)
	} else {
		e.Settle = byMatch
	}
}

// further returns how many more random UUIDs in the order, which fit no other, would have it named; 0 where a thousand
// wouldn't.
func further(subtype byte, values []readings, o Order) int {
	values = slices.Clone(values)
	for n, step := 0, 1; n+step <= 1000; step = 1 + n/4 {
		for range step {
			var v readings
			v[o] = reading{version: 4, kind: 4, odds: fitting, cell: uint16(0x40|n&15)<<8 | uint16(0x80|n>>4&63)}
			values = append(values, v)
			n++
		}
		if w := weigh(subtype, values); w.order[o] >= sure && w.independent[o] >= few {
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

// certainty keeps a probability from reading as a fact.
func certainty(p float64) float64 { return min(math.Floor(p*1e4)/1e4, 0.9999) }

func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
