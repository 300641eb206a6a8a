package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Others is the path of all fields beyond the number that are distinguished.
const Others = decide.Others

// Check returns why the plan cannot be applied, or nothing if it can.
func (p *Plan) Check() []string {
	c := checker{plan: p, into: make(map[string]bool)}
	for _, coll := range p.Collections {
		c.collection(coll)
	}
	for _, r := range p.References {
		if !r.Accepted {
			c.reference(r)
		}
	}
	return c.problems
}

type checker struct {
	plan     *Plan
	into     map[string]bool // names of new collections
	problems []string
}

// fail adds a problem of a line in the file, which is 0 if the plan was not read.
func (c *checker) fail(line int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if line > 0 {
		text = fmt.Sprintf("line %d: %s", line, text)
	}
	c.problems = append(c.problems, text)
}

func (c *checker) collection(coll Collection) {
	if len(c.plan.Only) > 0 && !slices.Contains(c.plan.Only, coll.Name) {
		c.fail(coll.Line, "%q: the plan is about %s only", coll.Name, quoteAll(c.plan.Only))
	}
	converted, id, merged := false, false, false
	for _, f := range coll.Fields {
		switch {
		case f.Decision == Unknown:
			c.fail(f.Line, "%q: the decision about %q (%s) is unknown", coll.Name, f.Path, f.Stored)
		case (f.Decision == List) != (f.Stored == kinds.OfMalformed) && (f.Decision == List || f.converted()):
			c.fail(f.Line, "%q: %q: the values are %s, and only malformed ones are listed", coll.Name, f.Path, f.Stored)
		case !f.converted() && f.Trust:
			c.fail(f.Line, "%q: trust of %q means nothing, because the field is not converted", coll.Name, f.Path)
		case f.converted():
			converted = true
			id = id || InID(f.Path)
			merged = merged || InID(f.Path) && !f.Stored.IsBinary()
			c.field(coll, f)
		}
	}
	switch {
	case c.plan.Dump != nil && coll.Into != "":
		c.fail(coll.Line, "%q: a dump has no copies: remove into", coll.Name)
	case c.plan.Dump != nil && coll.Filter != "":
		c.fail(coll.Line, "%q: a dump is read as a whole, without the server that would carry out a filter: remove filter", coll.Name)
	case c.plan.Dump != nil:
	case coll.Into != "" && len(c.plan.Filters()[coll.Name]) > 1, coll.Into != "" && coll.Filter != "":
		c.fail(coll.Line, "%q: a filter is for a conversion in place, and into copies the whole collection: remove one of them", coll.Name)
	case id && coll.Into == "":
		c.fail(coll.Line, "%q: values in _id cannot be converted in place: give the collection a name for a new one with into, or leave _id", coll.Name)
	case coll.Accepted && coll.Into == "":
		c.fail(coll.Line, "%q: accepted means nothing, because the collection has no into", coll.Name)
	case coll.Into != "" && !converted:
		c.fail(coll.Line, "%q: into is given, and no field is converted", coll.Name)
	case coll.Into != "" && c.plan.has(coll.Into):
		c.fail(coll.Line, "%q: the collection %q of into is one of the plan", coll.Name, coll.Into)
	case coll.Into != "" && c.into[coll.Into]:
		c.fail(coll.Line, "%q: another collection is converted into %q, too", coll.Name, coll.Into)
	}
	c.into[coll.Into] = true
}

// conversion returns what becomes of the values of a field.
func (p *Plan) conversion(f Field) (rule.Pair, error) {
	pair, _ := f.Decision.pair()
	pair.Fields = []string{f.Path}
	conv, err := rule.Compile([]kinds.Pair{pair})
	if err != nil {
		return rule.Pair{}, err
	}
	return conv[0], nil
}

// field checks a field that is converted.
func (c *checker) field(coll Collection, f Field) {
	fail := func(format string, args ...any) {
		c.fail(f.Line, "%q: %q: %s", coll.Name, f.Path, fmt.Sprintf(format, args...))
	}
	conv, err := c.plan.conversion(f)
	kind := conv.From
	pattern, bad := namable(f.Path)
	switch {
	case bad != nil:
		fail("%v: leave it", bad)
		return
	case err != nil:
		fail("%v", err)
		return
	case f.Stored != kind.Stored():
		fail("the values are %s, and %s is %s", f.Stored, kind.Name, kind.Stored())
		return
	}
	if o := coll.overlapping(f); o != "" {
		fail("it also matches %q, about which the decision is another one", o)
	}
	for _, o := range coll.Fields {
		document, in := strings.CutSuffix(o.Plain(), ".uuid")
		if o.converted() && in && f.Stored == kinds.GoStruct && pattern.MatchField(document) {
			fail("the values at %q are converted with the documents: leave them", o.Path)
		}
	}
	e, ok := f.In(kind.Name)
	var others []string
	for _, o := range f.Evidence {
		if o.By == decide.Evidence && o.Order != kind.Name {
			others = append(others, o.Order)
		}
	}
	what := "UUIDs"
	if kind.IsBinary() {
		what = kind.Name
	}
	switch {
	case !ok:
		fail("the plan has no evidence for %s: make it again", kind.Name)
	case e.By == decide.None && len(others) > 0:
		fail("the values are not %s but %s", kind.Name, strings.Join(others, " and "))
	case e.By == decide.None && !f.Trust:
		fail("nothing in the values tells that they are %s; if you know it, add trust: true", what)
	}
}

// namable returns the pattern that selects a field.
func namable(path string) (walk.Pattern, error) {
	p, err := walk.ParsePattern(path)
	if err != nil || path == Others {
		return walk.Pattern{}, errors.New("the field cannot be named by itself")
	}
	return p, nil
}

// InID reports whether a field is in _id.
func InID(path string) bool {
	top, _, _ := strings.Cut(Plain(path), ".")
	return top == "_id"
}
