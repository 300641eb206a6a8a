package decide

import (
	"fmt"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// A value that is not binary has one order, so that there is nothing to decide about it but whether
// it is a UUID. If nothing but a UUID is written like the value, its own variant and version tell.
// Text of 32 digits may be a checksum: the values of its field must have the variant and the version
// more often than chance explains.

// spelled counts the distinct values of one field that nothing but a UUID is written like.
type spelled struct {
	number   uint32   // distinguishes the values from those of the field that are not certain
	same     int64    // values that are the same in every order
	versions [9]int64 // others, by version; versions[0] counts those that are not of RFC 9562
}

// formed adds a value that is not binary.
func (p *Pass) formed(namespace string, path *walk.Path, l walk.Leaf) {
	if !p.Form.Applies(l) {
		return
	}
	s, _, ok := p.Form.Parse(l)
	if namespace != "" || p.Wanted != nil && !p.Wanted(path) {
		if ok {
			p.name = path.AppendField(p.name[:0])
			p.leave(namespace, s.UUID)
		}
		return
	}
	if !ok && p.Wanted == nil { // nobody asks about the field
		return
	}
	f := p.field(path)
	if !ok {
		return
	}
	f.values++
	switch {
	case !s.Certain:
		if p.add(f.number, s.UUID) {
			f.add(s.UUID, p.now)
		}
	case f.spelled.number == 0:
		f.spelled.number = p.number()
		fallthrough
	default:
		if p.add(f.spelled.number, s.UUID) {
			f.spelled.add(s.UUID)
		}
	}
	if !symmetric(&s.UUID) {
		p.hold(s.UUID)
	}
}

// formed adds a value that is not binary.
func (c *Surveyed) formed(path *walk.Path, l walk.Leaf) error {
	form := c.survey.Form
	if !form.Applies(l) {
		return nil
	}
	s, _, ok := form.Parse(l)
	if !c.converted || !c.survey.selects(path) {
		if !ok {
			return nil
		}
		return c.other(path, s.UUID)
	}
	if !ok && c.survey.Wanted == nil { // nobody asks about the field
		return nil
	}
	f := c.field(path)
	if !ok {
		return nil
	}
	f.values++
	if s.Certain {
		return c.emit(s.UUID, isSpelled, uint64(f.number))
	}
	return c.emit(s.UUID, isField, uint64(f.number))
}

func (s *spelled) add(u [16]byte) {
	if symmetric(&u) {
		s.same++
		return
	}
	s.versions[version(&u, network)]++
}

// decided returns the decision for the values of the field.
func (f *field) decided(q Question, from int, trusted bool, earlier []Rival) Field {
	if q.Form != kinds.Binary {
		return f.decideFormed(q.Name, trusted)
	}
	return f.decide(f.path, from, q.Subtype, trusted, earlier)
}

// decideFormed returns the decision for the values of a field that are not binary.
func (f *field) decideFormed(from string, trusted bool) Field {
	d := Field{Path: f.path, Values: f.values, Distinct: f.same + f.spelled.same}
	digits := f.count(network, func([orders]int) bool { return true })
	d.Distinct += digits.n
	versions, sequential := f.evidence(network, digits, Level)
	if sequential { // a doubt about the order, and text has only one
		versions = []int{1}
	}
	d.Digits = slices.Clone(versions)
	for _, v := range versions {
		d.Fits += digits.versions[v]
	}
	certain := int64(0)
	for v, n := range f.spelled.versions {
		d.Distinct += n
		if v > 0 && n > 0 {
			certain += n
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	d.Versions, d.Fits = slices.Compact(versions), d.Fits+certain
	same, others := f.same+f.spelled.same, digits.n+f.spelled.versions[0]
	switch {
	case len(d.Versions) > 0:
		d.Basis = Evidence
	case trusted && d.Values > 0:
		d.Basis, d.Fits = Trust, others
	case same > 0 && others == 0:
		d.Basis = Symmetric
	case others == 0:
		d.Basis, d.Reason = None, fmt.Sprintf("no value is a UUID that is stored as %s", from)
	case digits.n == 0:
		d.Basis, d.Reason = None, fmt.Sprintf("none of the %d distinct values has the variant and a version of RFC 9562", others)
	default:
		d.Basis, d.Reason = None, fmt.Sprintf("32 digits without hyphens may be a checksum, and %d of %d distinct values have the variant and a version of RFC 9562, which chance explains",
			digits.fits(), digits.n)
	}
	return d
}

// Formed is like Value, for a value that is not binary.
func (j *Judge) Formed(field []byte, s kinds.Spelled) (reason string) {
	if j == nil || j.all {
		return ""
	}
	var name [128]byte
	plain := appendPlain(name[:0], field)
	r, ok := j.fields[string(plain)]
	if !ok {
		r, ok = j.fields[Others]
	}
	known := ok && r.field.Basis != None
	fits, same := version(&s.UUID, network), symmetric(&s.UUID)
	switch {
	case j.retry && j.trusted[string(plain)]:
		return ""
	case !ok && !j.retry:
		return "the field did not exist when the conversion was decided"
	case !known && !j.retry:
		return r.field.Reason
	case s.Certain && (fits > 0 || same):
		return ""
	case known && (r.field.Basis == Trust || same || slices.Contains(r.field.Digits, fits)):
		return ""
	case fits == 0:
		return "the value does not have the variant and a version of RFC 9562; it can be converted by trusting its field"
	}
	return fmt.Sprintf("32 digits without hyphens may be a checksum, and the field does not show that it has UUIDs of version %d in this spelling; "+
		"they can be converted by trusting the field", fits)
}
