package plan

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Changes describes how the plan is differs from the plan was, one sentence for each change. Comments, the
// layout and the time at which the plan was made are no changes.
func Changes(was, is *Plan) []string {
	out := was.mapping().changes(is.mapping(), "")
	if made := *is; len(out) == 0 {
		if made.Made = was.Made; made.Digest() != was.Digest() {
			out = []string{"the order of its collections, fields or references is another one"}
		}
	}
	return out
}

// changes describes how m differs from is. of begins each sentence.
func (m mapping) changes(is mapping, of string) (out []string) {
	add := func(format string, args ...any) { out = append(out, of+fmt.Sprintf(format, args...)) }
	for i, k := range m.keys {
		if a, b := k.inline(), is.keys[i].inline(); !k.named && a != b && k.name != "made" {
			add("%s was %s and is %s", k.name, cmp.Or(a, "none"), cmp.Or(b, "none"))
		}
		if !k.named {
			continue
		}
		for a, b := range pairs(k.list, is.keys[i].list, func(m mapping) string { return m.id }) {
			switch {
			case b == nil:
				add("%s was removed", a.name)
			case a == nil:
				add("%s was added", b.name)
			default:
				out = append(out, a.changes(*b, of+a.name+": ")...)
			}
		}
	}
	return out
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
		for _, f := range FieldsOf(st.Pairs) {
			if i >= 0 && InID(f) && !slices.Contains(FieldsOf(begun[i].Pairs), f) {
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
func (e *Edited) Groups(p *Plan) [][]Step { return p.groups(e.Steps) }

// IsNew reports whether nothing is decided about the step.
func (e *Edited) IsNew(s Step) bool { return slices.ContainsFunc(e.New, s.equal) }

// want adds the steps that are missing for the fields of a step of the plan.
func (e *Edited) want(want Step, begun, idle []Step) {
	if want.Into != "" {
		e.copy(want, begun, idle)
		return
	}
	rest := want
	for _, b := range begun {
		if !b.alike(want) || b.Listed {
			continue
		}
		later := b // the values that the step has listed, of fields that are trusted now
		later.Listed, later.Of, later.Pairs = true, b.Pass, nil
		var left []kinds.Pair
		for _, p := range rest.Pairs {
			later.Pairs = append(later.Pairs, only(p, func(field string) bool {
				trusted := func(o Step) bool {
					return slices.ContainsFunc(o.like(p).Trust, func(t string) bool { return Plain(t) == field })
				}
				return b.has(p, field) && trusted(want) && !trusted(b) &&
					!slices.ContainsFunc(begun, func(o Step) bool { return o.alike(b) && o.Listed && o.Of == b.Pass && trusted(o) })
			})...)
			left = append(left, only(p, func(field string) bool { return !b.has(p, field) })...)
		}
		if len(later.Pairs) > 0 {
			e.add(later, idle)
		}
		rest.Pairs = left
	}
	if len(rest.Pairs) > 0 {
		e.add(rest, idle)
	}
}

// only returns the pair with those of its fields, without brackets, for which is is true, or nothing if there is none.
func only(p kinds.Pair, is func(field string) bool) []kinds.Pair {
	p.Fields = slices.DeleteFunc(slices.Clone(p.Fields), func(f string) bool { return !is(f) })
	p.Trust = slices.DeleteFunc(slices.Clone(p.Trust), func(t string) bool { return !is(Plain(t)) })
	if len(p.Fields) == 0 {
		return nil
	}
	return []kinds.Pair{p}
}

// like returns the pair of the step that converts from the same kind to the same one as p.
func (s Step) like(p kinds.Pair) (of kinds.Pair) {
	if i := slices.IndexFunc(s.Pairs, p.Alike); i >= 0 {
		of = s.Pairs[i]
	}
	return of
}

// has reports whether the step converts the field as the pair.
func (s Step) has(p kinds.Pair, field string) bool { return slices.Contains(s.like(p).Fields, field) }

// copy adds the step that makes a copy, if there is none. One that has begun is replaced by another one, which
// changes the same copy.
func (e *Edited) copy(want Step, begun, idle []Step) {
	i := slices.IndexFunc(begun, want.alike)
	if i < 0 {
		e.add(want, idle)
		return
	}
	b := begun[i]
	if slices.EqualFunc(b.Pairs, want.Pairs, kinds.Pair.Equal) {
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

// alike reports whether both steps are about the same documents, and convert them to the same place.
func (s Step) alike(o Step) bool {
	return s.Entry() == o.Entry() && s.Into == o.Into
}

func (s Step) equal(o Step) bool {
	return s.alike(o) && s.Pass == o.Pass && s.Listed == o.Listed && s.Again == o.Again && s.Of == o.Of && slices.EqualFunc(s.Pairs, o.Pairs, kinds.Pair.Equal)
}

// frozen returns the edits of what steps have converted.
func frozen(was, is *Plan, begun []Step) []string {
	if len(begun) == 0 {
		return nil
	}
	before, after := &Plan{Database: was.Database}, &Plan{Database: is.Database}
	for c, now := range pairs(was.Collections, is.Collections, Collection.Entry) {
		if c == nil {
			continue
		}
		old, edited := *c, Collection{}
		if now != nil {
			edited = *now
		}
		old.Accepted = edited.Accepted
		old.Fields, edited.Fields = nil, nil
		for _, f := range c.Fields {
			pair, _ := f.Decision.pair()
			converted, trusted := false, false
			for _, st := range begun {
				if st.Entry() == c.Entry() && f.converted() {
					converted, trusted = converted || st.has(pair, f.Plain()), trusted || slices.Contains(st.like(pair).Trust, f.Path)
				}
			}
			if !converted {
				continue
			}
			old.Fields = append(old.Fields, f)
			if now == nil || now.find(f) < 0 {
				continue
			}
			is := now.Fields[now.find(f)]
			if is.Trust || !trusted {
				is.Trust = f.Trust
			}
			edited.Fields = append(edited.Fields, is)
		}
		if len(old.Fields) > 0 {
			before.Collections = append(before.Collections, old)
			if now != nil {
				after.Collections = append(after.Collections, edited)
			}
		}
	}
	return Changes(before, after)
}
