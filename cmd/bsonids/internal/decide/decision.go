// Package decide decides, before a conversion writes anything, which values of which fields are in
// the order that the conversion reads them in. The decision is made once, from all values of the
// collection, and is saved.
package decide

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

// Basis is the reason for which values of a field are converted or not.
type Basis string

// The bases.
const (
	Evidence  Basis = "evidence"  // the variant and the versions of RFC 9562
	Symmetric Basis = "symmetric" // every value is the same in every order
	Equality  Basis = "equality"  // only values that are equal to others whose order is known
	Trust     Basis = "trust"     // the user trusts the field
	None      Basis = "none"      // the field is not converted
)

// Decision is the decision for a collection. It can be encoded as JSON and as BSON.
type Decision struct {
	Subtype   byte      `json:"subtype" bson:"subtype"`     // of the values that are converted
	From      string    `json:"from" bson:"from"`           // name of the order of these values
	Made      time.Time `json:"made" bson:"made"`           // time of the decision
	Documents int64     `json:"documents" bson:"documents"` // number of documents that were read
	Trusted   []string  `json:"trusted,omitempty" bson:"trusted,omitempty"`

	// BySubtype is true if the subtype alone determines the order. Fields is then empty, and every
	// value is converted.
	BySubtype bool `json:"bySubtype,omitempty" bson:"bySubtype,omitempty"`

	Fields []Field `json:"fields" bson:"fields"` // sorted by path
}

// Field is the decision for the values of one field.
type Field struct {
	// Path is the first name of the field, as walk.Path.AppendField writes it, or Others.
	Path     string `json:"path" bson:"path"`
	Values   int64  `json:"values" bson:"values"`
	Distinct int64  `json:"distinct" bson:"distinct"`
	// Fits is the number of distinct values that are converted, without those that are the same in
	// every order.
	Fits  int64 `json:"fits" bson:"fits"`
	Basis Basis `json:"basis" bson:"basis"`
	// Reason is why the field is not converted.
	Reason string `json:"reason,omitempty" bson:"reason,omitempty"`
	// Versions lists the versions of the values in the order of From.
	Versions []int `json:"versions,omitempty" bson:"versions,omitempty"`
	// Digits lists the versions for which text of 32 digits is converted.
	Digits  []int   `json:"digits,omitempty" bson:"digits,omitempty"`
	Against []Rival `json:"against,omitempty" bson:"against,omitempty"`

	// Equal lists values that are converted because, read in the order of From, they are equal to
	// UUIDs whose order is known. Contradicted lists values that are not converted because they are
	// equal to such UUIDs in another order. Both are sorted.
	Equal        [][]byte `json:"equal,omitempty" bson:"equal,omitempty"`
	Contradicted [][]byte `json:"contradicted,omitempty" bson:"contradicted,omitempty"`
}

// Rival is another order in which a field has values.
type Rival struct {
	Order    string `json:"order" bson:"order"`
	Versions []int  `json:"versions" bson:"versions"`
	Distinct int64  `json:"distinct" bson:"distinct"` // number of values that fit it and not From; 0 if only an earlier conversion found it
}

// Others is the path of all fields beyond the number that are distinguished.
const Others = "(others)"

// Converted reports whether values of the field are converted.
func (f Field) Converted() bool { return f.Basis != None }

// decide returns the decision for the values in t, whose order is from according to the user.
// earlier lists other orders of the field that earlier conversions have found.
func (t *tally) decide(path string, from int, subtype byte, trusted bool, earlier []Rival) Field {
	f := Field{Path: path, Values: t.values, Distinct: t.same}
	every := t.count(from, func([orders]int) bool { return true })
	f.Distinct += every.n
	versions, sequential := t.evidence(from, every, Level)
	f.Versions = versions
	fits := func(v [orders]int) bool { return v[from] > 0 && slices.Contains(versions, v[from]) }
	for o := range orders {
		if o == from {
			continue
		}
		alone := t.count(o, func(v [orders]int) bool { return !fits(v) })
		if versions, _ := t.evidence(o, alone, Level); len(versions) > 0 {
			r := Rival{Order: orderName(o, subtype), Versions: versions}
			for _, v := range versions {
				r.Distinct += alone.versions[v]
			}
			f.Against = append(f.Against, r)
		}
	}
	against := f.rivals()
	for _, r := range earlier {
		if r.Order != orderName(from, subtype) {
			f.oppose(r)
		}
	}
	name := orderName(from, subtype)
	switch {
	case every.n == 0:
		f.Basis = Symmetric
	case len(versions) > 0:
		f.Basis = Evidence
	case trusted:
		f.Basis = Trust
	case against != "":
		f.Basis, f.Reason = None, fmt.Sprintf("the values are %s, not %s", against, name)
	case sequential:
		f.Basis, f.Reason = None, fmt.Sprintf("the values are version 1 if read as %s, but sequential GUIDs of SQL Server (NEWSEQUENTIALID) in the other order look the same", name)
	default:
		f.Basis, f.Reason = None, fmt.Sprintf("the values do not determine the byte order: %d of %d distinct values fit %s", every.fits(), every.n, name)
	}
	t.countFits(&f, from, subtype)
	return f
}

// oppose adds another order of the field, which an earlier conversion has found. The values that fit
// this order alone may all be converted, so that the remaining ones do not show it.
func (f *Field) oppose(r Rival) {
	i := slices.IndexFunc(f.Against, func(a Rival) bool { return a.Order == r.Order })
	if i < 0 {
		f.Against = append(f.Against, Rival{Order: r.Order, Versions: slices.Clone(r.Versions)})
		return
	}
	versions := append(slices.Clone(f.Against[i].Versions), r.Versions...)
	slices.Sort(versions)
	f.Against[i].Versions = slices.Compact(versions)
}

