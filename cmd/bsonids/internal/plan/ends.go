package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// end is the values of one end of a reference: those of a field, or of all fields if the reference names none.
type end struct {
	collection, path string
	into             string
	forms            []form
}

// form is the values of an end that are stored in one way. It has no decision if the plan does not have the field.
type form struct {
	Field
	becomes string // name of the kind that they are after the conversion; empty if it is not known
}

// String describes the values and the decision about them.
func (f form) String() string {
	if f.Decision == "" {
		return string(f.Stored) + ", not in the plan"
	}
	return fmt.Sprintf("%s, %s", f.Stored, f.Decision)
}

func (e end) String() string {
	if e.path == "" {
		return Quote(e.collection)
	}
	return Quote(e.collection) + " " + Quote(e.path)
}

// ways says how the values are stored.
func (e end) ways() string {
	var s []string
	for _, f := range e.forms {
		if !slices.Contains(s, string(f.Stored)) {
			s = append(s, string(f.Stored))
		}
	}
	return strings.Join(s, " and ")
}

// hasText reports whether some of the values are text.
func (e end) hasText() bool {
	return slices.ContainsFunc(e.forms, func(f form) bool { return f.isText() })
}

// end returns the end with the number i of a reference.
func (p *Plan) end(r Reference, i int) end {
	e := end{collection: r.Between[i]}
	if len(r.Fields) == 2 {
		e.path = r.Fields[i]
	}
	if !p.has(e.collection) {
		for _, s := range r.Outside {
			e.forms = append(e.forms, form{Field{Stored: s}, stays(s, nil)})
		}
		if len(r.Outside) == 0 {
			e.forms = []form{{Field: Field{Stored: "not known"}}}
		}
		return e
	}
	for _, path := range []string{Plain(e.path), Others} { // what is not distinguished is among the others
		if len(e.forms) > 0 {
			break
		}
		for _, c := range p.Collections {
			if c.Name != e.collection {
				continue
			}
			e.into = c.Into
			for _, f := range c.Fields {
				if e.path != "" && f.Plain() != path || f.Stored == kinds.OfMalformed { // which equals no UUID
					continue
				}
				of := form{f, stays(f.Stored, f.Evidence)}
				for _, o := range c.Fields { // a document of a Go struct is converted with the value in it
					if o.Stored == kinds.GoStruct && o.Plain()+".uuid" == f.Plain() && f.Stored == kinds.Subtype0 && f.Decision == Leave {
						of.Decision = o.Decision
					}
				}
				if of.converted() {
					of.becomes = kinds.Standard
				}
				e.forms = append(e.forms, of)
			}
		}
	}
	return e
}

// stays returns the kind of values that are left.
func stays(s kinds.Stored, evidence []Evidence) string {
	if of := s.Kinds(); len(of) == 1 {
		return of[0].Name
	}
	order := ""
	for _, e := range evidence {
		switch {
		case e.By != decide.Evidence && e.By != decide.Equality:
		case order != "" || len(e.Against) > 0:
			return ""
		default:
			order = e.Order
		}
	}
	return order
}

// reference checks that a conversion does not part the values of the ends of a reference.
func (c *checker) reference(r Reference) {
	a, b := c.plan.end(r, 0), c.plan.end(r, 1)
	ways := "decide so that both become the same"
	for i, e := range []end{a, b} {
		switch has := c.plan.has(e.collection); {
		case has && e.path != "" && len(e.forms) == 0:
			c.fail(r.Line, "the reference names the field %q of %q, which the plan does not have", e.path, e.collection)
			return
		case !has && (len(c.plan.Only) == 0 || !c.plan.has(r.Between[1-i])):
			c.fail(r.Line, "the reference names the collection %q, which the plan does not have", e.collection)
			return
		case !has:
			ways = "add the collection with bsonids plan DIR --collection " + Quote(e.collection)
		}
	}
	x, y := slices.IndexFunc(a.forms, form.converted), slices.IndexFunc(b.forms, form.converted)
	switch both := x >= 0 && y >= 0; {
	case both && c.plan.Dump == nil && (a.into == "") != (b.into == ""):
		c.fail(r.Line, "the reference between %s (%s, %s) and %s (%s, %s): only one of them is converted between apply and cutover; "+
			"give both collections a new one with into or none, or accept it with accepted: true in the reference",
			a, a.forms[x], where(a.into), b, b.forms[y], where(b.into))
		return
	case both && a.path == "": // which fields refer to each other is not known
		return
	}
	for _, x := range a.forms {
		for _, y := range b.forms {
			if parts(x, y) {
				c.fail(r.Line, "the reference between %s (%s) and %s (%s) would be half converted: a value of one would not find its document in the other; "+
					"%s, or accept it with accepted: true in the reference", a, x, b, y, ways)
				return
			}
		}
	}
}

// parts reports whether values of x and y, which are the same UUIDs, are in different representations because one
// of them is converted. Text that is left is compared with binary values by programs that read both, and these
// read the same UUIDs afterwards.
func parts(x, y form) bool {
	text := func(x, y form) bool { return x.isText() && !x.converted() && y.Stored != x.Stored }
	return (x.converted() || y.converted()) && x.becomes != y.becomes && !text(x, y) && !text(y, x)
}

// where says where a collection is converted to.
func where(into string) string {
	if into == "" {
		return "in place"
	}
	return fmt.Sprintf("into %q", into)
}
