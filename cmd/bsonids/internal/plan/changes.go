package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Changes describes how the plan is differs from the plan was, one sentence for each change. Comments, the
// layout and the time at which the plan was made are no changes.
func Changes(was, is *Plan) (changes []string) {
	add := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	if was.Database != is.Database {
		add("the database was %q and is %q", was.Database, is.Database)
	}
	if (was.Dump == nil) != (is.Dump == nil) || was.Dump != nil && *was.Dump != *is.Dump {
		add("the dump is another one")
	}
	if was.Part != is.Part {
		add("the part was %s and is %s", was.part(), is.part())
	}
	if was.To != is.To {
		add("the target was %s and is %s", was.To, is.To)
	}
	if !slices.Equal(was.Only, is.Only) {
		add("the plan was about %s and is about %s", was.about(), is.about())
	}
	for _, c := range was.Collections {
		if i := is.find(c.Entry()); i < 0 {
			add("the collection %s was removed", c.Entry())
		} else {
			c.changes(is.Collections[i], add)
		}
	}
	for _, c := range is.Collections {
		if was.find(c.Entry()) < 0 {
			add("the collection %s was added", c.Entry())
		}
	}
	for _, r := range was.References {
		i := slices.IndexFunc(is.References, r.same)
		switch {
		case i < 0:
			add("the reference between %q and %q was removed", r.Between[0], r.Between[1])
		case r.Accepted != is.References[i].Accepted:
			add("the reference between %q and %q: accepted was %v and is %v", r.Between[0], r.Between[1], r.Accepted, is.References[i].Accepted)
		case !slices.Equal(r.Outside, is.References[i].Outside):
			add("the reference between %q and %q: outside was [%s] and is [%s]", r.Between[0], r.Between[1], storedAs(r.Outside, ", "), storedAs(is.References[i].Outside, ", "))
		}
	}
	for _, r := range is.References {
		if !slices.ContainsFunc(was.References, r.same) {
			add("the reference between %q and %q was added", r.Between[0], r.Between[1])
		}
	}
	if made := *is; len(changes) == 0 {
		if made.Made = was.Made; made.Digest() != was.Digest() {
			add("the order of its collections, fields or references is another one")
		}
	}
	return changes
}

// about names the collections that the plan is about.
func (p *Plan) about() string {
	if len(p.Only) == 0 {
		return "all collections"
	}
	return quoteAll(p.Only)
}

// same reports whether o is the same reference, whichever end is first.
func (r Reference) same(o Reference) bool {
	if r.Between != o.Between { // the other end first
		o.Between[0], o.Between[1] = o.Between[1], o.Between[0]
		o.Fields = slices.Clone(o.Fields)
		slices.Reverse(o.Fields)
	}
	return r.Between == o.Between && slices.Equal(r.Fields, o.Fields)
}

// find returns the index of an entry, or -1.
func (p *Plan) find(e Entry) int {
	return slices.IndexFunc(p.Collections, func(c Collection) bool { return c.Entry() == e })
}

// has reports whether the plan has an entry of the collection.
func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.Collections, func(c Collection) bool { return c.Name == name })
}

// find returns the index of the field with the same values, or -1.
func (c Collection) find(f Field) int { return slices.IndexFunc(c.Fields, f.same) }

func (c Collection) changes(is Collection, add func(string, ...any)) {
	if c.UUID != is.UUID {
		add("%s: the uuid was %q and is %q", c.Entry(), c.UUID, is.UUID)
	}
	if c.Into != is.Into {
		add("%s: it was converted %s, and now %s", c.Entry(), c.where(), is.where())
	}
	if c.Guard != is.Guard {
		add("%s: the guard was %s and is %s", c.Entry(), cmp.Or(c.Guard, noGuard), cmp.Or(is.Guard, noGuard))
	}
	for _, f := range c.Fields {
		i := is.find(f)
		if i < 0 {
			add("%s: the field %s was removed", c.Entry(), f)
			continue
		}
		now := is.Fields[i]
		if f.Decision != now.Decision {
			add("%s: the decision about %s was %q and is %q", c.Entry(), f, f.Decision, now.Decision)
		}
		if f.Trust != now.Trust {
			add("%s: trust of %s was %v and is %v", c.Entry(), f, f.Trust, now.Trust)
		}
		if f.Path != now.Path || !slices.EqualFunc(f.Evidence, now.Evidence, Evidence.equal) {
			add("%s: the evidence of %s is another one", c.Entry(), f)
		}
	}
	for _, f := range is.Fields {
		if c.find(f) < 0 {
			add("%s: the field %s was added, with the decision %q", c.Entry(), f, f.Decision)
		}
	}
}

