// Package decide decides, before a conversion writes anything, which values of which fields are in
// the order that the conversion reads them in. The decision is made once, from all values of the
// collection, and is saved.
package decide

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
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
	// Fits is the number of distinct values that are converted if the field is not trusted, without those
	// that are the same in every order.
	Fits  int64 `json:"fits" bson:"fits"`
	Basis Basis `json:"basis" bson:"basis"`
	// Trusted is set if the user trusts the field: every value is converted that does not fit another order of it.
	Trusted bool `json:"trusted,omitempty" bson:"trusted,omitempty"`
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
// earlier lists other orders of the field that earlier conversions have found. alone has the values that do not fit from, for
// a field of which a decision without it has found that they may show another order: in t, values of which chance
// makes some fit may hide that the others are those of a counter. It is nil otherwise.
func (t *tally) decide(path string, from int, subtype byte, earlier []Rival, alone *tally) Field {
	f := Field{Path: path, Values: t.values, Distinct: t.same}
	every := t.count(from, nil)
	f.Distinct += every.n
	versions, sequential := t.evidence(from, every, Level)
	f.Versions = versions
	fits := func(v [orders]int) bool { return v[from] > 0 && slices.Contains(versions, v[from]) }
	for o := range orders {
		if o == from {
			continue
		}
		of, rest := t, t.count(o, func(v [orders]int) bool { return !fits(v) })
		if alone != nil {
			of, rest = alone, alone.count(o, nil)
		}
		if versions, _ := of.evidence(o, rest, Level); len(versions) > 0 {
			r := Rival{Order: orderName(o, subtype), Versions: versions}
			for _, v := range versions {
				r.Distinct += rest.versions[v]
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
	case against != "":
		f.Basis, f.Reason = None, fmt.Sprintf("the values are %s, not %s", against, name)
	case sequential:
		f.Basis, f.Reason = None, fmt.Sprintf("the values are version 1 if read as %s, but sequential GUIDs of SQL Server (NEWSEQUENTIALID) in the other order look the same", name)
	default:
		f.Basis, f.Reason = None, fmt.Sprintf("the values do not determine the byte order: %d of %d distinct values fit %s", every.fits(), every.n, name)
	}
	rule := f.compile(from, subtype)
	for i, n := range t.classes {
		if n > 0 && rule.allows(ofClass(i).versions(), from) {
			f.Fits += int64(n)
		}
	}
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

func (f Field) rivals() string {
	var names []string
	for _, r := range f.Against {
		names = append(names, r.Order)
	}
	return strings.Join(names, " and ")
}

// Convert makes a value of the field be converted, whatever else the decision says.
func (f *Field) Convert(v [16]byte) {
	i, found := slices.BinarySearchFunc(f.Equal, v[:], bytes.Compare)
	if !found {
		f.Equal = slices.Insert(slices.Clone(f.Equal), i, v[:])
	}
}

// Trust makes the fields be converted, except for values that show evidence of another order.
func (d *Decision) Trust(fields []string) {
	for i := range d.Fields {
		f := &d.Fields[i]
		if !slices.ContainsFunc(fields, func(t string) bool { return Plain(t) == Plain(f.Path) }) {
			continue
		}
		f.Trusted = true
		if f.Basis == None || f.Basis == Equality {
			f.Basis, f.Reason = Trust, ""
		}
	}
}
