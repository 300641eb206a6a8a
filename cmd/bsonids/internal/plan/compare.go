package plan

import (
	"fmt"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Compare compares a plan with what the database contains now. problems are the reasons for which
// the plan no longer applies. warnings are differences that do not matter to the conversion. What decided
// steps convert is not compared: they may have changed it.
func Compare(p *Plan, s *survey.Survey, decided []Step) (problems, warnings []string) {
	return p.compare(observed(s), decided)
}

func (p *Plan) compare(observed []Observed, decided []Step) (problems, warnings []string) {
	c := comparison{to: p.To, decided: decided}
	at := make(map[Entry]Observed)
	for _, coll := range observed {
		at[coll.Entry()] = coll
	}
	for _, coll := range p.Collections {
		now, ok := at[coll.Entry()]
		delete(at, coll.Entry())
		switch {
		case coll.Into != "" && c.all(coll): // a cutover may have exchanged it
		case !ok && coll.left():
			c.warn("the collection %s is not there any more", coll.Entry())
		case !ok:
			c.fail("the collection %s is not there any more", coll.Entry())
		case coll.UUID != "" && now.UUID != coll.UUID:
			c.fail("%q is another collection of this name: it was dropped or renamed, and created again", coll.Name)
		default:
			c.collection(coll, now.Fields)
		}
	}
	for _, now := range observed {
		made := slices.ContainsFunc(decided, func(st Step) bool { return st.Into == now.Name }) || p.sharesCopy(now.Name)
		if _, ok := at[now.Entry()]; ok && !now.Kept && !made && c.relevant(now.Fields) != nil {
			c.fail("the collection %q appeared, with %s", now.Name, c.relevant(now.Fields))
		}
	}
	slices.Sort(c.problems)
	return c.problems, c.warnings
}

type comparison struct {
	to                 string
	decided            []Step
	problems, warnings []string
}

// is reports whether values of the field are decided, or written by a decided step.
func (c *comparison) is(entry Entry, f Field) bool {
	return slices.ContainsFunc(c.decided, func(st Step) bool {
		if st.Entry() != entry || !slices.Contains(st.Fields, f.Plain()) {
			return false
		}
		from, err := kinds.Parse(st.From)
		to, err2 := kinds.Parse(st.To)
		return err == nil && err2 == nil && (f.Stored == from.Stored() || f.Stored == to.Stored())
	})
}

// all reports whether all fields of the collection that are converted are decided.
func (c *comparison) all(coll Collection) bool {
	return !coll.left() && !slices.ContainsFunc(coll.Fields, func(f Field) bool {
		_, ok := f.Decision.From()
		return ok && !c.is(coll.Entry(), f)
	})
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
		if c.mayConvert(f.Stored) && !slices.ContainsFunc(planned.Fields, f.same) && !c.is(planned.Entry(), f) {
			c.fail("%s: the field %s is not in the plan", planned.Entry(), f)
		}
	}
	for _, f := range planned.Fields {
		kind, ok := f.Decision.From()
		i := slices.IndexFunc(now, f.same)
		switch {
		case c.is(planned.Entry(), f):
		case i < 0 && ok:
			c.fail("%s: the field %s has no values any more", planned.Entry(), f)
		case ok && now[i].odd.Reason != nil && now[i].unusable(planned.Into != "") >= now[i].values:
			c.fail("%s: the field %s cannot be converted: %v", planned.Entry(), f, now[i].odd.Reason)
		case i < 0 || !ok && !c.changed(f, now[i]):
		case !ok:
			c.warn("%s: the evidence of %s, which is left, has changed", planned.Entry(), f)
		case kind == kinds.Standard:
		default:
			was, _ := f.In(kind)
			is, _ := now[i].In(kind)
			if !was.Same(is) {
				c.fail("%s: the evidence of %s for %s was %s, and is %s", planned.Entry(), f, kind, was, is)
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
