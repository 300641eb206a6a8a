package plan

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// maxSize is the maximum size of a plan in bytes.
const maxSize = 64 << 20

// Read reads the plan in the file at path.
func Read(path string) (*Plan, error) {
	if err := files.Regular(path); err != nil { // a pipe may have no writer
		return nil, err
	}
	b, err := files.ReadAtMost(path, maxSize)
	if err != nil {
		return nil, err
	}
	return Parse(b)
}

// Parse parses a plan as [Plan.Text] writes it. Unknown and repeated keys, missing ones, wrong types,
// and another version of the format are errors, with the line.
func Parse(b []byte) (*Plan, error) {
	root, err := document(b)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	// The version is first, because another version may have other keys.
	if _, v := entry(root, "schemaVersion"); v != nil {
		r.version(v)
	}
	p := &Plan{}
	r.mapping(root, p.mapping())
	if p.Database == "" && p.Dump == nil {
		r.fail(root.Line, "the plan has no %q", "database")
	}
	for i, c := range p.Collections {
		if p.find(c.Entry()) < i {
			r.fail(c.Line, "the collection %s is listed twice", c.Entry())
		}
		for j, f := range c.Fields {
			if c.find(f) < j {
				r.fail(f.Line, "the field %s is listed twice", f)
			}
		}
	}
	for _, ref := range p.References {
		if ref.Between[0] == ref.Between[1] && (len(ref.Fields) != 2 || Plain(ref.Fields[0]) == Plain(ref.Fields[1])) {
			r.fail(ref.Line, "between must name two collections, or fields two of the one collection")
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

// document returns the root node of the only document in b.
func document(b []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(string(b)))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err == io.EOF {
		return nil, errors.New("not a plan: the file is empty")
	} else if err != nil {
		return nil, fmt.Errorf("not a plan: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("not a plan: the file is empty")
	}
	if err := d.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: the file has more than one document", more.Line)
	}
	return doc.Content[0], nil
}

// entry returns the key of a mapping with the name, and its value, or nil.
func entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// parseDecision returns the decision that s is in any letter case.
func parseDecision(s string) (Decision, error) {
	for _, d := range []Decision{Leave, List, Unknown} {
		if strings.EqualFold(s, string(d)) {
			return d, nil
		}
	}
	parts := decision.FindStringSubmatch(s)
	if parts == nil {
		return "", fmt.Errorf("must be leave, list, unknown, or convert from X, and is %q", s)
	}
	k, err := kinds.Parse(parts[1])
	switch k.Name {
	case kinds.Standard:
		err = errors.New("convert from standard: the values are standard already: leave them")
	case kinds.OfMalformed:
		err = errors.New("convert from malformed: the values are no UUIDs: list or leave them")
	}
	return Convert(k.Name), err
}

var decision = regexp.MustCompile(`(?i)^convert from (.+)$`)

// A reader reads the nodes of a YAML document. It keeps the first error, which has the line.
type reader struct{ err error }

func (r *reader) fail(line int, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
	}
}

// kindOf describes a node for an error.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which a plan may not have"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%q", n.Value)
}

// mapping reads each key. An unknown key, a key that occurs twice and a missing one that is required are errors. The
// keys need not be in order.
func (r *reader) mapping(n *yaml.Node, m mapping) {
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "%s must be a mapping, and is %s", m.what, kindOf(n))
		return
	}
	if n.Anchor != "" {
		r.fail(n.Line, "%s has an anchor, which a plan may not have", m.what)
	}
	if m.line != nil {
		*m.line = n.Line
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		name := r.text(k, "a key of "+m.what)
		at := slices.IndexFunc(m.keys, func(k key) bool { return k.name == name })
		switch {
		case r.err != nil:
		case seen[name]:
			r.fail(k.Line, "%s has %q twice", m.what, name)
		case v.Anchor != "":
			r.fail(v.Line, "%q has an anchor, which a plan may not have", name)
		case at < 0:
			r.fail(k.Line, "%s has an unknown key %q", m.what, name)
		default:
			m.keys[at].read(r, v)
		}
		seen[name] = true
	}
	for _, k := range m.keys {
		if k.required && !seen[k.name] {
			r.fail(n.Line, "%s has no %q", m.what, k.name)
		}
	}
}

// list calls f for each element.
func (r *reader) list(n *yaml.Node, what string, f func(v *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n.Line, "%s must be a list, and is %s", what, kindOf(n))
		return
	}
	for _, v := range n.Content {
		if r.err != nil {
			return
		}
		f(v)
	}
}

// scalar returns a value that has one of the tags of YAML.
func scalar[T any](r *reader, n *yaml.Node, what, of string, tags ...string) (v T) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) || n.Decode(&v) != nil {
		r.fail(n.Line, "%s must be %s, and is %s", what, of, kindOf(n))
	}
	return v
}

// text returns a string. A name that is not UTF-8 is written with the tag !!binary.
func (r *reader) text(n *yaml.Node, what string) string {
	return scalar[string](r, n, what, "text", "!!str", "!!binary")
}

func (r *reader) integer(n *yaml.Node, what string) int {
	return scalar[int](r, n, what, "a whole number", "!!int")
}

func (r *reader) version(n *yaml.Node) {
	if v := r.integer(n, "schemaVersion"); v != SchemaVersion {
		r.fail(n.Line, "the plan has schemaVersion %d, and this program reads %d", v, SchemaVersion)
	}
}
