package plan

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Text returns the plan as YAML, with its comments.
func (p *Plan) Text() []byte { return []byte(strings.Join(p.mapping().lines(""), "\n") + "\n") }

// lines returns the lines of a mapping, of which first begins the first key.
func (m mapping) lines(first string) (out []string) {
	if m.flow {
		return []string{first + m.inline()}
	}
	if m.blank {
		out = append(out, "")
	}
	out = append(out, commentLines(len(strings.TrimSuffix(first, "- ")), m.comment)...)
	for _, k := range m.keys {
		if lines := k.lines(first); len(lines) > 0 {
			out = append(out, lines...)
			first = strings.Repeat(" ", len(first))
		}
	}
	return out
}

// lines returns the lines of a key, which begin with first. There are none if it is left out.
func (k key) lines(first string) (out []string) {
	if k.blank {
		out = append(out, "")
	}
	out = append(out, commentLines(len(first), k.comment)...)
	switch {
	case k.text != "":
		return append(out, first+k.name+": "+k.text)
	case len(k.list) == 0:
		return nil
	}
	out = append(out, first+k.name+":")
	for _, m := range k.list {
		out = append(out, m.lines(strings.Repeat(" ", len(first)+2)+"- ")...)
	}
	return out
}

// inline returns a mapping on one line.
func (m mapping) inline() string {
	var keys []string
	for _, k := range m.keys {
		if k.text != "" {
			keys = append(keys, k.name+": "+k.text)
		}
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// inline returns what a key has on one line.
func (k key) inline() string {
	var list []string
	for _, m := range k.list {
		list = append(list, m.inline())
	}
	if k.text == "" && len(list) > 0 {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return k.text
}

func commentLines(indent int, comment []string) (out []string) {
	for _, l := range comment {
		out = append(out, strings.Repeat(" ", indent)+strings.TrimSpace("# "+terminal.Cell(l)))
	}
	return out
}

// canonical returns the plan as YAML without comments.
func (p *Plan) canonical() string {
	lines := p.mapping().lines("")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "#") }), "\n")
}

// Digest returns a hash of what the plan says, without comments and layout.
func (p *Plan) Digest() string { return sumOf([]byte(p.canonical())) }

// Quote returns s as a YAML scalar on one line, of characters that a terminal shows. Text that is
// not UTF-8 becomes base64 with the tag !!binary.
func Quote(s string) string {
	if !utf8.ValidString(s) {
		return `!!binary "` + base64.StdEncoding.EncodeToString([]byte(s)) + `"`
	}
	return strconv.Quote(s) // YAML has the escapes of Go
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Quote(t)
	}
	return inlineOf(quoted)
}

// inlineOf returns a list on one line.
func inlineOf[T any](list []T) string {
	s := make([]string, len(list))
	for i, v := range list {
		s[i] = fmt.Sprint(v)
	}
	return "[" + strings.Join(s, ", ") + "]"
}
