package decide

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

// Judge decides about single values. It is safe for concurrent use. A nil Judge converts every
// value.
type Judge struct {
	from    int
	name    string
	subtype byte
	all     bool
	fields  map[string]*rule
}

// rule is a Field that is prepared for lookups.
type rule struct {
	field    Field
	versions uint16 // bit v is set if the field has version v
	rivals   [orders]uint16

	equal, contradicted map[[16]byte]struct{}
}

func (f Field) compile(from int, subtype byte) rule {
	r := rule{field: f, versions: bitsOf(f.Versions)}
	for _, a := range f.Against {
		for o := range orders {
			if o != from && orderName(o, subtype) == a.Order {
				r.rivals[o] = bitsOf(a.Versions)
			}
		}
	}
	r.equal, r.contradicted = values(f.Equal), values(f.Contradicted)
	return r
}

func values(list [][]byte) map[[16]byte]struct{} {
	m := make(map[[16]byte]struct{}, len(list))
	for _, v := range list {
		if len(v) == 16 {
			m[[16]byte(v)] = struct{}{}
		}
	}
	return m
}

func bitsOf(versions []int) (b uint16) {
	for _, v := range versions {
		b |= 1 << v
	}
	return b
}

// rival returns the other order of the field that a value with these versions fits, or -1 if there
// is none.
func (r *rule) rival(versions [orders]int) int {
	for o, v := range versions {
		if v > 0 && r.rivals[o]>>v&1 == 1 {
			return o
		}
	}
	return -1
}

func (r *rule) fits(version int) bool { return version > 0 && r.versions>>version&1 == 1 }

// trusted reports whether a value is converted although it does not fit the order.
func (r *rule) trusted() bool {
	return r.field.Basis == Trust || r.field.Basis == Evidence && r.field.Trusted
}

// proves reports whether a value with these versions shows the order of the field.
func (r *rule) proves(versions [orders]int, from int) bool {
	return r.field.Basis == Evidence && r.fits(versions[from]) && r.rival(versions) < 0
}

// allows reports whether a value with these versions is converted. The value is not the same in
// every order.
func (r *rule) allows(versions [orders]int, from int) bool {
	return r.proves(versions, from) || r.trusted() && r.rival(versions) < 0
}

// Judge returns a Judge for the decision. from is the order that From names.
func (d *Decision) Judge(from uuidrep.Representation) *Judge {
	j := &Judge{from: orderOf(from), name: d.From, subtype: d.Subtype, all: d.BySubtype, fields: make(map[string]*rule, len(d.Fields))}
	for _, f := range d.Fields {
		r := f.compile(j.from, d.Subtype)
		j.fields[Plain(f.Path)] = &r
	}
	return j
}

// appendPlain appends a field name without the brackets of arrays.
func appendPlain(b, field []byte) []byte {
	for i := 0; i < len(field); i++ {
		if field[i] == '[' && i+1 < len(field) && field[i+1] == ']' {
			i++
			continue
		}
		b = append(b, field[i])
	}
	return b
}

// Value returns the reason for which a value of the field is not converted, or "" if it is.
func (j *Judge) Value(field []byte, v [16]byte) (reason string) {
	if j == nil || j.all {
		return ""
	}
	var name [128]byte
	return j.decided(appendPlain(name[:0], field), v)
}

func (j *Judge) decided(plain []byte, v [16]byte) string {
	r, ok := j.fields[string(plain)]
	if !ok {
		if r, ok = j.fields[Others]; !ok {
			return "the field did not exist when the byte orders were decided"
		}
	}
	if r.field.Basis == None {
		return r.field.Reason
	}
	if kinds.Symmetric(&v) {
		return ""
	}
	if _, ok := r.equal[v]; ok {
		return ""
	}
	if _, ok := r.contradicted[v]; ok {
		return "the value equals an id of known byte order if it is read in another order"
	}
	versions := read(&v)
	if r.allows(versions, j.from) {
		return ""
	}
	if r.field.Basis == Equality {
		return r.field.Reason
	}
	rival := r.rival(versions)
	switch {
	case r.field.Basis == Symmetric:
		return "no value determined the byte order of the field when the byte orders were decided"
	case rival >= 0 && (r.trusted() || r.fits(versions[j.from])):
		return fmt.Sprintf("the value fits %s, the byte order of other values of the field", orderName(rival, j.subtype))
	case rival >= 0:
		return fmt.Sprintf("the value fits %s, the byte order of other values of the field, and not %s", orderName(rival, j.subtype), j.name)
	case versions[j.from] > 0:
		return fmt.Sprintf("the value has version %d if read as %s, but the field has %s", versions[j.from], j.name, list(r.field.Versions))
	}
	return fmt.Sprintf("the value does not have the variant and a version of RFC 9562 if read as %s", j.name)
}

func list(versions []int) string {
	var s []string
	for _, v := range versions {
		s = append(s, strconv.Itoa(v))
	}
	return strings.Join(s, ", ")
}
