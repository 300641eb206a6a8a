package decide

import (
	"encoding/binary"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// MaxEqual is the maximum number of values in a decision, which is part of the state. A decision
// lists only values for which equality changes the outcome.
const MaxEqual = 50_000

// Elsewhere is a field that is not converted and has values equal to converted ones.
type Elsewhere struct {
	Namespace string `json:"collection"`
	Path      string `json:"path"`
	Equal     int64  `json:"equal"` // number of distinct values
}

// settle adds to the decision the values for which equality changes the outcome, at most room of
// them.
func (d *Field) settle(equal, against [][]byte, room *int) {
	if len(equal) > *room {
		equal = nil // a subset would be arbitrary
	}
	*room -= len(equal)
	if len(against) > *room {
		d.Basis, d.Reason = None, "too many values equal ids in another byte order"
		d.Fits, against = 0, nil
	}
	*room -= len(against)
	if len(equal) > 0 && d.Basis == None {
		d.Basis = Equality
	}
	slices.SortFunc(equal, slices.Compare)
	slices.SortFunc(against, slices.Compare)
	d.Equal, d.Contradicted = equal, against
	d.Fits += int64(len(equal) - len(against))
}

// sharers is what has one value in one database.
type sharers struct {
	value   [16]byte
	known   uint8    // bit o is set if it is a known UUID in order o
	sources []uint64 // of the known UUIDs, as in the records
	fields  []*surveyed
	spelled []*surveyed
	others  []*Elsewhere
}

// groups calls visit for each value of each database.
func (s *Survey) groups(visit func(*sharers)) error {
	var g sharers
	var last spill.Record
	done := func() {
		if len(g.fields)+len(g.spelled) > 0 {
			binary.BigEndian.PutUint64(g.value[:8], last[0])
			binary.BigEndian.PutUint64(g.value[8:], last[1])
			visit(&g)
		}
		g.known, g.sources, g.fields, g.spelled, g.others = 0, g.sources[:0], g.fields[:0], g.spelled[:0], g.others[:0]
	}
	err := s.values.Each(func(r spill.Record) error {
		if r[0] != last[0] || r[1] != last[1] || r[2]>>48 != last[2]>>48 {
			done()
			last = r
		}
		switch n := r[2] & numberMask; r[2] & kindMask {
		case isKnown:
			g.known |= 1 << (n % orders)
			g.sources = append(g.sources, n)
		case isField:
			if f := s.fields[n]; f != nil {
				g.fields = append(g.fields, f)
			}
		case isSpelled:
			if f := s.fields[n]; f != nil {
				g.spelled = append(g.spelled, f)
			}
		case isOther:
			if e := s.others[n]; e != nil {
				g.others = append(g.others, e)
			}
		}
		return nil
	})
	done()
	return err
}

// compare finds what the equality of the values of a group changes.
func (s *Survey) compare(g *sharers) {
	if kinds.Symmetric(&g.value) {
		return
	}
	for _, e := range g.others {
		e.Equal++
	}
	if s.Explain {
		for _, f := range g.fields {
			f.match(g)
		}
		for _, f := range g.spelled {
			f.match(g)
		}
	}
	versions := read(&g.value)
	for i := range s.questions {
		if q := &s.questions[i]; q.IsBinary() { // a value that is not shows by itself whether it is a UUID
			for n := range s.answers[i] {
				g.weigh(q, n, versions)
			}
		}
	}
}

// weigh finds what the equality of the values of a group changes in the answers with the number n to a
// question.
func (g *sharers) weigh(q *Question, n int, versions [orders]int) {
	proven, trusted := false, false
	for _, f := range g.fields {
		if f.question == q {
			a := &f.answers[n]
			proven = proven || a.rule.proves(versions, a.from)
			trusted = trusted || a.rule.allows(versions, a.from)
		}
	}
	for _, f := range g.fields {
		if f.question != q {
			continue
		}
		a := &f.answers[n]
		in := g.known
		if proven && a.Basis == None {
			in |= 1 << a.from
		}
		allowed := a.rule.allows(versions, a.from)
		switch {
		case in == 1<<a.from && !allowed:
			if len(a.equal) <= MaxEqual {
				a.equal = append(a.equal, slices.Clone(g.value[:]))
			}
		case in>>a.from&1 == 0 && in != 0 && allowed:
			if len(a.against) <= MaxEqual {
				a.against = append(a.against, slices.Clone(g.value[:]))
			}
		case trusted && !allowed && in == 0 && a.Basis == None:
			a.waiting++
		}
	}
}
