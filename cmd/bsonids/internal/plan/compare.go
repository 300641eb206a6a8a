package plan

import (
	"fmt"
	"iter"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Compare compares a plan with what the database contains now. problems are the reasons for which
// the plan no longer applies. warnings are differences that do not matter to the conversion. What decided
// steps convert is not compared: they may have changed it.
func Compare(p *Plan, s *survey.Survey, decided []Step) (problems, warnings []string) {
	return p.compare(observed(s), decided)
}

func (p *Plan) compare(observed []Collection, decided []Step) (problems, warnings []string) {
	c := comparison{plan: p, decided: decided}
	for coll, now := range pairs(p.Collections, observed, Collection.Entry) {
		switch {
		case coll == nil && (now.kept || c.made(now.Name)):
		case coll == nil:
			if i := slices.IndexFunc(now.Fields, c.mayConvert); i >= 0 {
				c.fail("the collection %q appeared, with %s", now.Name, now.Fields[i])
			}
		case coll.Into != "" && c.all(*coll): // a cutover may have exchanged it
		case now == nil && coll.left():
			c.warn("the collection %s is not there any more", coll.Entry())
		case now == nil:
			c.fail("the collection %s is not there any more", coll.Entry())
		case coll.UUID != "" && now.UUID != coll.UUID:
			c.fail("%q is another collection of this name: it was dropped or renamed, and created again", coll.Name)
		default:
			c.collection(*coll, *now)
		}
	}
	slices.Sort(c.problems)
	return c.problems, c.warnings
}

// pairs returns copies of the elements of was, each with that of is that has the same key, or nil, and then those that
// only is has.
func pairs[T any, K comparable](was, is []T, key func(T) K) iter.Seq2[*T, *T] {
	same := func(a, b T) bool { return key(a) == key(b) }
	return func(yield func(a, b *T) bool) {
		for _, a := range was {
			var b *T
			if i := slices.IndexFunc(is, func(t T) bool { return same(a, t) }); i >= 0 {
				b = &is[i]
			}
			if !yield(&a, b) {
				return
			}
		}
		for _, b := range is {
			if !slices.ContainsFunc(was, func(t T) bool { return same(t, b) }) && !yield(nil, &b) {
				return
			}
		}
	}
}

// Unaccepted returns the reasons for which a plan cannot be applied, because a cutover cannot put a copy in the place of a
// collection, and no person accepts it. Copies of decided steps do not count.
func Unaccepted(p *Plan, s *survey.Survey, decided []Step) (problems []string) {
	c := comparison{plan: p, decided: decided}
	for coll, now := range pairs(p.Collections, observed(s), Collection.Entry) {
		if coll != nil && now != nil && coll.Into != "" && !coll.Accepted && now.unexchangeable != "" && !c.all(*coll) {
			problems = append(problems, fmt.Sprintf("bsonids cutover cannot put a copy in the place of %q: %s; remove into, or accept it with accepted: true", coll.Name, now.unexchangeable))
		}
	}
	return problems
}

// A comparison compares a plan with a survey.
type comparison struct {
	plan               *Plan
	decided            []Step
	problems, warnings []string
}

// made reports whether a step has made the collection.
func (c *comparison) made(name string) bool {
	return slices.ContainsFunc(c.decided, func(st Step) bool { return st.Into == name })
}

// is reports whether values of the field are decided, or written by a decided step.
func (c *comparison) is(entry Entry, f Field) bool {
	return slices.ContainsFunc(c.decided, func(st Step) bool {
		return st.Entry() == entry && slices.ContainsFunc(st.Pairs, func(p kinds.Pair) bool {
			k, err := kinds.Parse(p.From)
			return err == nil && slices.Contains(p.Fields, f.Plain()) && (f.Stored == k.Stored() || f.Stored == kinds.Subtype4)
		})
	})
}

// all reports whether all fields of the collection that are converted are decided.
func (c *comparison) all(coll Collection) bool {
	return !coll.left() && !slices.ContainsFunc(coll.Fields, func(f Field) bool {
		return f.converted() && !c.is(coll.Entry(), f)
	})
}

func (c *comparison) fail(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *comparison) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// allows reports whether evidence shows nothing that e does not show: values may be gone, because they were converted or
// deleted, and nothing speaks against the decision.
func (e Evidence) allows(now Evidence) bool {
	among := func(is, was []int) bool {
		return !slices.ContainsFunc(is, func(v int) bool { return !slices.Contains(was, v) })
	}
	return (now.By == e.By || now.By == decide.None || now.By == decide.Symmetric) && among(now.Versions, e.Versions) && among(now.Digits, e.Digits) &&
		!slices.ContainsFunc(now.Against, func(o string) bool { return !slices.Contains(e.Against, o) })
}

// left reports whether nothing of the collection is converted.
func (c Collection) left() bool {
	return !slices.ContainsFunc(c.Fields, Field.converted)
}

// mayConvert reports whether values that are stored so may have to be converted, or a person has to know of them.
func (c *comparison) mayConvert(f Field) bool {
	return f.Stored == kinds.Subtype3 || f.Stored == kinds.Subtype0 || f.Stored == kinds.OfMalformed
}

func (c *comparison) collection(planned, now Collection) {
	for f, is := range pairs(planned.Fields, now.Fields, Field.key) {
		if f == nil {
			if c.mayConvert(*is) && !c.is(planned.Entry(), *is) {
				c.fail("%s: the field %s is not in the plan", planned.Entry(), is)
			}
			continue
		}
		kind, ok := f.Decision.From()
		switch {
		case c.is(planned.Entry(), *f):
		case is == nil && ok && len(f.Evidence) == 0: // a person has written it
			c.fail("%s: the field %s has no values", planned.Entry(), f)
		case is == nil && ok:
			c.warn("%s: the field %s has no values any more", planned.Entry(), f)
		case is == nil:
		case ok && is.odd.Reason != nil && is.unusable(planned.Into != "") >= is.values:
			c.fail("%s: the field %s cannot be converted: %v", planned.Entry(), f, is.odd.Reason)
		case ok && kind != kinds.Standard:
			was, _ := f.In(kind)
			now, _ := is.In(kind)
			switch {
			case was.String() == now.String():
			case was.allows(now):
				c.warn("%s: the evidence of %s for %s was %s and is %s", planned.Entry(), f, kind, was, now)
			default:
				c.fail("%s: the evidence of %s for %s was %s and is %s", planned.Entry(), f, kind, was, now)
			}
		case !ok && slices.ContainsFunc(f.Evidence, func(e Evidence) bool {
			now, ok := is.In(e.Order)
			return ok && e.String() != now.String()
		}):
			c.warn("%s: the evidence of %s, which is left, has changed", planned.Entry(), f)
		}
	}
}