// equal reports whether e and o are written in the same way.
func (e Evidence) equal(o Evidence) bool { return e.yaml() == o.yaml() }

// where says where the collection is converted to.
func (c Collection) where() string { return where(c.Into) }

func where(into string) string {
	if into == "" {
		return "in place"
	}
	return fmt.Sprintf("into %q", into)
}

// FrozenError is the error of an edit of what was converted by the plan as it was.
type FrozenError struct{ Edits []string }

func (e *FrozenError) Error() string {
	return fmt.Sprintf("what is edited has converted values: %s; put this back, or restore the values first with bsonids undo", strings.Join(e.Edits, "; "))
}

// Edited is what becomes of the steps when a plan is edited.
type Edited struct {
	Changes []string // of the plan
	Steps   []Step   // in the order in which the steps of a collection are made
	New     []Step   // those of Steps about which nothing is decided
}

// edit returns what becomes of the steps of a plan that is under way, when it is edited. begun are the steps
// that may have converted values, and idle the others. The error is a [*FrozenError] if the edit is about
// values of steps that have begun.
func edit(was, is *Plan, begun, idle []Step) (Edited, error) {
	e := Edited{Changes: Changes(was, is), Steps: slices.Clone(begun)}
	edits := frozen(was, is, begun)
	for _, c := range is.Collections {
		for _, want := range is.steps(c) {
			e.want(want, begun, idle)
		}
	}
	for _, st := range e.New {
		i := slices.IndexFunc(begun, func(b Step) bool { return st.Again && b.alike(st) })
		for _, f := range st.Fields {
			if i >= 0 && InID(f) && !slices.Contains(begun[i].Fields, f) {
				edits = append(edits, fmt.Sprintf("%q: the field %q is in _id, by which %q has its documents", st.Collection, f, st.Into))
			}
		}
	}
	if len(edits) > 0 {
		return e, &FrozenError{edits}
	}
	return e, nil
}

// Groups returns the groups of the edited plan with the steps.
func (e *Edited) Groups(p *Plan) [][]Work { return p.groups(of(e.Steps)) }

// IsNew reports whether nothing is decided about the step.
func (e *Edited) IsNew(s Step) bool { return slices.ContainsFunc(e.New, s.equal) }

// want adds the steps that are missing for the fields of a step of the plan.
func (e *Edited) want(want Step, begun, idle []Step) {
	if want.Into != "" {
		e.copy(want, begun, idle)
		return
	}
	rest := want
	rest.Fields, rest.Trust = slices.Clone(want.Fields), slices.Clone(want.Trust)
	for _, b := range begun {
		if !b.alike(want) || b.Listed {
			continue
		}
		later := b // the values that the step has listed, of fields that are trusted now
		later.Listed, later.Of, later.Fields, later.Trust = true, b.Pass, nil, nil
		for _, t := range want.Trust {
			if slices.Contains(b.Fields, Plain(t)) && !slices.Contains(b.Trust, t) && !slices.ContainsFunc(begun, func(o Step) bool {
				return o.alike(b) && o.Listed && o.Of == b.Pass && slices.Contains(o.Trust, t)
			}) {
				later.Fields, later.Trust = append(later.Fields, Plain(t)), append(later.Trust, t)
			}
		}
		if len(later.Fields) > 0 {
			e.add(later, idle)
		}
		rest.Fields = slices.DeleteFunc(rest.Fields, func(f string) bool { return slices.Contains(b.Fields, f) })
		rest.Trust = slices.DeleteFunc(rest.Trust, func(t string) bool { return slices.Contains(b.Fields, Plain(t)) })
	}
	if len(rest.Fields) > 0 {
		e.add(rest, idle)
	}
}

