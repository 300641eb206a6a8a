package decide

import (
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Found is what the values of one field that are stored in one way are, and why a decision about them is
// as it is.
type Found struct {
	Distinct int64 `json:"distinct"` // distinct values
	// Uninformative is the number of those that are the same in every order, such as the nil UUID.
	Uninformative int64     `json:"uninformative,omitempty"`
	Orders        []Reading `json:"orders"`
	// Left has up to 256 distinct values at random, as they are stored, without those whose bits make them be
	// converted, and those that are the same in every order.
	Left [][16]byte `json:"-"`
}

// Reading describes the distinct values of a field when they are read in one order, without those that
// are the same in every order.
type Reading struct {
	Order     string   `json:"order"`    // see [kinds.NameOf]
	Fits      int64    `json:"fits"`     // with the variant of RFC 9562 and a version from 1 to 8
	ByChance  float64  `json:"byChance"` // how many would fit if the bytes were random
	Versions  [9]int64 `json:"versions"` // of the values that fit, by version; [0] is unused
	Dated     int64    `json:"dated"`    // of versions 1, 6 and 7
	Plausible int64    `json:"plausible"`
	Matches   int64    `json:"matches"` // equal to UUIDs whose order is known
	MatchedIn string   `json:"matchedIn,omitempty"`
	// Only is the number of those that equal no such UUIDs in another order, and whose own bits show no other
	// order of the field: they prove this one.
	Only int64 `json:"-"`
	// Conversion is what a conversion from this order would do; nil if there is none.
	Conversion *Conversion `json:"conversion,omitempty"`
	// More is the number of further distinct values in this order that would prove it. It is 0 if they
	// prove it already, or if what there is shows that most values are not in this order.
	More int64 `json:"-"`
	// Decision is the decision for a conversion from this order; nil if there is none.
	Decision *Field `json:"-"`
}

// Conversion is what a conversion would do with the values that were read.
type Conversion struct {
	Basis  Basis  `json:"basis"`
	Values int64  `json:"distinctConverted"` // distinct values that are converted
	Reason string `json:"reason,omitempty"`  // if none is converted
}

// matches counts the distinct values of a field that equal UUIDs of known order.
type matches struct {
	n  int64
	in map[*Values]int64 // by the field that has the UUIDs
}

// match counts the known UUIDs that have the value of a group in the field.
func (f *Values) match(g *sharers) {
	seen := 0
	for _, k := range g.known {
		if f.kinds[0].Form != kinds.Binary && (k.order != network || k.field == f) { // the value itself
			continue
		}
		m := &f.equals[k.order]
		if m.in == nil {
			m.in = make(map[*Values]int64)
		}
		m.in[k.field]++
		if seen>>k.order&1 == 0 {
			m.n++
		}
		seen |= 1 << k.order
	}
}

// Found returns what was found, after Decide.
func (f *Values) Found() Found {
	all := f.count(network, nil).n
	found := Found{Distinct: all + f.same, Uninformative: f.same}
	if f.kinds[0].IsBinary() {
		for o := range orders {
			r := f.reading(o, all)
			r.More = f.more(o)
			if r.Conversion != nil && r.Decision.Converted() {
				r.Conversion.Values = r.Decision.Fits + f.same
			}
			found.Orders = append(found.Orders, r)
		}
		found.Left = f.left()
		return found
	}
	r := f.reading(network, all)
	if len(r.Decision.Digits) == 0 { // text of 32 digits that is no UUID
		found, r.Fits, r.Versions = Found{}, 0, [9]int64{}
	}
	found.Distinct += f.spelled.same
	found.Uninformative += f.spelled.same
	for v, n := range f.spelled.versions {
		found.Distinct += n
		if v > 0 {
			r.Fits += n
			r.Versions[v] += n
		}
	}
	found.Orders = []Reading{r}
	return found
}

func (f *Values) left() (left [][16]byte) {
	for _, v := range f.sample.values {
		versions := read(&v)
		if !slices.ContainsFunc(f.answers, func(a answer) bool { return a.rule.allows(versions, a.from) }) {
			left = append(left, v)
		}
	}
	return left
}

func (f *Values) reading(o int, all int64) Reading {
	counted := f.count(o, nil)
	r := Reading{Order: orderName(o, f.kinds[0].Subtype), Fits: counted.fits(), ByChance: float64(all) * anyVersion, Versions: counted.versions, Matches: f.equals[o].n, Only: f.only[o]}
	for v := range first {
		r.Dated += counted.versions[v]
		r.Plausible += int64(f.datable[o][v])
	}
	most := int64(0)
	for field, n := range f.equals[o].in {
		if name := field.in.Namespace + " " + field.path; n > most || n == most && strings.Compare(name, r.MatchedIn) < 0 {
			most, r.MatchedIn = n, name
		}
	}
	for i := range f.answers {
		if a := &f.answers[i]; a.from == o {
			r.Decision, r.Conversion = &a.Field, &Conversion{Basis: a.Basis, Reason: a.Reason}
		}
	}
	return r
}

// unlikely is the probability of chance above which the values of a field do not look like those of an
// order.
const unlikely = 0.05

// more returns the number of further values of order o that would prove the order, if they are
// independent and of the version that most of the values have, or 0.
func (t *tally) more(o int) int64 {
	c := t.count(o, nil)
	if versions, sequential := t.evidence(o, c, Level); len(versions) > 0 || sequential {
		return 0
	}
	v, k := 4, int64(0)
	for n := 1; n <= 8; n++ {
		if c.versions[n] > k && (n > 1 || o == java) { // see evidence
			v, k = n, c.versions[n]
		}
	}
	if c.n > 0 && atLeast(k, c.n, oneVersion) > unlikely {
		return 0
	}
	worth := float64(k) * t.independence(o, v, k)
	proves := func(n int64) bool {
		with := c
		with.n, with.variant = c.n+n, c.variant+n
		return passes(o, with, k+n, c.digits[v]+n, (worth+float64(n))/float64(k+n), oneVersion, Level)
	}
	least, most := int64(0), int64(1)
	for !proves(most) {
		if least, most = most, 2*most; most > 1<<40 {
			return 0
		}
	}
	for most-least > 1 {
		if n := (least + most) / 2; proves(n) {
			most = n
		} else {
			least = n
		}
	}
	return most
}
