package scan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
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
	Mixed        Verdict = "mixed"        // the values are proven to be in several orders
)

// Named reports whether the verdict names an order.
func (v Verdict) Named() bool { return v != Undetermined && v != Mixed }

// Convertible reports whether the verdict names a kind that can be converted.
func (v Verdict) Convertible() bool {
	_, err := kinds.Parse(string(v))
	return err == nil
}

// An order is named if the values that have a version prove it, however many others there are, which prove nothing. If
// none does, it is named if most of the distinct values are equal to ids of known order that make them this one.
const most = 0.9

// newEvidence returns the evidence for what was found, with the verdict and its reasons.
func newEvidence(subtype byte, found decide.Found, now time.Time) Evidence {
	e := Evidence{Subtype: subtype, Found: found, Verdict: Undetermined}
	proven := make(map[string]bool) // of some values, by the name of the order
	for _, r := range e.Orders {
		if r.Only > 0 {
			proven[r.Order] = true
		}
		d := r.Decision
		if d == nil {
			continue
		}
		switch n := r.Conversion.Values - e.Uninformative; {
		case d.Basis == decide.Evidence && n > 0:
			proven[r.Order], e.Verdict = true, Verdict(r.Order)
		case d.Basis == decide.Equality && n >= e.most() && !e.versions():
			e.Verdict = Verdict(r.Order)
		}
		for _, a := range d.Against {
			proven[a.Order] = true
			if _, err := kinds.Parse(a.Order); err != nil { // no conversion tells about it
				e.Verdict = Verdict(a.Order)
			}
		}
	}
	if len(proven) > 1 {
		e.Verdict = Mixed
		e.Settle = "separate the documents by the program or the time that wrote them; a conversion leaves and lists the values that are not in its order"
	}
	e.explain(now)
	if e.Verdict == Undetermined {
		e.doubt()
	}
	return e
}

// informative returns the number of distinct values that are not the same in every order.
func (e *Evidence) informative() int64 { return e.Distinct - e.Uninformative }

// versions reports whether the versions of RFC 9562 show an order.
func (e *Evidence) versions() bool {
	return slices.ContainsFunc(e.Orders, func(r decide.Reading) bool { return r.Decision != nil && r.Decision.Basis == decide.Evidence })
}

// most returns how many of them are enough for an order by equality.
func (e *Evidence) most() int64 { return int64(math.Ceil(most * float64(e.informative()))) }

func (e *Evidence) reason(format string, args ...any) {
	e.Reasons = append(e.Reasons, fmt.Sprintf(format, args...))
}

// explain describes what a conversion does, and the values when they are read in each order.
func (e *Evidence) explain(now time.Time) {
	n := e.informative()
	if n == 0 {
		return
	}
	for _, o := range e.Orders {
		if c := o.Conversion; c != nil && c.Values > 0 {
			e.reason("a conversion from %s converts %d of %d distinct values", o.Order, c.Values, e.Distinct)
		}
		if o.Only > 0 && (o.Decision == nil || o.Decision.Basis != decide.Evidence) {
			e.reason("%d of %d are %s, by equality with ids of known order", o.Only, n, o.Order)
		}
		if o.Order == string(e.Verdict) && o.Decision != nil {
			e.others(o)
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
	if e.Verdict == Undetermined || e.Verdict.Named() && e.versions() {
		for _, p := range patterns(e.Left, e.Orders, now) {
			e.reason("%s", p)
		}
	}
}

// others describes the values that a conversion from the order of the verdict leaves.
func (e *Evidence) others(o decide.Reading) {
	against := int64(len(o.Decision.Contradicted))
	if left := e.Distinct - o.Conversion.Values - against; left > 0 {
		e.reason("%d others prove no order; the conversion leaves and lists them", left)
	}
	if against > 0 {
		e.reason("%d equal ids of known order if they are read in another one; the conversion leaves and lists them", against)
	}
}

// doubt explains why no order is named, and what would settle it.
func (e *Evidence) doubt() {
	if e.informative() == 0 {
		e.reason("every value is the same in all orders")
		e.Settle = "nothing; the values are the same in every order, so any order can be given"
		return
	}
	var more []string
	known, told := int64(0), false
	for _, r := range e.Orders {
		known = max(known, r.Only)
		switch d := r.Decision; {
		case d == nil:
		case d.Basis == decide.Evidence: // each value that a conversion takes has another order by equality
			e.reason("the versions of RFC 9562 make the values %s, and ids of known order that are equal make them another one", r.Order)
			e.Settle = "the UUID of one value, known from the program that wrote it; then correct the ids that are equal"
			return
		case strings.Contains(d.Reason, "NEWSEQUENTIALID"):
			e.reason("%s", d.Reason)
			told = true
		}
		if r.More > 0 {
			more = append(more, fmt.Sprintf("%d more distinct UUIDs that are %s", r.More, r.Order))
			if e.SettleValues == 0 || r.More < e.SettleValues {
				e.SettleValues = r.More
			}
		}
	}
	if len(more) == 0 && !told {
		e.reason("most values have no version that tells: sequential GUIDs, such as COMBs and those of MassTransit, ABP and Entity Framework Core, have none")
	}
	more = append(more, "the UUID of one value, known from the program that wrote it")
	if n := e.most() - known; n > 0 && e.most() <= decide.MaxEqual {
		what := "value"
		if known > 0 {
			what = "more value"
		}
		more = append(more, terminal.Count(n, what)+" found also in a field of subtype 4 or text")
	}
	e.Settle = strings.Join(more, ", or ")
}
