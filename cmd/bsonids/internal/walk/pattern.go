package walk

import (
	"fmt"
	"slices"
	"strings"
)

// Pattern matches fields by name. Array indexes are left out, and * matches any single field name.
// It is safe for concurrent use.
type Pattern struct{ segments []string }

// ParsePattern parses a name as AppendField writes it, with or without brackets: items[].id or
// items.id.
func ParsePattern(s string) (Pattern, error) {
	var p Pattern
	p.segments = strings.Split(strings.ReplaceAll(s, "[]", ""), ".")
	if slices.Contains(p.segments, "") {
		return Pattern{}, fmt.Errorf("invalid field path %q: empty name", s)
	}
	return p, nil
}

// Match reports whether p matches the field that the value belongs to.
func (p Pattern) Match(path *Path) bool {
	i := 0
	for _, s := range path.segments {
		if s.array {
			continue
		}
		if i == len(p.segments) || p.segments[i] != "*" && p.segments[i] != string(s.key) {
			return false
		}
		i++
	}
	return i == len(p.segments)
}

// MatchField is like Match, for a name as Path.AppendField writes it.
func (p Pattern) MatchField(field string) bool {
	names := strings.Split(strings.ReplaceAll(field, "[]", ""), ".")
	if len(names) != len(p.segments) {
		return false
	}
	for i, name := range names {
		if p.segments[i] != "*" && p.segments[i] != name {
			return false
		}
	}
	return true
}

// Top returns the name at the top level of the document, or * for any name.
func (p Pattern) Top() string { return p.segments[0] }

func (p Pattern) String() string { return strings.Join(p.segments, ".") }
