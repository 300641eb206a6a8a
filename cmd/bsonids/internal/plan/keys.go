package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A mapping is a part of a plan as it is in the file: its keys, in the order in which they are written. What is
// read, written and compared follows from it.
type mapping struct {
	what    string // for errors
	name    string // of this one, for changes; id is the same for what is the same in two plans
	id      string
	keys    []key
	comment []string
	line    *int // where its line in the file goes, or nil
	blank   bool // an empty line is before it
	flow    bool // it is on one line
}

// A key is one of a mapping.
type key struct {
	name     string
	required bool
	read     func(r *reader, n *yaml.Node)
	text     string    // on one line; empty if the key is left out
	list     []mapping // instead of text, each on lines of its own
	named    bool      // the mappings of the list have names
	comment  []string
	blank    bool
}

func (p *Plan) mapping() mapping {
	dump := key{name: "dump", read: func(r *reader, n *yaml.Node) {
		p.Dump = &Dump{}
		r.mapping(n, p.Dump.mapping())
	}}
	if p.Dump != nil {
		dump.text = p.Dump.mapping().inline()
	}
	collections := list("collections", true, "[]", &p.Collections)
	collections.blank = len(p.Collections) > 0
	references := list("references", false, "[]", &p.References)
	references.comment, references.blank = p.ReferencesComment, true
	definitions := list("definitions", false, "[]", &p.Definitions)
	definitions.comment, definitions.blank = definitionsComment, true
	if len(p.Definitions) == 0 {
		definitions.text, definitions.comment = "", nil
	}
	return mapping{what: "the plan", comment: p.Comment, keys: []key{
		{name: "schemaVersion", required: true, text: strconv.Itoa(SchemaVersion), read: (*reader).version},
		text("database", false, &p.Database),
		dump,
		text("migration", false, &p.Migration),
		{name: "made", required: true, text: p.Made.UTC().Format(time.RFC3339), read: func(r *reader, n *yaml.Node) {
			p.Made = scalar[time.Time](r, n, "made", "a time such as 2026-01-31T12:00:00Z", "!!timestamp").UTC()
		}},
		texts("only", &p.Only),
		collections,
		references,
		definitions,
	}}
}

func (d *Dump) mapping() mapping {
	return mapping{what: "the dump", flow: true, keys: []key{
		text("path", true, &d.Path), text("collection", false, &d.Collection), text("digest", true, &d.Digest), text("evidence", true, &d.Evidence),
	}}
}

func (c *Collection) mapping() mapping {
	filter := parsed("filter", false, &c.Filter, func(s string) (string, error) {
		_, filter, err := convert.ParseFilter(s)
		return filter, err
	})
	if c.Filter != "" {
		filter.text = Quote(c.Filter)
	}
	return mapping{what: "a collection", name: "the collection " + c.Entry().String(), id: c.Entry().String(), comment: c.Comment, line: &c.Line, blank: true, keys: []key{
		text("name", true, &c.Name), text("uuid", false, &c.UUID), filter, text("into", false, &c.Into), boolean("accepted", &c.Accepted), list("fields", true, "[]", &c.Fields),
	}}
}

func (f *Field) mapping() mapping {
	return mapping{what: "a field", name: "the field " + f.String(), id: fmt.Sprintf("%q %s", f.Plain(), f.Stored), comment: f.Comment, line: &f.Line, keys: []key{
		text("path", true, &f.Path),
		word("stored", true, &f.Stored, kinds.AllStored()...),
		parsed("decision", true, &f.Decision, parseDecision),
		boolean("trust", &f.Trust),
		list("evidence", false, "", &f.Evidence),
	}}
}

func (e *Evidence) mapping() mapping {
	return mapping{what: "evidence", flow: true, keys: []key{
		parsed("order", true, &e.Order, func(s string) (string, error) {
			k, err := kinds.Parse(s)
			return k.Name, err
		}),
		word("by", true, &e.By, string(decide.Evidence), string(decide.Symmetric), string(decide.Equality), string(decide.None)),
		versions("versions", &e.Versions), versions("digits", &e.Digits), texts("against", &e.Against),
	}}
}

