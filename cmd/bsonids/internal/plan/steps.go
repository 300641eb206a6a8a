package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Step is one conversion of one collection.
type Step struct {
	kinds.Task // with the filter of the entry; the fields of its pairs are named
}

// Entry returns the key of the entry of the plan that the step is about.
func (s Step) Entry() Entry { return Entry{s.Collection, s.Filter} }

// Decisions returns the decisions about the fields of the pairs. all has those about all fields of the collection, by
// the names of the kinds. Values of which the subtype tells everything are decided at the time made.
func (s Step) Decisions(all map[string]decide.Decision, made time.Time) (decisions []decide.Decision) {
	for _, p := range s.Pairs {
		d := all[p.From]
		if k, err := kinds.Parse(p.From); err == nil && k.BySubtype() {
			d = decide.Decision{Subtype: k.Subtype, From: p.From, Made: made, BySubtype: true}
		}
		d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f decide.Field) bool { return !slices.Contains(p.Fields, Plain(f.Path)) })
		d.Trust(p.Trust)
		decisions = append(decisions, d)
	}
	return decisions
}

// Leaves says, for each field of which the conversion leaves values by the decisions about the pairs, how many, as the survey of the
// collection tells. It does not know which documents a server refuses.
func (s Step) Leaves(c survey.Collection, decisions []decide.Decision) (texts []string) {
	for i, p := range s.Pairs {
		if p.From == kinds.OfMalformed {
			for _, f := range c.Scan.Fields {
				if n := f.Counts.Malformed; n > 0 && slices.Contains(p.Fields, Plain(f.Path)) {
					texts = append(texts, fmt.Sprintf("%s: %d values are malformed", f.Path, n))
				}
			}
			continue
		}
		for _, d := range decisions[i].Fields {
			switch n := d.Distinct - d.Fits - uninformative(c, p.From, d.Path); {
			case d.Values == 0, d.Basis == decide.Symmetric, d.Trusted && len(d.Contradicted) == 0 && len(d.Against) == 0:
			case d.Basis == decide.None:
				texts = append(texts, fmt.Sprintf("%s: %d values: %s", d.Path, d.Values, d.Reason))
			case d.Trusted:
				texts = append(texts, d.Path+": the values that fit another order")
			case n > 0:
				texts = append(texts, fmt.Sprintf("%s: %d of %d distinct values do not show that they are %s", d.Path, n, d.Distinct, p.From))
			}
		}
	}
	return texts
}

// uninformative returns the number of distinct values of a field that are converted from a kind whatever they show.
func uninformative(c survey.Collection, kind, path string) (n int64) {
	k, err := kinds.Parse(kind)
	if err != nil {
		return 0
	}
	for _, s := range c.Scan.Fields {
		if Plain(s.Path) != Plain(path) {
			continue
		}
		for _, e := range s.Evidence {
			if kinds.StoredAs(e.Subtype) == k.Stored() {
				n += int64(e.Uninformative)
			}
		}
		for _, e := range s.Forms {
			if e.Form == string(k.Stored()) {
				n += int64(e.Uninformative)
			}
		}
	}
	return n
}

// Groups returns the steps in the order of the work. Those of one group are of collections that refer to each other,
// directly or by way of others. Those of one collection, of all its filters, are done one after the other.
func (p *Plan) Groups() [][]Step {
	var all []Step
	for _, c := range p.Collections {
		all = append(all, p.steps(c)...)
	}
	return p.groups(all)
}

// groups returns the groups of the steps that are of entries of the plan.
func (p *Plan) groups(steps []Step) (groups [][]Step) {
	joined := make(forest)
	for _, r := range p.References {
		joined.join(r.Between[0], r.Between[1])
	}
	of := make(map[string][]Step) // a collection
	for _, c := range p.Collections {
		for _, st := range steps {
			if st.Entry() == c.Entry() {
				of[c.Name] = append(of[c.Name], st)
			}
		}
	}
	at := make(map[string]int) // the group of a root
	for _, c := range p.Collections {
		if len(of[c.Name]) == 0 {
			continue
		}
		root := joined.root(c.Name)
		if _, ok := at[root]; !ok {
			at[root] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[root]] = append(groups[at[root]], of[c.Name]...)
		delete(of, c.Name)
	}
	return groups
}

// A forest joins names: those of one group have one root. It has the name above each that is no root.
type forest map[string]string

func (f forest) root(name string) string {
	for {
		above, ok := f[name]
		if !ok {
			return name
		}
		name = above
	}
}

// join joins the groups of two names, and reports whether they were different ones.
func (f forest) join(a, b string) bool {
	a, b = f.root(a), f.root(b)
	if a != b {
		f[a] = b
	}
	return a != b
}

// Steps returns all steps, in the order of the work.
func (p *Plan) Steps() []Step { return slices.Concat(p.Groups()...) }

// pair returns what the decision does with the values of a field. ok is false if they are neither converted nor listed.
func (d Decision) pair() (pair kinds.Pair, ok bool) {
	if d == List {
		return kinds.Pair{From: kinds.OfMalformed}, true
	}
	from, ok := d.From()
	return kinds.Pair{From: from}, ok
}

// steps returns the step of an entry, which has a pair for each decision to convert or to list, or none if there is no such
// decision.
func (p *Plan) steps(c Collection) []Step {
	by := make(map[Decision]*kinds.Pair)
	for _, f := range c.Fields {
		pair, ok := f.Decision.pair()
		if !ok {
			continue
		}
		if by[f.Decision] == nil {
			by[f.Decision] = &pair
		}
		of := by[f.Decision]
		of.Fields = append(of.Fields, f.Plain())
		if f.Trust {
			of.Trust = append(of.Trust, f.Path)
		}
	}
	if len(by) == 0 {
		return nil
	}
	s := Step{Task: kinds.Task{Collection: c.Name, Filter: c.Filter, Into: c.Into}}
	for _, d := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[d].Fields)
		slices.Sort(by[d].Trust)
		s.Pairs = append(s.Pairs, *by[d])
	}
	return []Step{s}
}

// FieldsOf returns the fields of the pairs whose values are converted.
func FieldsOf(pairs []kinds.Pair) (fields []string) {
	for _, p := range pairs {
		if p.From != kinds.OfMalformed {
			fields = append(fields, p.Fields...)
		}
	}
	return fields
}
