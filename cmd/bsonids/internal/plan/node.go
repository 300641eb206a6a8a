package plan

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A reader reads the nodes of a YAML document. It keeps the first error, which has the line.
type reader struct{ err error }

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
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

// mapping calls f for each key. An unknown key, for which f returns false, a key that occurs twice
// and a missing one of required are errors. The keys need not be in order.
func (r *reader) mapping(n *yaml.Node, what string, required []string, f func(key string, v *yaml.Node) bool) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping, and is %s", what, kindOf(n))
		return
	}
	if n.Anchor != "" {
		r.fail(n, "%s has an anchor, which a plan may not have", what)
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := r.text(k, "a key of "+what)
		switch {
		case r.err != nil:
		case seen[key]:
			r.fail(k, "%s has %q twice", what, key)
		case v.Anchor != "":
			r.fail(v, "%q has an anchor, which a plan may not have", key)
		case !f(key, v):
			r.fail(k, "%s has an unknown key %q", what, key)
		}
		seen[key] = true
	}
	for _, key := range required {
		if !seen[key] {
			r.fail(n, "%s has no %q", what, key)
		}
	}
}

// list calls f for each element.
func (r *reader) list(n *yaml.Node, what string, f func(v *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s must be a list, and is %s", what, kindOf(n))
		return
	}
	for _, v := range n.Content {
		if r.err != nil {
			return
		}
		f(v)
	}
}

// text returns a string. A name that is not UTF-8 is written with the tag !!binary.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!binary") {
		var s string
		if err := n.Decode(&s); err == nil {
			return s
		}
	}
	r.fail(n, "%s must be text, and is %s", what, kindOf(n))
	return ""
}

func (r *reader) texts(n *yaml.Node, what string) (out []string) {
	r.list(n, what, func(v *yaml.Node) { out = append(out, r.text(v, what)) })
	return out
}

func (r *reader) integer(n *yaml.Node, what string) (i int) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&i) != nil {
		r.fail(n, "%s must be a whole number, and is %s", what, kindOf(n))
	}
	return i
}

func (r *reader) boolean(n *yaml.Node, what string) (b bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		r.fail(n, "%s must be true or false, and is %s", what, kindOf(n))
	}
	return b
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
