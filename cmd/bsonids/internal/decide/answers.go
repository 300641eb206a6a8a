package decide

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Decide makes the decisions for the kinds, or for those of the questions if there are none. Each kind is
// stored like the one of a question. Decide is called once, after the last document.
func (s *Survey) Decide(of ...kinds.Kind) error {
	err := s.groups(func(g *sharers) {
		for _, f := range g.fields {
			f.add(g.value, s.now)
		}
		for _, f := range g.spelled {
			f.spelled.add(g.value)
		}
	})
	if err != nil {
		return err
	}
	if len(of) == 0 {
		for _, q := range s.questions {
			of = append(of, q.Kind)
		}
	}
	s.answers = make([]int, len(s.questions))
	for i, q := range s.questions {
		same := slices.DeleteFunc(slices.Clone(of), func(k kinds.Kind) bool { return k.Stored() != q.Stored() })
		s.answers[i] = len(same)
		for _, c := range s.all {
			for plain, f := range c.fields[i] {
				f.answer(plain, same)
			}
		}
	}
	if s.known || len(s.others) > 0 || len(s.fields) > 1 {
		if err := s.groups(s.compare); err != nil {
			return err
		}
	}
	for _, c := range s.all {
		for i := range s.questions {
			for n := range s.answers[i] {
				room := MaxEqual
				for _, f := range c.sorted(i) {
					a := &f.answers[n]
					a.settle(a.equal, a.against, &room)
				}
			}
		}
	}
	return nil
}

// sorted returns the fields that the question with the number i is about, sorted by path.
func (c *Surveyed) sorted(i int) []*surveyed {
	return slices.SortedFunc(maps.Values(c.fields[i]), func(a, b *surveyed) int { return strings.Compare(a.path, b.path) })
}

// answer makes the decisions that the values of the field alone allow.
func (f *surveyed) answer(plain string, of []kinds.Kind) {
	for _, k := range of {
		a := answer{from: orderOf(k.Order)}
		trusted := slices.ContainsFunc(f.question.Trusted, func(t string) bool { return Plain(t) == plain })
		if k.IsBinary() {
			var earlier []Rival
			if k.Subtype == 3 {
				earlier = f.in.Earlier[plain]
			}
			a.Field = f.decide(f.path, a.from, k.Subtype, trusted, earlier)
		} else {
			a.Field = f.decideFormed(k.Name, trusted)
		}
		a.rule = a.compile(a.from, k.Subtype)
		f.answers = append(f.answers, a)
	}
}

// Decision returns the decision about the values of the collection that are stored as k, in its order.
func (c *Surveyed) Decision(k kinds.Kind) *Decision {
	s := c.survey
	d := &Decision{Subtype: k.Subtype, From: k.Name, Made: s.now.UTC().Truncate(time.Second), Documents: c.documents, Fields: []Field{}}
	i := slices.IndexFunc(s.questions, func(q Question) bool { return q.Stored() == k.Stored() })
	d.Trusted = s.questions[i].Trusted
	for _, f := range c.sorted(i) {
		for _, a := range f.answers {
			if a.from == orderOf(k.Order) {
				d.Fields = append(d.Fields, a.Field)
			}
		}
	}
	return d
}

// Unknown returns the trusted fields that have no value in any of the converted collections.
func (s *Survey) Unknown() (unknown []string) {
	for i, q := range s.questions {
		for _, t := range q.Trusted {
			if !slices.ContainsFunc(s.all, func(c *Surveyed) bool { return c.fields[i][Plain(t)] != nil }) {
				unknown = append(unknown, t)
			}
		}
	}
	return unknown
}

// Elsewhere returns the fields that are not converted and have values equal to those of fields that
// are.
func (s *Survey) Elsewhere() []Elsewhere {
	var out []Elsewhere
	for _, e := range s.others {
		if e != nil && e.Equal > 0 {
			out = append(out, *e)
		}
	}
	for _, f := range s.fields {
		if f == nil {
			continue
		}
		for _, a := range f.answers {
			if a.waiting > 0 && !a.Converted() {
				out = append(out, Elsewhere{Namespace: f.in.Namespace, Path: f.path, Equal: a.waiting})
			}
		}
	}
	slices.SortFunc(out, func(a, b Elsewhere) int { return strings.Compare(a.Namespace+" "+a.Path, b.Namespace+" "+b.Path) })
	return out
}
