// Package plan describes the conversion of the collections of a database, in a file that a person
// reviews and edits.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
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
	Database    string
	To          string // name of the kind that values are converted to
	Made        time.Time
	Collections []Collection
	References  []Reference

	Comment, ReferencesComment []string // lines for the person who reviews the plan
}

// Collection is what to convert in a collection.
type Collection struct {
	Name   string
	UUID   string  // that the server gives the collection, in hexadecimal digits; empty if it gives none
	Into   string  // name of the new collection; empty to convert in place
	Fields []Field // sorted by path and by how the values are stored

	Comment []string
	Line    int // in the file; 0 if the plan was not read
}

// Decision is what to do with the values of a field: Leave, Unknown, or "convert from" and the name of
// a kind, with "to text" behind it if the values become text instead of what the plan says.
type Decision string

// The decisions.
const (
	Leave   Decision = "leave"
	Unknown Decision = "unknown"
	from             = "convert from "
	toText           = " to text"
)

// Convert returns the decision to convert from the kind.
func Convert(kind string) Decision { return Decision(from + kind) }

// From returns the kind that the values are converted from; ok is false if they are not converted.
func (d Decision) From() (kind string, ok bool) {
	kind, ok = strings.CutPrefix(string(d), from)
	return strings.TrimSuffix(kind, toText), ok
}

// ToText reports whether the values are converted to text.
func (d Decision) ToText() bool {
	return strings.HasPrefix(string(d), from) && strings.HasSuffix(string(d), toText)
}

// Field is the values of one field that are stored in one way.
type Field struct {
	Path     string // as walk.Path.AppendField writes it
	Stored   kinds.Stored
	Decision Decision
	// Trust is set if a person vouches for the order, which the values do not tell.
	Trust bool
	// Evidence has the possible orders, for subtypes 3 and 0. For text and goStruct it has one, of this
	// name. The values are read again before anything is converted, and the evidence must be the same
	// then.
	Evidence []Evidence

	Comment []string
	Line    int

	odd    scan.Odd // of the survey
	values int64    // of the form, or binary values of whatever subtype
}

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

// Same reports whether e and o say the same.
func (e Evidence) Same(o Evidence) bool { return e.String() == o.String() }

func (e Evidence) String() string {
	s := string(e.By)
	if e.By == decide.None {
		s = "no evidence"
	}
	if len(e.Versions) > 0 {
		s += fmt.Sprintf(" of versions %v", e.Versions)
	}
	if len(e.Digits) > 0 {
		s += fmt.Sprintf(", of 32 digits %v", e.Digits)
	}
	if len(e.Against) > 0 {
		s += " beside " + strings.Join(e.Against, " and ")
	}
	return s
}

// In returns the evidence for the order.
func (f Field) In(order string) (Evidence, bool) {
	for _, e := range f.Evidence {
		if e.Order == order {
			return e, true
		}
	}
	return Evidence{}, false
}

// Reference is a pair of collections that have the same UUIDs. They are converted one after the
// other.
type Reference struct {
	Between [2]string // names of the collections
	Fields  []string  // the fields, one for each collection; may be empty

	Comment []string
	Line    int
}

// Digest returns a hash of what the plan says, without comments and layout.
func (p *Plan) Digest() string {
	sum := sha256.Sum256([]byte(p.canonical()))
	return hex.EncodeToString(sum[:])
}

// canonical returns the plan as YAML without comments.
func (p *Plan) canonical() string {
	bare := *p
	bare.Comment, bare.ReferencesComment = nil, nil
	bare.Collections = slices.Clone(p.Collections)
	for i := range bare.Collections {
		c := &bare.Collections[i]
		c.Comment, c.Fields = nil, slices.Clone(c.Fields)
		for j := range c.Fields {
			c.Fields[j].Comment = nil
		}
	}
	bare.References = slices.Clone(p.References)
	for i := range bare.References {
		bare.References[i].Comment = nil
	}
	var b strings.Builder
	_ = Write(&b, &bare) // a Builder does not fail
	return b.String()
}

// Difference describes the first difference between the plan that is under way and an edited one.
// It returns "" if there is none.
func Difference(was, is *Plan) string {
	switch {
	case was.Digest() == is.Digest():
		return ""
	case was.Database != is.Database:
		return fmt.Sprintf("the database was %q and is %q", was.Database, is.Database)
	case was.To != is.To:
		return fmt.Sprintf("it converted to %s, and now to %s", was.To, is.To)
	case !was.Made.Equal(is.Made):
		return fmt.Sprintf("it was made at %s, and this one at %s", was.Made.Format(time.RFC3339), is.Made.Format(time.RFC3339))
	}
	for i := range max(len(was.Collections), len(is.Collections)) {
		switch {
		case i >= len(was.Collections):
			return fmt.Sprintf("the collection %q was added", is.Collections[i].Name)
		case i >= len(is.Collections):
			return fmt.Sprintf("the collection %q was removed", was.Collections[i].Name)
		}
		if d := was.Collections[i].difference(is.Collections[i]); d != "" {
			return d
		}
	}
	return "the references are others"
}

func (c Collection) difference(is Collection) string {
	switch {
	case c.Name != is.Name:
		return fmt.Sprintf("in the place of the collection %q is %q", c.Name, is.Name)
	case c.UUID != is.UUID:
		return fmt.Sprintf("the uuid of the collection %q is another one", c.Name)
	case c.Into != is.Into:
		return fmt.Sprintf("the collection %q was converted into %q, and now into %q", c.Name, c.Into, is.Into)
	}
	for i := range max(len(c.Fields), len(is.Fields)) {
		switch {
		case i >= len(c.Fields):
			return fmt.Sprintf("%q: the field %q was added", c.Name, is.Fields[i].Path)
		case i >= len(is.Fields):
			return fmt.Sprintf("%q: the field %q was removed", c.Name, c.Fields[i].Path)
		}
		was, now := c.Fields[i], is.Fields[i]
		switch {
		case was.Path != now.Path || was.Stored != now.Stored:
			return fmt.Sprintf("%q: in the place of %q (%s) is %q (%s)", c.Name, was.Path, was.Stored, now.Path, now.Stored)
		case was.Decision != now.Decision:
			return fmt.Sprintf("%q: the decision about %q was %q and is %q", c.Name, was.Path, was.Decision, now.Decision)
		case was.Trust != now.Trust:
			return fmt.Sprintf("%q: trust of %q was %v and is %v", c.Name, was.Path, was.Trust, now.Trust)
		case fmt.Sprint(was.Evidence) != fmt.Sprint(now.Evidence):
			return fmt.Sprintf("%q: the evidence of %q is another one", c.Name, was.Path)
		}
	}
	return ""
}