// copy adds the step that makes a copy, if there is none. One that has begun is replaced by another one, which
// changes the same copy.
func (e *Edited) copy(want Step, begun, idle []Step) {
	i := slices.IndexFunc(begun, want.alike)
	if i < 0 {
		e.add(want, idle)
		return
	}
	b := begun[i]
	if slices.Equal(b.Fields, want.Fields) && slices.Equal(b.Trust, want.Trust) {
		return
	}
	e.Steps = slices.DeleteFunc(e.Steps, b.equal)
	want.Again, want.Of = true, b.Pass
	e.add(want, idle)
}

// add adds a step. The decision of an idle one that is the same remains.
func (e *Edited) add(s Step, idle []Step) {
	for _, o := range idle {
		if s.Pass = o.Pass; s.equal(o) {
			e.Steps = append(e.Steps, o)
			return
		}
	}
	e.New = append(e.New, s)
}

// alike reports whether both steps convert values of one collection in the same way.
func (s Step) alike(o Step) bool {
	return s.Entry() == o.Entry() && s.Into == o.Into && s.Part == o.Part && s.From == o.From && s.To == o.To
}

func (s Step) equal(o Step) bool {
	return s.alike(o) && s.Pass == o.Pass && s.Listed == o.Listed && s.Again == o.Again && s.Of == o.Of && slices.Equal(s.Fields, o.Fields) && slices.Equal(s.Trust, o.Trust)
}

// converts reports whether values of the field may have been converted by the step.
func (s Step) converts(entry Entry, f Field) bool {
	kind, _ := f.Decision.From()
	return s.Entry() == entry && s.From == kind && slices.Contains(s.Fields, f.Plain()) && (s.To == kinds.OfText) == f.Decision.ToText()
}

// frozen returns the edits of what steps have converted.
func frozen(was, is *Plan, begun []Step) (edits []string) {
	if len(begun) == 0 {
		return nil
	}
	add := func(format string, args ...any) { edits = append(edits, fmt.Sprintf(format, args...)) }
	if was.Database != is.Database {
		add("the database was %q and is %q", was.Database, is.Database)
	}
	if was.To != is.To {
		add("the target was %s and is %s", was.To, is.To)
	}
	for _, c := range was.Collections {
		has := func(f Field) bool {
			return slices.ContainsFunc(begun, func(s Step) bool { return s.converts(c.Entry(), f) })
		}
		if !slices.ContainsFunc(c.Fields, has) {
			continue
		}
		i := is.find(c.Entry())
		if i < 0 {
			add("the collection %s was removed", c.Entry())
			continue
		}
		now := is.Collections[i]
		if c.UUID != now.UUID {
			add("%s: the uuid was %q and is %q", c.Entry(), c.UUID, now.UUID)
		}
		if c.Into != now.Into {
			add("%s: it was converted %s, and now %s", c.Entry(), c.where(), now.where())
		}
		if c.Guard != "" && now.Guard == "" {
			add("%s: the guard was %s and is %s", c.Entry(), c.Guard, noGuard)
		}
		for _, f := range c.Fields {
			if has(f) {
				f.frozen(c.Entry(), now, func(trust string) bool {
					return slices.ContainsFunc(begun, func(s Step) bool { return s.converts(c.Entry(), f) && slices.Contains(s.Trust, trust) })
				}, add)
			}
		}
	}
	return edits
}

// frozen adds the edits of a field that has converted values. trusted reports whether values were converted
// because the field is trusted.
func (f Field) frozen(collection Entry, is Collection, trusted func(string) bool, add func(string, ...any)) {
	i := is.find(f)
	if i < 0 {
		add("%s: the field %s was removed", collection, f)
		return
	}
	now := is.Fields[i]
	switch {
	case f.Decision != now.Decision:
		add("%s: the decision about %s was %q and is %q", collection, f, f.Decision, now.Decision)
	case trusted(f.Path) && !now.Trust:
		add("%s: trust of %s was true and is false", collection, f)
	case f.Path != now.Path || !slices.EqualFunc(f.Evidence, now.Evidence, Evidence.equal):
		add("%s: the evidence of %s is another one", collection, f)
	}
}
