package decide

import (
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// MaxEqual is the maximum number of values in a decision, which is part of the state. A decision
// lists only values for which equality changes the outcome.
const MaxEqual = 50_000

// settle adds to the decisions about the fields of a collection the values for which equality changes the
// outcome.
func settle(answers []*answer) {
	room := MaxEqual
	for _, a := range answers {
		if len(a.equal) > room {
			a.equal = nil // a subset would be arbitrary
		}
		room -= len(a.equal)
		if !a.Converted() {
			continue
		}
		if len(a.against) > room {
			a.Basis, a.Reason = None, "too many values equal ids in another byte order"
			a.Fits, a.against = 0, nil
		}
		room -= len(a.against)
		a.Fits -= int64(len(a.against))
	}
	for _, a := range answers {
		switch {
		case a.Converted():
		case len(a.against) > room: // the field may be trusted, but others come first
			a.against = nil
		default:
			room -= len(a.against)
		}
		if len(a.equal) > 0 && a.Basis == None {
			a.Basis = Equality
		}
		slices.SortFunc(a.equal, slices.Compare)
		slices.SortFunc(a.against, slices.Compare)
		a.Equal, a.Contradicted = a.equal, a.against
		a.Fits += int64(len(a.equal))
	}
}

// sharers is what has one value in one group of collections.
type sharers struct {
	value   [16]byte
	fields  []*Values
	spelled []*Values
	known   []known
	orders  uint8 // bit o is set if the value is a known UUID in order o
}

// known is a field that has a UUID of known order, and the order in which it is the value.
type known struct {
	field *Values
	order int
}

// each calls visit for each value of each group.
func (s *Survey) each(visit func(*sharers)) error {
	var g sharers
	return s.values.Groups(func(v [16]byte, numbers []uint64) {
		for i, n := range numbers {
			s.share(&g, n)
			if i+1 == len(numbers) || numbers[i+1]>>48 != n>>48 {
				if g.value = v; len(g.fields)+len(g.spelled) > 0 {
					visit(&g)
				}
				g.fields, g.spelled, g.known, g.orders = g.fields[:0], g.spelled[:0], g.known[:0], 0
			}
		}
	})
}

// share adds what the number of a record says.
func (s *Survey) share(g *sharers, number uint64) {
	n, kind := number&numberMask, number&kindMask
	order := int(n % orders)
	if kind == isKnown {
		n /= orders
	}
	switch f := s.fields[n]; {
	case f == nil:
	case kind == isKnown:
		g.known, g.orders = append(g.known, known{f, order}), g.orders|1<<order
	case kind == isSpelled:
		g.spelled = append(g.spelled, f)
	default:
		g.fields = append(g.fields, f)
	}
}

// compare finds what the equality of the values of a group changes.
func (g *sharers) compare() {
	if kinds.Symmetric(&g.value) {
		return
	}
	for _, f := range g.spelled {
		f.match(g)
	}
	versions := read(&g.value)
	proven := 0 // bit b is set if a field shows that the value is of the kind with the number b
	for _, f := range g.fields {
		f.match(g)
		for i := range f.answers {
			if a := &f.answers[i]; a.rule.proves(versions, a.from) {
				proven |= 1 << a.bit
			}
		}
	}
	for _, f := range g.fields {
		if f.kinds[0].Form != kinds.Binary { // a value that is not binary shows by itself whether it is a UUID
			continue
		}
		for o := range orders {
			if g.orders == 1<<o && !f.contradicts(versions, o) {
				f.only[o]++
			}
		}
		for i := range f.answers {
			f.answers[i].weigh(g, versions, proven>>f.answers[i].bit&1 == 1)
		}
	}
}

// contradicts reports whether a value with these versions shows another order of the field than o.
func (f *Values) contradicts(versions [orders]int, o int) bool {
	for i := range f.answers {
		a := &f.answers[i]
		if rival := a.rule.rival(versions); rival >= 0 && rival != o || a.from != o && a.rule.proves(versions, a.from) {
			return true
		}
	}
	return false
}

// weigh finds what the equality of the values of a group changes in the answer. proven is set if another field
// shows that the value is of the kind.
func (a *answer) weigh(g *sharers, versions [orders]int, proven bool) {
	in := g.orders
	if proven && a.Basis == None {
		in |= 1 << a.from
	}
	allowed := a.rule.allows(versions, a.from)
	switch {
	case in == 1<<a.from && !allowed && len(a.equal) <= MaxEqual:
		a.equal = append(a.equal, slices.Clone(g.value[:]))
	case in>>a.from&1 == 0 && in != 0 && (allowed || a.Basis == None && a.rule.rival(versions) < 0) && len(a.against) <= MaxEqual:
		a.against = append(a.against, slices.Clone(g.value[:])) // also if the field may be trusted later
	}
}
