// Package plan describes the conversion of the collections of a database, in a file that a person
// reviews and edits.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// SchemaVersion is the version of the format of the file.
const SchemaVersion = 1

// Plan is what to convert in a database. The order of the collections is the order of the work,
// except that collections that refer to each other come together.
type Plan struct {
	Database    string // empty for a dump of several databases; the names of the collections then begin with that of the database
	Dump        *Dump  // nil for a database of a server
	Migration   string // random id, which a copy of the plan has, too; empty for a dump
	Made        time.Time
	Only        []string // names of the collections that the plan is about; empty for all of the database
	Collections []Collection
	References  []Reference
	Definitions []Definition // those that have UUIDs that are converted

	Comment, ReferencesComment []string // lines for the person who reviews the plan
}

// Dump is the dump that a plan is about.
type Dump struct {
	Path       string // absolute, or "-" for standard input
	Collection string // of a dump that is one BSON file, in which nothing says the name
	Digest     string // of its documents
	Evidence   string // SHA-256 of the file with all evidence, in hexadecimal digits
}

// Namespace returns the name of a collection of the plan with that of its database.
func (p *Plan) Namespace(collection string) string {
	if p.Database == "" {
		return collection
	}
	return p.Database + "." + collection
}

// Collection is what to convert in a collection.
type Collection struct {
	Name   string
	UUID   string // that the server gives the collection, in hexadecimal digits; empty if it gives none
	Filter string // of the documents that the entry is about, in canonical extended JSON; empty for all
	Into   string // name of the new collection; empty to convert in place
	// Accepted is set if a person accepts that a cutover cannot put the copy in the place of the collection.
	Accepted bool
	Fields   []Field // sorted by path and by how the values are stored

	Comment []string
	Line    int // in the file; 0 if the plan was not read

	kept           bool   // as of the survey
	unexchangeable string // as of the survey
}

// Entry tells the entries of a plan apart: a collection has one for each filter.
type Entry struct{ Collection, Filter string }

func (e Entry) String() string {
	if e.Filter == "" {
		return fmt.Sprintf("%q", e.Collection)
	}
	return fmt.Sprintf("%q with the filter %s", e.Collection, e.Filter)
}

// Entry returns the key of the collection.
func (c Collection) Entry() Entry { return Entry{c.Name, c.Filter} }

// Filters returns the filters of each collection that the plan has, empty for all documents.
func (p *Plan) Filters() map[string][]string {
	filters := make(map[string][]string)
	for _, c := range p.Collections {
		filters[c.Name] = append(filters[c.Name], c.Filter)
	}
	return filters
}

// Accepted returns the names of the collections whose copies a person accepts to put in place without a cutover.
func (p *Plan) Accepted() (names []string) {
	for _, c := range p.Collections {
		if c.Accepted {
			names = append(names, c.Name)
		}
	}
	return names
}

// Decision is what to do with the values of a field: Leave, List, Unknown, or "convert from" and the name of a kind.
// Converted values are standard.
type Decision string

// The decisions.
const (
	Leave   Decision = "leave"
	List    Decision = "list" // malformed values stay, and each run lists and counts them as left
	Unknown Decision = "unknown"
	from             = "convert from "
)

// Convert returns the decision to convert from the kind.
func Convert(kind string) Decision { return Decision(from + kind) }

// From returns the kind that the values are converted from; ok is false if they are not converted.
func (d Decision) From() (kind string, ok bool) {
	return strings.CutPrefix(string(d), from)
}

// Field is the values of one field that are stored in one way.
type Field struct {
	Path     string // as walk.Path.AppendField writes it
	Stored   kinds.Stored
	Decision Decision
	// Trust is set if a person vouches for the order, which the values do not tell.
	Trust bool
	// Evidence has the possible orders, for subtypes 3 and 0. For text, goStruct and binaryText it has one, of this
	// name. The values are read again before anything is converted, and the evidence must be the same
	// then.
	Evidence []Evidence

	Comment []string
	Line    int

	odd        scan.Odd // of the survey
	values     int64    // of the form, or binary values of whatever subtype
	symmetrics int64    // distinct values that are the same in every order
}

// converted reports whether the values are converted.
func (f Field) converted() bool {
	_, ok := f.Decision.From()
	return ok
}

// isText reports whether the values are text, in strings or in binary values.
func (f Field) isText() bool { return f.Stored == kinds.OfText || f.Stored == kinds.OfBinaryText }

// unusable returns the number of values that a conversion of this field does not reach, because of
// their names: in place, or in a copy.
func (f Field) unusable(copied bool) int64 {
	if copied {
		return f.odd.Unnamable
	}
	return f.odd.Unaddressable
}

// Plain returns the path without the brackets of arrays: elements of an array and single values
// belong to the same field.
func (f Field) Plain() string { return Plain(f.Path) }

// Plain returns a path without the brackets of arrays.
func Plain(path string) string { return strings.ReplaceAll(path, "[]", "") }

// Evidence is what the values of a field say for one order.
type Evidence struct {
	Order    string // name of a kind
	By       decide.Basis
	Versions []int    // of RFC 9562
	Digits   []int    // versions for which text of 32 digits is converted
	Against  []string // orders that other values of the field are in
}

// String returns the evidence as it is in the file.
func (e Evidence) String() string { return e.mapping().inline() }

// In returns the evidence for the order.
func (f Field) In(order string) (Evidence, bool) {
	for _, e := range f.Evidence {
		if e.Order == order {
			return e, true
		}
	}
	return Evidence{}, false
}

// Definition is a validator, a partial index or a view with UUIDs that are converted.
type Definition struct {
	Of string // names it
	Is string // an expression of mongosh, for which it was accepted
	// Accepted is set if a person has changed it, or leaves it as it is.
	Accepted bool

	Comment []string
	Line    int
}

// Reference is a pair of collections that have the same UUIDs. They are converted one after the
// other.
type Reference struct {
	Between [2]string // names of the collections
	Fields  []string  // the fields, one for each collection; may be empty
	// Outside says how the values are stored of a collection that the plan is not about.
	Outside []kinds.Stored
	// Accepted is set if a person accepts that only one end is converted.
	Accepted bool

	Comment []string
	Line    int
}

// String names the reference, with its ends in one order.
func (r Reference) String() string {
	ends := []string{Quote(r.Between[0]), Quote(r.Between[1])}
	for i, f := range r.Fields {
		ends[i] += " " + Quote(f)
	}
	slices.Sort(ends)
	return "the reference between " + strings.Join(ends, " and ")
}

// evidence returns the evidence as it is in the file.
func (f Field) evidence() string { return list("evidence", false, "none", &f.Evidence).inline() }

func (f Field) String() string { return fmt.Sprintf("%q (%s)", f.Path, f.Stored) }

// key is the same for fields with the same values.
func (f Field) key() [2]string { return [2]string{f.Plain(), string(f.Stored)} }

func (f Field) same(o Field) bool { return f.key() == o.key() }

// find returns the index of the field with the same values, or -1.
func (c Collection) find(f Field) int { return slices.IndexFunc(c.Fields, f.same) }

// find returns the index of an entry, or -1.
func (p *Plan) find(e Entry) int {
	return slices.IndexFunc(p.Collections, func(c Collection) bool { return c.Entry() == e })
}

// LineOf returns the line of an entry in the file, or 0.
func (p *Plan) LineOf(e Entry) int {
	if i := p.find(e); i >= 0 {
		return p.Collections[i].Line
	}
	return 0
}

// has reports whether the plan has an entry of the collection.
func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.Collections, func(c Collection) bool { return c.Name == name })
}
