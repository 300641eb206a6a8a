package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrLayout is wrapped by the error of a plan whose lines a person has laid out in another way.
var ErrLayout = errors.New("the lines of the plan are laid out in another way than bsonids plan writes them")

// rewrite returns the text of a plan, of which only those lines are others that must be so that it is the plan
// want. That has all that the text has, and may have more in each list.
func rewrite(text []byte, want *Plan) ([]byte, error) {
	is, err := Parse(text)
	if err != nil {
		return nil, err
	}
	root, err := document(text)
	if err != nil {
		return nil, err
	}
	e := &edits{lines: strings.Split(string(text), "\n")}
	e.mapping(root, is.mapping(), want.mapping())
	out := e.apply()
	if is, err = Parse(out); err != nil || is.Digest() != want.Digest() {
		return nil, fmt.Errorf("%w: make a new plan in another directory, and take over what you want", ErrLayout)
	}
	return out, nil
}

// edits are edits of lines.
type edits struct {
	lines []string
	all   []lineEdit
}

// A lineEdit replaces the lines from first to last, which are numbered from 1. It inserts before first if last is less.
type lineEdit struct {
	first, last int
	by          []string
}

func (e *edits) replace(first, last int, by []string) {
	e.all = append(e.all, lineEdit{first, last, by})
}

func (e *edits) apply() []byte {
	slices.SortStableFunc(e.all, func(a, b lineEdit) int { return cmp.Compare(a.first, b.first) })
	for _, edit := range slices.Backward(e.all) { // so that the numbers of the lines before stay
		e.lines = slices.Replace(e.lines, edit.first-1, edit.last, edit.by...)
	}
	return []byte(strings.Join(e.lines, "\n"))
}

// mapping edits the lines of the mapping n.
func (e *edits) mapping(n *yaml.Node, is, want mapping) {
	at := n.Line // the last line of the key before
	for i, k := range want.keys {
		old := is.keys[i]
		name, value := entry(n, k.name)
		switch {
		case value == nil && k.inline() != old.inline() || value == nil && len(k.list) > 0:
			e.replace(at+1, at, k.lines(strings.Repeat(" ", n.Column-1)))
		case value == nil:
		case k.named && len(value.Content) > 0:
			e.list(value, old.list, k.list)
		case k.inline() != old.inline():
			k.blank = false
			e.replace(name.Line, last(value), k.lines(e.lines[name.Line-1][:name.Column-1]))
		}
		if value != nil {
			at = last(value)
		}
	}
}

// list edits the lines of a list of mappings, which has elements.
func (e *edits) list(n *yaml.Node, is, want []mapping) {
	for i, m := range is {
		e.mapping(n.Content[i], m, want[i])
	}
	for _, m := range want[len(is):] {
		e.replace(last(n)+1, last(n), m.lines(strings.Repeat(" ", max(n.Content[0].Column-3, 0))+"- "))
	}
}

// last returns the last line of a node.
func last(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, last(c))
	}
	return line
}
