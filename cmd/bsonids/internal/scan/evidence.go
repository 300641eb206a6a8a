package scan

import (
	"math"
	"time"
)

// Evidence is the evidence for the byte order of the values of one subtype at one path, and the
// verdict. It is based on distinct values, of which Sample were examined.
type Evidence struct {
	Subtype  byte  `json:"subtype"`
	Distinct int64 `json:"distinct"` // approximate number of distinct values
	Sample   int   `json:"sample"`
	// Uninformative is the number of values that are the same in every order, such as the nil UUID.
	// Sample does not include them.
	Uninformative int `json:"uninformative,omitempty"`

	Orders []OrderEvidence `json:"orders"`

	// Verdict is the answer. Confidence is the probability, given the evidence, of the order that
	// the verdict names, or of a mixture. It is always less than 1. If the verdict is Undecided, it
	// is the probability of the most likely order.
	Verdict    Verdict `json:"verdict"`
	Confidence float64 `json:"confidence"`

	// Settle describes what would settle an undecided case. SettleValues is the number of further
	// distinct values, if more values of the same kind would settle it.
	SettleValues int    `json:"settleValues,omitempty"`
	Settle       string `json:"settle,omitempty"`

	Reasons []string `json:"reasons"`
}

// OrderEvidence describes the values when they are read in one order.
type OrderEvidence struct {
	Order       string  `json:"order"`
	Fits        int     `json:"fits"`     // with the variant of RFC 9562 and a version from 1 to 8
	ByChance    float64 `json:"byChance"` // how many would fit if the bytes were random
	Versions    [9]int  `json:"versions"` // of the values that fit, by version; [0] is unused
	Dated       int     `json:"dated"`    // of versions 1, 6 and 7
	Plausible   int     `json:"plausible"`
	Matches     int     `json:"matches"` // equal to an id of subtype 4 or text in another field
	MatchedIn   string  `json:"matchedIn,omitempty"`
	Comparable  int     `json:"comparable,omitempty"` // values that could have matched in that field
	Share       float64 `json:"share"`                // of the values, in the best mixture
	Probability float64 `json:"probability"`          // that all values except strays are in this order
}

// judge evaluates the values in s, the distinct ones of count values.
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
	w := newPosterior(subtype, values)
	if w.matched > 0 {
		w = withConflicts(subtype, values, w)
	}
	w = withMinority(subtype, values, w)
	w.allowSequentialGUIDs(values)
	e.tally(values, s, refs, w)
	e.conclude(values, w)
	return e
}

func (e *Evidence) tally(values []readings, s *sketch, refs *references, w posterior) {
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

// certainty rounds a probability down, and limits it to 0.9999.
func certainty(p float64) float64 { return min(math.Floor(p*1e4)/1e4, 0.9999) }

func round(p float64) float64 { return math.Round(p*1e4) / 1e4 }
