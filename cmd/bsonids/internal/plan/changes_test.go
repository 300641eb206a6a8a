package plan

import (
	"cmp"
	"fmt"
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