// Found returns, by field, the order of From where the decision found values in it. The brackets of
// arrays are left out of the names.
func (d *Decision) Found() map[string]Rival {
	found := make(map[string]Rival)
	for _, f := range d.Fields {
		if f.Basis == Evidence {
			found[Plain(f.Path)] = Rival{Order: d.From, Versions: f.Versions}
		}
	}
	return found
}

// countFits counts the values that the decision converts.
func (t *tally) countFits(f *Field, from int, subtype byte) {
	rule := f.compile(from, subtype)
	for i, n := range t.classes {
		if n > 0 {
			if versions, _ := ofClass(i); rule.allows(versions, from) {
				f.Fits += int64(n)
			}
		}
	}
}

func (f Field) rivals() string {
	var names []string
	for _, r := range f.Against {
		names = append(names, r.Order)
	}
	return strings.Join(names, " and ")
}

// Trust makes the trusted fields be converted, except for values that show evidence of another
// order. It returns the fields that the decision does not contain. Fields that were trusted earlier
// remain trusted.
func (d *Decision) Trust(trusted []string) (unknown []string) {
	for _, t := range trusted {
		plain := Plain(t)
		i := slices.IndexFunc(d.Fields, func(f Field) bool { return Plain(f.Path) == plain })
		if i < 0 {
			if !d.BySubtype {
				unknown = append(unknown, t)
			}
			continue
		}
		if f := &d.Fields[i]; f.Basis == None || f.Basis == Equality {
			f.Basis, f.Reason, f.Fits = Trust, "", f.Distinct
			for _, r := range f.Against {
				f.Fits -= r.Distinct
			}
		}
		if !slices.Contains(d.Trusted, t) {
			d.Trusted = append(d.Trusted, t)
		}
	}
	slices.Sort(d.Trusted)
	return unknown
}

// Judge decides about single values. It is safe for concurrent use. A nil Judge converts every
// value.
type Judge struct {
	from    int
	name    string
	subtype byte
	all     bool
	fields  map[string]*rule
	retry   bool
	trusted map[string]bool // by the name without brackets, for a retry
}

// rule is a Field that is prepared for lookups.
type rule struct {
	field    Field
	versions uint16 // bit v is set if the field has version v
	rivals   [orders]uint16

	equal, contradicted map[[16]byte]struct{}
}

func (f Field) compile(from int, subtype byte) rule {
	r := rule{field: f, versions: bits(f.Versions)}
	for _, a := range f.Against {
		for o := range orders {
			if o != from && orderName(o, subtype) == a.Order {
				r.rivals[o] = bits(a.Versions)
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

func bits(versions []int) (b uint16) {
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

// allows reports whether a value with these versions is converted. The value is not the same in
// every order.
func (r *rule) allows(versions [orders]int, from int) bool {
	switch r.field.Basis {
	case Evidence:
		return r.fits(versions[from]) && r.rival(versions) < 0
	case Trust:
		return r.rival(versions) < 0
	}
	return false
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

// Retry returns a Judge for values that the user has listed. It converts a value if the saved
// decision, which may be nil, converts it; if it fits the order and no other order that the field
// may have; or if its field is trusted. The Judge does not change with the values it sees.
func Retry(saved *Decision, q Question) *Judge {
	j := &Judge{from: orderOf(q.Order), name: q.Name, subtype: q.Subtype}
	if saved != nil {
		j = saved.Judge(q.Order)
	}
	j.retry, j.trusted = true, make(map[string]bool)
	for _, t := range q.Trusted {
		j.trusted[Plain(t)] = true
	}
	return j
}

// again decides about a listed value that the saved decision does not convert.
func (j *Judge) again(plain []byte, v *[16]byte) (reason string) {
	if j.trusted[string(plain)] || kinds.Symmetric(v) {
		return ""
	}
	if version(v, j.from) == 0 {
		return fmt.Sprintf("the value does not have the variant and a version of RFC 9562 if read as %s; it can be converted by trusting its field", j.name)
	}
	// If the field is known to have the order, another order counts only if the field is known to
	// have that one, too.
	r, known := j.fields[string(plain)]
	known = known && r.field.Basis == Evidence
	for o := range orders {
		if n := version(v, o); o != j.from && n > 0 && (!known || r.rivals[o]>>n&1 == 1) {
			return fmt.Sprintf("the value fits both %s and %s; it can be converted by trusting its field", orderName(o, j.subtype), j.name)
		}
	}
	return ""
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
	plain := appendPlain(name[:0], field)
	reason = j.decided(plain, v)
	if j.retry && reason != "" {
		return j.again(plain, &v)
	}
	return reason
}

// Knows reports whether a decision was made about the field.
func (j *Judge) Knows(field []byte) bool {
	if j == nil || j.all {
		return true
	}
	var name [128]byte
	_, ok := j.fields[string(appendPlain(name[:0], field))]
	return ok
}

// Leaves reports whether a decision was made to convert no value of the field.
func (j *Judge) Leaves(field []byte) bool {
	if j == nil || j.all {
		return false
	}
	var name [128]byte
	r, ok := j.fields[string(appendPlain(name[:0], field))]
	return ok && r.field.Basis == None
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
	case rival >= 0 && (r.field.Basis == Trust || r.fits(versions[j.from])):
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
