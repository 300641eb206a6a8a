package decide

import (
	"fmt"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A value that is not binary has one order, so that there is nothing to decide about it but whether
// it is a UUID. If nothing but a UUID is written like the value, its own variant and version tell.
// Text of 32 digits may be a checksum: the values of its field must have the variant and the version
// more often than chance explains.

// spelled counts the distinct values of one field that nothing but a UUID is written like.
type spelled struct {
	same     int64    // values that are the same in every order
	versions [9]int64 // others, by version; versions[0] counts those that are not of RFC 9562
}

func (s *spelled) add(u [16]byte) {
	if kinds.Symmetric(&u) {
		s.same++
		return
	}
	s.versions[version(&u, network)]++
}

// decideFormed returns the decision for the values of a field that are not binary.
func (f *Values) decideFormed() Field {
	d := Field{Path: f.path, Values: f.values, Distinct: f.same + f.spelled.same}
	same := d.Distinct
	digits := f.count(network, nil)
	versions, sequential := f.evidence(network, digits, Level)
	if sequential { // a doubt about the order, and text has only one
		versions = []int{1}
	}
	d.Digits = slices.Clone(versions)
	for _, v := range versions {
		d.Fits += digits.versions[v]
	}
	d.Distinct += digits.n
	for v, n := range f.spelled.versions {
		d.Distinct += n
		if v > 0 && n > 0 {
			d.Fits += n
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	d.Versions = slices.Compact(versions)
	switch others := d.Distinct - same; {
	case len(d.Versions) > 0:
		d.Basis = Evidence
	case others == 0:
		d.Basis = Symmetric
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
	fits, same := version(&s.UUID, network), kinds.Symmetric(&s.UUID)
	switch {
	case !ok:
		return "the field did not exist when the conversion was decided"
	case r.field.Basis == None:
		return r.field.Reason
	case s.Certain && (fits > 0 || same):
		return ""
	case r.trusted() || same || slices.Contains(r.field.Digits, fits):
		return ""
	case fits == 0:
		return "the value does not have the variant and a version of RFC 9562; it can be converted by trusting its field"
	}
	return fmt.Sprintf("32 digits without hyphens may be a checksum, and the field does not show that it has UUIDs of version %d in this spelling; "+
		"they can be converted by trusting the field", fits)
}
