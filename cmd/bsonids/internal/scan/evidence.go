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
	Subtype byte `json:"subtype"`
	decide.Found

	Verdict Verdict `json:"verdict"`
	// Settle describes what would settle a case that is not decided. SettleValues is the number of further
	// distinct values, if more values of the same kind would settle it.
	SettleValues int64  `json:"settleValues,omitempty"`
	Settle       string `json:"settle,omitempty"`

	Reasons []string `json:"reasons"`
}

// Verdict is the verdict about the byte order of the values of one subtype: the name of an order, as
// [kinds.NameOf] returns it, or one of these.
type Verdict string

const (
	Undetermined Verdict = "undetermined" // the order cannot be determined
	Mixed        Verdict = "mixed"        // the values are in several orders, or only a part of them is in one
)

// Named reports whether the verdict names an order.
func (v Verdict) Named() bool { return v != Undetermined && v != Mixed }

// Convertible reports whether the verdict names a kind that can be converted.
func (v Verdict) Convertible() bool {
	_, err := kinds.Parse(string(v))
	return err == nil
}

// An order is named if a conversion from it converts most of the distinct values. Values that equality
// alone puts in an order count if they are more than a few.
const (
	most = 0.9
	few  = 0.1
)

// newEvidence returns the evidence for what was found, with the verdict and its reasons.
func newEvidence(subtype byte, found decide.Found) Evidence {
	e := Evidence{Subtype: subtype, Found: found, Verdict: Undetermined}
	converts := make(map[string]int64) // by the name of each order that has values
	for _, r := range e.Orders {
		d := r.Decision
		if d == nil {
			continue
		}
		if n := r.Conversion.Values; d.Basis == decide.Evidence || d.Basis == decide.Equality && float64(n) >= few*float64(e.Distinct) {
			converts[r.Order] = n
		}
		for _, a := range d.Against {
			converts[a.Order] += 0
			if _, err := kinds.Parse(a.Order); err != nil {
				converts[a.Order] = a.Distinct
			}
		}
	}
	for name, n := range converts {
		e.Verdict = Verdict(name)
		if len(converts) > 1 || float64(n) < most*float64(e.Distinct) {
			e.Verdict = Mixed
			e.Settle = "separate the documents by the program or the time that wrote them; a conversion leaves and lists the values that are not in its order"
		}
	}
	e.explain()
	if e.Verdict == Undetermined {
		e.doubt()
	}
	return e
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
func (e *Evidence) doubt() {
	const byMatch = "one value that also occurs in a field of subtype 4 or text"
	if e.Distinct == e.Uninformative {
		e.reason("every value is the same in all orders")
		e.Settle = "nothing; the values are the same in every order, so any order can be given"
		return
	}
	var more []string
	for _, r := range e.Orders {
		if d := r.Decision; d != nil && strings.Contains(d.Reason, "NEWSEQUENTIALID") {
			e.reason("%s", d.Reason)
		}
		if r.More > 0 {
			more = append(more, fmt.Sprintf("%d more distinct UUIDs that are %s", r.More, r.Order))
			if e.SettleValues == 0 || r.More < e.SettleValues {
				e.SettleValues = r.More
			}
		}
	}
	e.Settle = strings.Join(append(more, "the UUID of one value, known from the program that wrote it", byMatch), ", or ")
}
