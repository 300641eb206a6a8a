package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// FrozenError is the error of an edit of what was converted by the plan as it was.
type FrozenError struct{ Edits []string }

func (e *FrozenError) Error() string {
	return fmt.Sprintf("what is edited has converted values: %s; put this back, or restore the values first with bsonids undo", strings.Join(e.Edits, "; "))
}

// Frozen returns how the plan differs from what was converted by it, which the record has: an entry or a field that it does
// not convert any more, or not in this way, and trust that is taken back.
func (p *Plan) Frozen(converted []kinds.Task) (edits []string) {
	for _, t := range converted {
		of := Entry{t.Collection, t.Filter}
		i := p.find(of)
		if i < 0 {
			edits = append(edits, fmt.Sprintf("the collection %s is not in the plan any more", of))
			continue
		}
		c := p.Collections[i]
		if c.Into != t.Into {
			edits = append(edits, fmt.Sprintf("the collection %s: into was %s and is %s", of, orNone(t.Into), orNone(c.Into)))
			continue
		}
		for _, pair := range t.Pairs {
			for _, field := range pair.Fields {
				if edit := c.edit(pair, field); edit != "" {
					edits = append(edits, fmt.Sprintf("the collection %s: %s", of, edit))
				}
			}
		}
	}
	slices.Sort(edits)
	return slices.Compact(edits)
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return Quote(name)
}

// edit returns how the entry differs from a pair that has converted a field, or "".
func (c Collection) edit(pair kinds.Pair, field string) string {
	if pair.From == kinds.OfMalformed { // which converts nothing
		return ""
	}
	trusted := slices.ContainsFunc(pair.Trust, func(t string) bool { return Plain(t) == field })
	was := ""
	for _, f := range c.Fields {
		if f.Plain() != field || !storedAs(f.Stored, pair.From) {
			continue
		}
		switch kind, _ := f.Decision.From(); {
		case kind != pair.From:
			was = fmt.Sprintf("the field %s: decision was %s and is %s", f, Convert(pair.From), f.Decision)
		case trusted && !f.Trust:
			was = fmt.Sprintf("the field %s: trust was true and is none", f)
		default:
			return ""
		}
	}
	if was == "" {
		was = fmt.Sprintf("the field %q, %s, is not in the plan any more", field, Convert(pair.From))
	}
	return was
}

// storedAs reports whether values that are stored so may be of the kind.
func storedAs(s kinds.Stored, kind string) bool {
	return slices.ContainsFunc(s.Kinds(), func(k kinds.Kind) bool { return k.Name == kind })
}

// Clash returns a field that a step converts from another kind than another conversion of the collection has, of values that
// are stored in the same way. It is empty if there is none.
func (s Step) Clash(converted kinds.Task) (field, kind, was string) {
	for _, p := range s.Pairs {
		for _, q := range converted.Pairs {
			if p.From == q.From || p.From == kinds.OfMalformed || q.From == kinds.OfMalformed || !alike(p.From, q.From) {
				continue
			}
			for _, f := range p.Fields {
				if slices.ContainsFunc(q.Fields, func(g string) bool { return matches(f, g) || matches(g, f) }) {
					return f, p.From, q.From
				}
			}
		}
	}
	return "", "", ""
}

// alike reports whether values of two kinds are stored in the same way.
func alike(a, b string) bool {
	k, err := kinds.Parse(a)
	o, other := kinds.Parse(b)
	return err == nil && other == nil && k.Form == o.Form && k.Subtype == o.Subtype
}

// matches reports whether a pattern matches a field.
func matches(pattern, field string) bool {
	p, err := walk.ParsePattern(pattern)
	return err == nil && (pattern == field || p.MatchField(field))
}
