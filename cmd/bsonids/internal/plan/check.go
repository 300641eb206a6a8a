package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Others is the path of all fields beyond the number that are distinguished.
const Others = decide.Others

// Problem is a reason for which a plan cannot be applied.
type Problem struct {
	Line int // in the file; 0 if the plan was not read
	Text string
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// MayApply returns an error that names everything that is wrong with the plan.
func (p *Plan) MayApply() error {
	var texts []string
	for _, problem := range p.Check() {
		texts = append(texts, problem.String())
	}
	if len(texts) > 0 {
		return errors.New("cannot be applied: " + strings.Join(texts, "; "))
	}
	return nil
}

// Check returns why the plan cannot be applied, or nothing if it can.
func (p *Plan) Check() []Problem {
	c := checker{plan: p, names: make(map[string]bool), into: make(map[string]bool)}
	if p.Dump != nil && p.Part != "" {
		c.fail(0, "a dump is converted as a whole: remove part")
	}
	for _, coll := range p.Collections {
		c.names[coll.Name] = true
	}
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
	plan        *Plan
	names, into map[string]bool
	problems    []Problem
}

func (c *checker) fail(line int, format string, args ...any) {
	c.problems = append(c.problems, Problem{line, fmt.Sprintf(format, args...)})
}

func (c *checker) collection(coll Collection) {
	if len(c.plan.Only) > 0 && !slices.Contains(c.plan.Only, coll.Name) {
		c.fail(coll.Line, "%q: the plan is about %s only", coll.Name, quoteAll(c.plan.Only))
	}
	decisions := make(map[Decision]bool)
	id, merged := false, false
	for _, f := range coll.Fields {
		kind, ok := f.Decision.From()
		switch {
		case f.Decision == Unknown:
			c.fail(f.Line, "%q: the decision about %q (%s) is unknown", coll.Name, f.Path, f.Stored)
		case !ok && f.Trust:
			c.fail(f.Line, "%q: trust of %q means nothing, because the field is not converted", coll.Name, f.Path)
		case ok:
			decisions[f.Decision] = true
			id = id || InID(f.Path)
			merged = merged || InID(f.Path) && !f.Stored.IsBinary()
			c.field(coll, f, kind)
		}
	}
	switch {
	case c.plan.Dump != nil && coll.Into != "":
		c.fail(coll.Line, "%q: a dump has no copies: remove into", coll.Name)
	case c.plan.Dump != nil && coll.Filter != "":
		c.fail(coll.Line, "%q: a dump is read as a whole, without the server that would carry out a filter: remove filter", coll.Name)
	case c.plan.Dump != nil:
	case merged && c.plan.Part != "":
		c.fail(coll.Line, "%q: two parts may have documents that get the same _id, because UUIDs are written in several ways: convert _id with a plan without part", coll.Name)
	case coll.Into != "" && len(c.plan.Filters()[coll.Name]) > 1, coll.Into != "" && coll.Filter != "":
		c.fail(coll.Line, "%q: a filter is for a conversion in place, and into copies the whole collection: remove one of them", coll.Name)
	case id && coll.Into == "":
		c.fail(coll.Line, "%q: values in _id cannot be converted in place: give the collection a name for a new one with into, or leave _id", coll.Name)
	case coll.Into != "" && len(decisions) == 0:
		c.fail(coll.Line, "%q: into is given, and no field is converted", coll.Name)
	case coll.Into != "" && len(decisions) > 1:
		c.fail(coll.Line, "%q: all fields of a collection that is converted into a new one must be converted from the same representation: "+
			"leave the others, and convert them in place in the new one with another plan", coll.Name)
	case coll.Into != "" && c.names[coll.Into]:
		c.fail(coll.Line, "%q: the collection %q of into is one of the plan", coll.Name, coll.Into)
	case coll.Into != "" && c.into[coll.Into]:
		c.fail(coll.Line, "%q: another collection is converted into %q, too", coll.Name, coll.Into)
	}
	c.into[coll.Into] = true
	if coll.Guard != "" {
		c.guard(coll)
	}
	for _, o := range c.plan.Collections {
		if o.Name == coll.Name && o.Guard != coll.Guard && coll.Guard != "" {
			c.fail(coll.Line, "%q: the guard is %s here and %s with another filter: a collection has one validator", coll.Name, coll.Guard, cmp.Or(o.Guard, noGuard))
		}
	}
}

// guard checks a collection that is guarded.
func (c *checker) guard(coll Collection) {
	fail := func(line int, format string, args ...any) {
		c.fail(line, "%q: cannot be guarded: %s", coll.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case c.plan.Dump != nil:
		fail(coll.Line, "it is in a dump")
		return
	case c.plan.Part != "":
		fail(coll.Line, "this plan is about a part of the documents, and a validator is about all: remove guard, and guard the collection with another plan")
		return
	case coll.Into != "":
		fail(coll.Line, "it is copied, and the cutover refuses writes to the old collection")
		return
	}
	guarded := false
	for _, f := range coll.Fields {
		name, ok := f.Decision.From()
		if !ok {
			continue
		}
		guarded = true
		from, err := kinds.Parse(name)
		if err != nil {
			continue // it is said already
		}
		to, err := kinds.Parse(c.plan.to(f.Decision))
		if err != nil {
			continue
		}
		_, err = guard.ParseField(f.Path)
		switch {
		case from.Form == kinds.Struct:
			fail(f.Line, "%s: a validator does not tell Go structs from other documents", f.Path)
		case from.Subtype == to.Subtype:
			fail(f.Line, "%s: the old and the new values have subtype %d, and a validator cannot distinguish them", f.Path, to.Subtype)
		case err != nil:
			fail(f.Line, "%v", err)
		}
	}
	if !guarded {
		fail(coll.Line, "no field is converted")
	}
}

// field checks a field that is converted from the kind.
func (c *checker) field(coll Collection, f Field, name string) {
	fail := func(format string, args ...any) {
		c.fail(f.Line, "%q: %q: %s", coll.Name, f.Path, fmt.Sprintf(format, args...))
	}
	kind, err := kinds.Parse(name)
	if err != nil {
		fail("%v", err)
		return
	}
	target := c.plan.to(f.Decision)
	to, err := kinds.Parse(target)
	if err == nil {
		_, err = rule.NewConversion(kind, to, nil)
	}
	switch {
	case err != nil:
		fail("from %s to %s: %v", name, target, err)
		return
	case kind.Name != name:
		fail("the name is %s, in this spelling", kind.Name)
		return
	case f.Stored != kind.Stored():
		fail("the values are %s, and %s is %s", f.Stored, name, kind.Stored())
		return
	}
	if !kind.IsBinary() || !to.IsBinary() {
		c.forms(coll, f, fail)
	}
	pattern, err := namable(f.Path)
	if err != nil {
		fail("%v: leave it", err)
		return
	}
	if kind.BySubtype() {
		return // the subtype tells the order
	}
	e, ok := f.In(name)
	var others []string
	for _, o := range f.Evidence {
		if o.By == decide.Evidence && o.Order != name {
			others = append(others, o.Order)
		}
	}
	switch {
	case !ok:
		fail("the plan has no evidence for %s: make it again", name)
	case e.By == decide.None && len(others) > 0:
		fail("the values are not %s but %s", name, strings.Join(others, " and "))
	case e.By == decide.None && !f.Trust && !kind.IsBinary():
		fail("nothing in the values tells that they are UUIDs; if you know it, add trust: true")
	case e.By == decide.None && !f.Trust:
		fail("nothing in the values tells that they are %s; if you know it, add trust: true", name)
	}
	for _, o := range coll.Fields {
		if o.Stored == f.Stored && o.Decision != f.Decision && pattern.MatchField(o.Path) {
			fail("it also matches %q, about which the decision is another one", o.Path)
		}
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
