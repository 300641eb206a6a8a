package plan

import (
	"fmt"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Compare compares a plan with what the database contains now. problems are the reasons for which
// the plan no longer applies. warnings are differences that do not matter to the conversion.
func Compare(p *Plan, s *survey.Survey) (problems, warnings []string) {
	c := comparison{to: p.To}
	at := make(map[string]survey.Collection)
	for _, coll := range s.Collections {
		at[coll.Name] = coll
	}
	for _, coll := range p.Collections {
		now, ok := at[coll.Name]
		delete(at, coll.Name)
		switch {
		case !ok && coll.left():
			c.warn("the collection %q is not there any more", coll.Name)
		case !ok:
			c.fail("the collection %q is not there any more", coll.Name)
		case coll.UUID != "" && now.UUID != coll.UUID:
			c.fail("%q is another collection of this name: it was dropped or renamed, and created again", coll.Name)
		default:
			c.collection(coll, Fields(now))
		}
	}
	for _, now := range s.Collections {
		if _, ok := at[now.Name]; ok && now.Kept == "" && c.relevant(Fields(now)) != nil {
			c.fail("the collection %q appeared, with %s", now.Name, c.relevant(Fields(now)))
		}
	}
	slices.Sort(c.problems)
	return c.problems, c.warnings
}

type comparison struct {
	to                 string
	problems, warnings []string
}

func (c *comparison) fail(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *comparison) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// left reports whether nothing of the collection is converted.
func (c Collection) left() bool {
	return !slices.ContainsFunc(c.Fields, func(f Field) bool {
		_, ok := f.Decision.From()
		return ok
	})
}

// same reports whether o is about the same values as f.
func (f Field) same(o Field) bool { return f.Plain() == o.Plain() && f.Stored == o.Stored }

// relevant returns the first field that a plan may convert, or nil.
func (c *comparison) relevant(fields []Field) *Field {
	for _, f := range fields {
		if c.mayConvert(f.Stored) {
			return &f
		}
	}
	return nil
}

func (f Field) String() string { return fmt.Sprintf("%q (%s)", f.Path, f.Stored) }

// mayConvert reports whether values that are stored so may have to be converted.
func (c *comparison) mayConvert(s kinds.Stored) bool {
	return s == kinds.Subtype3 || s == kinds.Subtype0 || s == kinds.Subtype4 && c.to != kinds.Standard
}

func (c *comparison) collection(planned Collection, now []Field) {
	for _, f := range now {
		if c.mayConvert(f.Stored) && !slices.ContainsFunc(planned.Fields, f.same) {
			c.fail("%q: the field %s is not in the plan", planned.Name, f)
		}
	}
	for _, f := range planned.Fields {
		kind, ok := f.Decision.From()
		i := slices.IndexFunc(now, f.same)
		switch {
		case i < 0 && ok:
			c.fail("%q: the field %s has no values any more", planned.Name, f)
		case ok && now[i].odd.Reason != nil && now[i].unusable(planned.Into != "") >= now[i].values:
			c.fail("%q: the field %s cannot be converted: %v", planned.Name, f, now[i].odd.Reason)
		case i < 0 || !ok && !c.changed(f, now[i]):
		case !ok:
			c.warn("%q: the evidence of %s, which is left, has changed", planned.Name, f)
		case kind == kinds.Standard:
		default:
			was, _ := f.In(kind)
			is, _ := now[i].In(kind)
			if !was.Same(is) {
				c.fail("%q: the evidence of %s for %s was %s, and is %s", planned.Name, f, kind, was, is)
			}
		}
	}
}

// changed reports whether the evidence for any order has changed.
func (c *comparison) changed(f, now Field) bool {
	return slices.ContainsFunc(f.Evidence, func(e Evidence) bool {
		is, ok := now.In(e.Order)
		return ok && !e.Same(is)
	})
}

// Targets returns the new collections that the plan makes.
func (p *Plan) Targets() []string {
	var out []string
	for _, c := range p.Collections {
		if c.Into != "" {
			out = append(out, c.Into)
		}
	}
	return out
}
