package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Divide makes the plan one about a part of the documents of each collection, such as 2/8.
func (p *Plan) Divide(part string) {
	p.Part = part
	p.Comment = append(p.Comment, "", fmt.Sprintf("This plan is about part %s of the documents of each collection: a hash of _id assigns each document to a part.", part),
		"The values below are those of all documents. The other parts need plans with the same decisions: bsonids plan --like.")
}

// Like takes the decisions of other over into the plan that a survey suggests: those about fields, with trust, the
// new collections, the references and which of them are accepted, and the order of the work. What other does not have
// becomes [Unknown]. notes say what that is, and what differs.
//
// A plan about a part also takes the evidence over, and what the survey has not found: other parts may have converted
// it already. [Compare] finds out whether they have.
func (p *Plan) Like(other *Plan) (notes []string) {
	l := &like{comparison: comparison{to: p.To}, plan: p, other: other}
	copied := func(name string) bool { return slices.Contains(other.Targets(), name) && !other.has(name) }
	p.Collections = slices.DeleteFunc(p.Collections, func(c Collection) bool { return copied(c.Name) })
	p.References = slices.DeleteFunc(p.References, func(r Reference) bool { return copied(r.Between[0]) || copied(r.Between[1]) })
	for i := range p.Collections {
		l.collection(&p.Collections[i])
	}
	for _, o := range other.Collections {
		if p.find(o.Entry()) < 0 {
			l.note("%s: only the other plan has the collection: it is gone, or has no UUIDs here", o.Entry())
			if p.Part != "" {
				o.Guard = ""
				p.Collections = append(p.Collections, o)
			}
		}
	}
	slices.SortStableFunc(p.Collections, func(a, b Collection) int { return cmp.Compare(l.place(a), l.place(b)) })
	l.references()
	slices.Sort(l.notes)
	return l.notes
}

// like takes decisions over.
type like struct {
	comparison
	plan, other *Plan
	notes       []string
}

func (l *like) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// place returns the place of a collection in the other plan; those that it does not have are last.
func (l *like) place(c Collection) int {
	if i := l.other.find(c.Entry()); i >= 0 {
		return i
	}
	return len(l.other.Collections)
}

func (l *like) collection(c *Collection) {
	i := l.other.find(c.Entry())
	if i < 0 {
		c.Into = ""
		l.undecided(c.Fields)
		l.note("%s: the other plan does not have the collection", c.Entry())
		return
	}
	o := l.other.Collections[i]
	c.Into = o.Into
	if c.UUID != o.UUID {
		l.note("%s: the other plan is about another collection of this name", c.Entry())
	}
	if o.Guard != "" {
		l.note("%s: the guard %s of the other plan is not taken over", c.Entry(), o.Guard)
	}
	for j := range c.Fields {
		f := &c.Fields[j]
		k := o.find(*f)
		if k < 0 {
			l.undecided(c.Fields[j : j+1])
			l.note("%s: the other plan does not have the field %s", c.Entry(), f)
			continue
		}
		was := o.Fields[k]
		if f.Decision != was.Decision || f.Trust != was.Trust {
			f.Comment = append(f.Comment, fmt.Sprintf("the survey suggests: %s", f.Decision))
		}
		f.Decision, f.Trust = was.Decision, was.Trust
		if !slices.EqualFunc(f.Evidence, was.Evidence, Evidence.equal) {
			l.note("%s: the evidence of %s is %s, and %s in the other plan", c.Entry(), f, evidences(f.Evidence), evidences(was.Evidence))
			if l.plan.Part != "" {
				f.Evidence = was.Evidence
			}
		}
	}
	for _, f := range o.Fields {
		if c.find(f) < 0 {
			l.note("%s: only the other plan has the field %s: it has no values here", c.Entry(), f)
			if l.plan.Part != "" {
				c.Fields = append(c.Fields, f)
			}
		}
	}
}

// evidences describes the evidence of a field.
func evidences(all []Evidence) string {
	var s []string
	for _, e := range all {
		s = append(s, e.yaml())
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// references takes over which references there are. A person may have removed one from the other plan.
func (l *like) references() {
	l.plan.References = slices.DeleteFunc(l.plan.References, func(r Reference) bool {
		return !slices.ContainsFunc(l.other.References, r.same) && l.other.knows(r)
	})
	for i := range l.plan.References {
		r := &l.plan.References[i]
		if j := slices.IndexFunc(l.other.References, r.same); j >= 0 {
			r.Accepted = l.other.References[j].Accepted
			continue
		}
		l.note("the other plan does not have the reference between %q and %q", r.Between[0], r.Between[1])
	}
	for _, r := range l.other.References {
		if !slices.ContainsFunc(l.plan.References, r.same) {
			l.plan.References = append(l.plan.References, r)
		}
	}
}
