package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Step is one conversion of one collection.
type Step struct {
	Collection string `json:"collection"`
	Filter     string `json:"filter,omitempty"` // as of the entry
	Into       string `json:"into,omitempty"`
	Part       string `json:"part,omitempty"` // as of the plan
	// Pairs are what is converted, all kinds of values in one pass. Their fields are named.
	Pairs []kinds.Pair `json:"pairs"`
	// Pass tells the conversions of one entry apart: fields that are decided later are converted
	// by another one. It is 0 for the first.
	Pass int `json:"pass,omitempty"`
	// Listed is set if only the values are converted that an earlier step has listed as skipped, and Again if
	// the step changes the copy of an earlier one. Of is the pass of that step.
	Listed bool `json:"listed,omitempty"`
	Again  bool `json:"again,omitempty"`
	Of     int  `json:"of,omitempty"`
}

// Entry returns the key of the entry of the plan that the step is about.
func (s Step) Entry() Entry { return Entry{s.Collection, s.Filter} }

// Beside reports whether s must not convert what o has made: both are of one collection, with different filters, or
// o makes values of a field that s would convert, because it tells values by their subtype.
func (s Step) Beside(o Step) bool {
	if s.Collection != o.Collection || s.Filter != o.Filter {
		return s.Collection == o.Collection
	}
	return s.Into == "" && !s.Listed && s.Pass != o.Pass && slices.ContainsFunc(s.Pairs, func(p kinds.Pair) bool {
		return slices.ContainsFunc(o.Pairs, func(made kinds.Pair) bool { return reads(p, made) })
	})
}

// reads reports whether values that the pair made makes look like those that p converts.
func reads(p, made kinds.Pair) bool {
	from, _ := p.Subtypes()
	_, to := made.Subtypes()
	return from == to && slices.ContainsFunc(p.Fields, func(a string) bool {
		return slices.ContainsFunc(made.Fields, func(b string) bool { return matches(a, b) || matches(b, a) })
	})
}

// matches reports whether a pattern matches a field.
func matches(pattern, field string) bool {
	p, err := walk.ParsePattern(pattern)
	return err == nil && p.MatchField(field)
}

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

// Work is the steps for one collection, of all its filters, which are done one after the other.
type Work struct {
	Collection string
	Steps      []Step
}

// Groups returns the collections that have something to convert, in the order of the work. Those of
// one group refer to each other, directly or by way of others.
func (p *Plan) Groups() [][]Work { return p.groups(p.steps) }

// groups returns the groups with the steps that of returns for each collection.
func (p *Plan) groups(of func(Collection) []Step) [][]Work {
	at := make(map[string]int, len(p.Collections))
	var root []int
	place := func(name string) int {
		if _, ok := at[name]; !ok {
			at[name] = len(root)
			root = append(root, len(root))
		}
		return at[name]
	}
	for _, c := range p.Collections {
		place(c.Name)
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for _, r := range p.References {
		// The root is the first collection of the group. One that the plan is not about connects others, and is last.
		a, b := find(place(r.Between[0])), find(place(r.Between[1]))
		root[max(a, b)] = min(a, b)
	}
	groups := make(map[int][]Work)
	var order []int
	for _, c := range p.Collections {
		steps := of(c)
		if len(steps) == 0 {
			continue
		}
		g := find(at[c.Name])
		if groups[g] == nil {
			order = append(order, g)
		}
		if i := slices.IndexFunc(groups[g], func(w Work) bool { return w.Collection == c.Name }); i >= 0 {
			groups[g][i].Steps = append(groups[g][i].Steps, steps...)
			continue
		}
		groups[g] = append(groups[g], Work{c.Name, steps})
	}
	out := make([][]Work, 0, len(order))
	for _, g := range order {
		out = append(out, groups[g])
	}
	return out
}

// Steps returns all steps, in the order of the work.
func (p *Plan) Steps() []Step { return stepsOf(p.Groups()) }

func stepsOf(groups [][]Work) []Step {
	var out []Step
	for _, g := range groups {
		for _, w := range g {
			out = append(out, w.Steps...)
		}
	}
	return out
}

// to returns the name of the kind that the decision converts to.
func (p *Plan) to(d Decision) string {
	if d.ToText() {
		return kinds.OfText
	}
	return p.To
}

// steps returns the step of an entry, which has a pair for each decision to convert, or none if nothing is
// converted.
func (p *Plan) steps(c Collection) []Step {
	by := make(map[Decision]*kinds.Pair)
	for _, f := range c.Fields {
		kind, ok := f.Decision.From()
		if !ok {
			continue
		}
		if by[f.Decision] == nil {
			by[f.Decision] = &kinds.Pair{From: kind, To: p.to(f.Decision)}
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
	s := Step{Collection: c.Name, Filter: c.Filter, Into: c.Into, Part: p.Part}
	for _, d := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[d].Fields)
		slices.Sort(by[d].Trust)
		s.Pairs = append(s.Pairs, *by[d])
	}
	return []Step{s}
}

// FieldsOf returns the fields of all pairs.
func FieldsOf(pairs []kinds.Pair) (fields []string) {
	for _, p := range pairs {
		fields = append(fields, p.Fields...)
	}
	return fields
}
