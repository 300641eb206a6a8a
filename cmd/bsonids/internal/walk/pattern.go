package walk

import (
	"bytes"
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

// Match reports whether p matches the field that the value belongs to. A name with dots is taken for
// several names, because AppendField writes both in the same way: items.id also matches the field
// "items.id" of a document. It is one name for *.
func (p Pattern) Match(path *Path) bool { return match(p.segments, path.segments) }

func match(names []string, path []segment) bool {
	for len(path) > 0 && path[0].array {
		path = path[1:]
	}
	if len(path) == 0 || len(names) == 0 {
		return len(path) == len(names)
	}
	if names[0] == "*" || names[0] == string(path[0].key) {
		if match(names[1:], path[1:]) {
			return true
		}
	}
	key := path[0].key
	for n := 0; n < len(names); n++ {
		part, rest, dotted := bytes.Cut(key, []byte{'.'})
		if names[n] != "*" && names[n] != string(part) {
			return false
		}
		if !dotted {
			return n > 0 && match(names[n+1:], path[1:])
		}
		key = rest
	}
	return false
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

// MatchDotted is like Match, for a path as Path.Dotted writes it: its numbers may be array positions.
func (p Pattern) MatchDotted(path string) bool {
	return matchDotted(p.segments, strings.Split(path, "."))
}

func matchDotted(names, path []string) bool {
	if len(path) == 0 {
		return len(names) == 0
	}
	if len(names) > 0 && (names[0] == "*" || names[0] == path[0]) && matchDotted(names[1:], path[1:]) {
		return true
	}
	position := path[0] != "" && strings.Trim(path[0], "0123456789") == ""
	return position && matchDotted(names, path[1:])
}

// Top returns the name at the top level of the document, or * for any name.
func (p Pattern) Top() string { return p.segments[0] }

// Deep reports whether p matches fields below the top level of the document.
func (p Pattern) Deep() bool { return len(p.segments) > 1 }

func (p Pattern) String() string { return strings.Join(p.segments, ".") }
