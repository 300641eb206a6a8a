package scan

import (
	"fmt"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Evidence is the evidence for the byte order of the distinct values of one subtype at one path, and the
// verdict. A verdict names the order from which a conversion converts the values.
type Evidence struct {
	Subtype  byte  `json:"subtype"`
	Distinct int64 `json:"distinct"`
	// Uninformative is the number of values that are the same in every order, such as the nil UUID.
	Uninformative int64 `json:"uninformative,omitempty"`

	Orders []OrderEvidence `json:"orders"`

	Verdict Verdict `json:"verdict"`
	// Settle describes what would settle a case that is not decided. SettleValues is the number of further
	// distinct values, if more values of the same kind would settle it.
	SettleValues int64  `json:"settleValues,omitempty"`
	Settle       string `json:"settle,omitempty"`

	Reasons []string `json:"reasons"`
}

// OrderEvidence describes the values, without those that are the same in every order, when they are read
// in one order.
type OrderEvidence struct {
	Order     string   `json:"order"`
	Fits      int64    `json:"fits"`     // with the variant of RFC 9562 and a version from 1 to 8
	ByChance  float64  `json:"byChance"` // how many would fit if the bytes were random
	Versions  [9]int64 `json:"versions"` // of the values that fit, by version; [0] is unused
	Dated     int64    `json:"dated"`    // of versions 1, 6 and 7
	Plausible int64    `json:"plausible"`
	Matches   int64    `json:"matches"` // equal to an id of subtype 4 or text
	MatchedIn string   `json:"matchedIn,omitempty"`
	// Conversion is what a conversion from this order would do; nil if there is none.
	Conversion *Conversion `json:"conversion,omitempty"`
}

// Conversion is what a conversion would do with the values that were read.
type Conversion struct {
	Basis  decide.Basis `json:"basis"`
	Values int64        `json:"distinctConverted"` // distinct values that are converted
	Reason string       `json:"reason,omitempty"`  // if none is converted
}

// newEvidence returns the evidence for what was found.
func newEvidence(subtype byte, found decide.Found) Evidence {
	e := Evidence{Subtype: subtype, Distinct: found.Distinct, Uninformative: found.Same}
	for _, r := range found.Orders {
		o := OrderEvidence{Order: r.Name, Fits: r.Fits, ByChance: r.ByChance, Versions: r.Versions, Dated: r.Dated, Plausible: r.Plausible,
			Matches: r.Matches, MatchedIn: r.MatchedIn}
		if d := r.Decision; d != nil {
			o.Conversion = &Conversion{Basis: d.Basis, Reason: d.Reason}
			if d.Converted() {
				o.Conversion.Values = d.Fits + found.Same
			}
		}
		e.Orders = append(e.Orders, o)
	}
	e.conclude(found)
	return e
}

// An order is named if a conversion from it converts most of the distinct values. Values that equality
// alone puts in an order count if they are more than a few.
const (
	most = 0.9
	few  = 0.1
)

// conclude sets the verdict, and explains it.
func (e *Evidence) conclude(found decide.Found) {
	converts := make(map[string]int64) // by the name of each order that has values
	for i, r := range found.Orders {
		d := r.Decision
		if d == nil {
			continue
		}
		if n := e.Orders[i].Conversion.Values; d.Basis == decide.Evidence || d.Basis == decide.Equality && float64(n) >= few*float64(e.Distinct) {
			converts[r.Name] = n
		}
		for _, a := range d.Against {
			converts[a.Order] += 0
			if _, err := kinds.Parse(a.Order); err != nil {
				converts[a.Order] = a.Distinct
			}
		}
	}
	for name, n := range converts {
		e.Verdict = Verdict{Named, name}
		if len(converts) > 1 || float64(n) < most*float64(e.Distinct) {
			e.Verdict = Verdict{Outcome: Mixed}
			e.Settle = "separate the documents by the program or the time that wrote them; a conversion leaves and lists the values that are not in its order"
		}
	}
	e.explain()
	if e.Verdict.Outcome == Undecided {
		e.doubt(found)
	}
}

func (e *Evidence) reason(format string, args ...any) {
	e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...))
}

// explain describes what a conversion does, and the values when they are read in each order.
func (e *Evidence) explain() {
	n := e.Distinct - e.Uninformative
	if n == 0 {
		return
	}
	for _, o := range e.Orders {
		if c := o.Conversion; c != nil && c.Values > 0 {
			e.reason("a conversion from %s converts %d of %d distinct values", o.Order, c.Values, e.Distinct)
		}
	}
	long := ", with the variant and a version of RFC 9562; %.0f are expected by chance"
	for _, o := range e.Orders {
		text := fmt.Sprintf("read as %s: %d of %d", o.Order, o.Fits, n)
		if long != "" {
			text += fmt.Sprintf(long, o.ByChance)
			long = ""
		}
		if o.Dated > 0 {
			text += fmt.Sprintf("; %d of %d times are plausible", o.Plausible, o.Dated)
		}
		if o.Matches > 0 {
			text += fmt.Sprintf("; %d equal ids of known order, most of them in %s", o.Matches, o.MatchedIn)
		}
		e.reason("%s", text)
	}
}

// doubt explains why no order is named, and what would settle it.
func (e *Evidence) doubt(found decide.Found) {
	const byMatch = "one value that also occurs in a field of subtype 4 or text"
	if e.Distinct == e.Uninformative {
		e.reason("every value is the same in all orders")
		e.Settle = "nothing; the values are the same in every order, so any order can be given"
		return
	}
	var more []string
	for _, r := range found.Orders {
		if d := r.Decision; d != nil && strings.Contains(d.Reason, "NEWSEQUENTIALID") {
			e.reason("%s", d.Reason)
		}
		if r.More > 0 {
			more = append(more, fmt.Sprintf("%d more distinct UUIDs that are %s", r.More, r.Name))
			if e.SettleValues == 0 || r.More < e.SettleValues {
				e.SettleValues = r.More
			}
		}
	}
	e.Settle = strings.Join(append(more, "the UUID of one value, known from the program that wrote it", byMatch), ", or ")
}
