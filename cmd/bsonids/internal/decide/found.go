package decide

import (
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Found is what the values of one field that are stored in one way are, and why a decision about them is
// as it is.
type Found struct {
	Distinct int64 // distinct values
	Same     int64 // of these, those that are the same in every order, such as the nil UUID
	Orders   []Reading
}

// Reading describes the distinct values of a field when they are read in one order, without those that
// are the same in every order.
type Reading struct {
	Name      string // of the order, see [kinds.NameOf]
	Fits      int64  // with the variant of RFC 9562 and a version from 1 to 8
	ByChance  float64
	Versions  [9]int64 // of the values that fit, by version; the first is unused
	Dated     int64    // of versions 1, 6 and 7
	Plausible int64    // of these, those with a plausible time
	Matches   int64    // equal to UUIDs whose order is known
	MatchedIn string   // the field that has most of these
	// More is the number of further distinct values in this order that would prove it. It is 0 if they
	// prove it already, or if what there is shows that most values are not in this order.
	More int64
	// Decision is what a conversion from this order does; nil if Decide was not asked about it.
	Decision *Field
}

// matches counts the distinct values of a field that equal UUIDs of known order.
type matches struct {
	n  int64
	in map[uint64]int64 // by the number of the field that has the UUIDs
}

// match counts the known UUIDs that have the value of a group in the field.
func (f *surveyed) match(g *sharers) {
	var seen [orders]bool
	own := f.in.Namespace + " " + f.path
	for _, n := range g.sources {
		o, source := n%orders, n/orders
		if !f.question.IsBinary() && (o != network || f.in.survey.sources[source] == own) { // the value itself
			continue
		}
		m := &f.equals[o]
		if m.in == nil {
			m.in = make(map[uint64]int64)
		}
		m.in[source]++
		if !seen[o] {
			m.n++
		}
		seen[o] = true
	}
}

// Found returns what was found in a field of the collection, after Decide. Brackets in the path do not
// matter. ok is false if the field has no such values, or if there are too many fields.
func (c *Surveyed) Found(stored kinds.Stored, path string) (found Found, ok bool) {
	s := c.survey
	i := slices.IndexFunc(s.questions, func(q Question) bool { return q.Stored() == stored })
	f := c.fields[i][Plain(path)]
	if f == nil {
		return found, false
	}
	all := f.count(network, func([orders]int) bool { return true }).n
	found = Found{Distinct: all + f.same, Same: f.same}
	if !f.question.IsBinary() {
		r := f.reading(network, all)
		if len(f.answers) > 0 && len(f.answers[0].Digits) == 0 { // text of 32 digits that is no UUID
			found, r.Fits, r.Versions = Found{}, 0, [9]int64{}
		}
		found.Distinct += f.spelled.same
		found.Same += f.spelled.same
		for v, n := range f.spelled.versions {
			found.Distinct += n
			if v > 0 {
				r.Fits += n
				r.Versions[v] += n
			}
		}
		found.Orders = []Reading{r}
		return found, true
	}
	for o := range orders {
		r := f.reading(o, all)
		r.More = f.more(o)
		found.Orders = append(found.Orders, r)
	}
	return found, true
}

func (f *surveyed) reading(o int, all int64) Reading {
	counted := f.count(o, func([orders]int) bool { return true })
	r := Reading{Name: orderName(o, f.question.Subtype), Fits: counted.fits(), ByChance: float64(all) * anyVersion, Versions: counted.versions, Matches: f.equals[o].n}
	for v := range first {
		r.Dated += counted.versions[v]
		r.Plausible += int64(f.datable[o][v])
	}
	most := int64(0)
	for source, n := range f.equals[o].in {
		if name := f.in.survey.sources[source]; n > most || n == most && strings.Compare(name, r.MatchedIn) < 0 {
			most, r.MatchedIn = n, name
		}
	}
	for i := range f.answers {
		if a := &f.answers[i]; a.from == o {
			r.Decision = &a.Field
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
	c := t.count(o, func([orders]int) bool { return true })
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
