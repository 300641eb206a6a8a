package decide

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// heldAnywhere is the field number of values that are converted, in any field.
const heldAnywhere = ^uint32(0)

// MaxEqual is the maximum number of values in a decision, which is part of the state. A decision
// lists only values for which equality changes the outcome.
const MaxEqual = 50_000

// maxFew is the maximum number of values that are stored for fields with few values.
const (
	maxFew      = 1 << 16 // for one field
	maxFewInAll = 1 << 20
)

// Elsewhere is a field that is not converted and has values equal to converted ones.
type Elsewhere struct {
	Namespace string `json:"collection"`
	Path      string `json:"path"`
	Equal     int64  `json:"equal"` // number of distinct values
}

type elsewhere struct {
	Elsewhere
	number uint32
	own    bool // the field is in the converted collection
}

// add adds the value to the field with the number, and reports whether it is new.
func (p *Pass) add(number uint32, v [16]byte) bool {
	p.key = append(binary.LittleEndian.AppendUint32(p.key[:0], number), v[:]...)
	return p.seen.Add(p.key)
}

// has reports whether the field with the number has the value.
func (p *Pass) has(number uint32, v [16]byte) bool {
	p.key = append(binary.LittleEndian.AppendUint32(p.key[:0], number), v[:]...)
	return p.seen.Has(p.key)
}

// known adds a UUID whose order is known.
func (p *Pass) known(u [16]byte) {
	if symmetric(&u) || !p.ids.Add(u[:]) {
		return
	}
	p.anyID = true
	for o := range orders {
		v := representations[o].Permute(u)
		if !p.has(heldAnywhere, v) {
			continue
		}
		for _, f := range p.fields {
			if p.has(f.number, v) {
				f.isEqual(v, o)
			}
		}
	}
}

// compare looks up v, a new value of f, among the values that were read before.
func (p *Pass) compare(f *field, v [16]byte) {
	if symmetric(&v) {
		return
	}
	if p.anyID {
		for o := range orders {
			if u := representations[o].Permute(v); p.ids.Has(u[:]) {
				f.isEqual(v, o)
			}
		}
	}
	if len(f.few) < maxFew && p.few < maxFewInAll {
		f.few = append(f.few, v)
		p.few++
	}
	p.hold(v)
}

// hold records that v, a value of any field, is converted, and looks it up in the fields that are
// not.
func (p *Pass) hold(v [16]byte) {
	if !p.add(heldAnywhere, v) {
		return
	}
	for _, e := range p.elsewhere {
		if e.own && p.has(e.number, v) {
			e.Equal++
		}
	}
}

// isEqual records that v, read in order o, is equal to a UUID whose order is known.
func (f *field) isEqual(v [16]byte, o int) {
	if f.equal == nil {
		f.equal = make(map[[16]byte]uint8)
	}
	if _, ok := f.equal[v]; ok || len(f.equal) < 20*MaxEqual {
		f.equal[v] |= 1 << o
	}
}

// leave adds a value of the same subtype in a field that is not converted.
func (p *Pass) leave(namespace string, v [16]byte) {
	key := namespace + " " + string(p.name)
	e := p.elsewhere[key]
	if e == nil {
		if len(p.elsewhere) >= maxFields {
			return
		}
		e = &elsewhere{Elsewhere{Namespace: namespace, Path: string(p.name)}, p.number(), namespace == ""}
		p.elsewhere[key] = e
	}
	held := p.has(heldAnywhere, v)
	if (held || e.own) && !symmetric(&v) && p.add(e.number, v) && held {
		e.Equal++
	}
}

// Elsewhere returns the fields that are not converted and have values equal to converted ones.
// Namespace is empty for those of the collection itself.
func (p *Pass) Elsewhere() []Elsewhere {
	var out []Elsewhere
	for _, e := range p.elsewhere {
		if e.Equal > 0 {
			out = append(out, e.Elsewhere)
		}
	}
	slices.SortFunc(out, func(a, b Elsewhere) int { return strings.Compare(a.Namespace+" "+a.Path, b.Namespace+" "+b.Path) })
	return out
}

// Full reports whether there were more values than can be compared.
func (p *Pass) Full() bool { return p.seen.Full() || p.ids.Full() }

// shareEvidence returns the values of each field that are equal to known ones. It treats the values
// of fields whose order is proven as known, because a field with few values may have the same ones.
func (p *Pass) shareEvidence(decided map[*field]*Field, from int) map[*field]map[[16]byte]uint8 {
	shared := make(map[*field]map[[16]byte]uint8)
	for f, d := range decided {
		shared[f] = f.equal
		if d.Basis != None {
			continue
		}
		own := &field{equal: maps.Clone(f.equal)}
		for proven, by := range decided {
			if by.Basis != Evidence {
				continue
			}
			rule := by.compile(from, p.Subtype)
			for _, v := range f.few {
				if p.has(proven.number, v) && rule.allows(read(&v), from) {
					own.isEqual(v, from)
				}
			}
		}
		shared[f] = own.equal
	}
	return shared
}

// weigh adds the evidence of equality to the decision about a field, with at most room values. known
// has the values that are equal to known ones, as field.equal.
func weigh(known map[[16]byte]uint8, d *Field, from int, subtype byte, room *int) {
	rule := d.compile(from, subtype)
	var equal, against [][]byte
	for v, in := range known {
		allowed := rule.allows(read(&v), from)
		switch {
		case in == 1<<from && !allowed:
			equal = append(equal, slices.Clone(v[:]))
		case in>>from&1 == 0 && allowed:
			against = append(against, slices.Clone(v[:]))
		}
	}
	d.settle(equal, against, room)
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