func (ref *Reference) mapping() mapping {
	two := func(name string, is []string, set func(names []string)) key {
		var names []string
		k := texts(name, &names)
		read := k.read
		k.read = func(r *reader, n *yaml.Node) {
			if read(r, n); r.err == nil && len(names) != 2 {
				r.fail(n.Line, "%s must have two names, one for each collection", name)
			}
			set(names)
		}
		if len(is) > 0 {
			k.text = quoteAll(is)
		}
		return k
	}
	between := two("between", ref.Between[:], func(names []string) { copy(ref.Between[:], names) })
	between.required = true
	return mapping{what: "a reference", name: ref.String(), id: ref.String(), comment: ref.Comment, line: &ref.Line, keys: []key{
		between,
		two("fields", ref.Fields, func(names []string) { ref.Fields = names }),
		listed("outside", &ref.Outside, inlineOf(ref.Outside), func(r *reader, n *yaml.Node) kinds.Stored {
			var s kinds.Stored
			word("outside", true, &s, kinds.AllStored()...).read(r, n)
			return s
		}),
		boolean("accepted", &ref.Accepted),
	}}
}

func (d *Definition) mapping() mapping {
	return mapping{what: "a definition", name: "the " + d.Of, id: d.Of + " " + d.Is, comment: d.Comment, line: &d.Line, keys: []key{
		text("of", true, &d.Of), text("is", true, &d.Is), boolean("accepted", &d.Accepted),
	}}
}

// text returns a key whose value is any text. One that is not required is not empty.
func text(name string, required bool, of *string) key {
	k := parsed(name, required, of, func(s string) (string, error) { return s, nil })
	if required || *of != "" {
		k.text = Quote(*of)
	}
	return k
}

// parsed returns a key whose value is text that parse understands, in the spelling that parse returns. One that is
// not required is not empty.
func parsed[T ~string](name string, required bool, of *T, parse func(string) (T, error)) key {
	return key{name: name, required: required, text: string(*of), read: func(r *reader, n *yaml.Node) {
		s := r.text(n, name)
		is, err := parse(s)
		switch {
		case s == "" && !required:
			r.fail(n.Line, "%s is empty: remove it", name)
		case err != nil:
			r.fail(n.Line, "%s: %v", name, err)
		}
		*of = is
	}}
}

// word returns a key whose value is one of words, in any letter case.
func word[T ~string](name string, required bool, of *T, words ...string) key {
	return parsed(name, required, of, func(s string) (T, error) {
		w, err := oneOf(s, words...)
		return T(w), err
	})
}

func oneOf(s string, words ...string) (string, error) {
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
	if i < 0 {
		return "", fmt.Errorf("must be one of %q, and is %q", words, s)
	}
	return words[i], nil
}

func boolean(name string, of *bool) key {
	k := key{name: name, read: func(r *reader, n *yaml.Node) { *of = scalar[bool](r, n, name, "true or false", "!!bool") }}
	if *of {
		k.text = "true"
	}
	return k
}

// texts returns a key whose value is a list of texts, on one line.
func texts(name string, of *[]string) key {
	return listed(name, of, quoteAll(*of), func(r *reader, n *yaml.Node) string { return r.text(n, name) })
}

// versions returns a key whose value is a list of versions of UUIDs.
func versions(name string, of *[]int) key {
	return listed(name, of, inlineOf(*of), func(r *reader, n *yaml.Node) int {
		version := r.integer(n, "a version")
		if version < 1 || version > 8 {
			r.fail(n.Line, "a version must be from 1 to 8, and is %d", version)
		}
		return version
	})
}

// listed returns a key whose value is a list which is written as text. It is not empty.
func listed[T any](name string, of *[]T, text string, element func(r *reader, n *yaml.Node) T) key {
	k := key{name: name, read: func(r *reader, n *yaml.Node) {
		r.list(n, name, func(v *yaml.Node) { *of = append(*of, element(r, v)) })
		if r.err == nil && len(*of) == 0 {
			r.fail(n.Line, "%s names nothing: remove it", name)
		}
	}}
	if len(*of) > 0 {
		k.text = text
	}
	return k
}

// list returns a key whose value is a list of mappings. empty is its text if it has none.
func list[T any, P interface {
	*T
	mapping() mapping
}](name string, required bool, empty string, of *[]T) key {
	k := key{name: name, required: required, named: empty != "", read: func(r *reader, n *yaml.Node) {
		r.list(n, name, func(v *yaml.Node) {
			var t T
			r.mapping(v, P(&t).mapping())
			*of = append(*of, t)
		})
	}}
	for i := range *of {
		k.list = append(k.list, P(&(*of)[i]).mapping())
	}
	if len(k.list) == 0 {
		k.text = empty
	}
	return k
}
