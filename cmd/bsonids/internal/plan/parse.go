package plan

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// maxSize is the maximum size of a plan in bytes.
const maxSize = 64 << 20

// Read reads the plan in the file at path.
func Read(path string) (*Plan, error) {
	if err := files.Regular(path); err != nil { // a pipe may have no writer
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxSize:
		return nil, fmt.Errorf("it is larger than %d MB", maxSize>>20)
	}
	return Parse(b)
}

// Parse parses a plan as [Write] writes it. Unknown and repeated keys, missing ones, wrong types,
// and another version of the format are errors, with the line.
func Parse(b []byte) (*Plan, error) {
	root, err := document(b)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	p := &Plan{}
	// The version is first, because another version may have other keys.
	if root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if v := root.Content[i+1]; root.Content[i].Value == "schemaVersion" {
				if n := r.integer(v, "schemaVersion"); r.err == nil && n != SchemaVersion {
					r.fail(v, "the plan has schemaVersion %d, and this program reads %d", n, SchemaVersion)
				}
			}
		}
	}
	r.mapping(root, "the plan", []string{"schemaVersion", "to", "made", "collections"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "schemaVersion":
		case "database":
			p.Database = r.text(v, key)
			if r.err == nil && p.Database == "" {
				r.fail(v, "the name of the database is empty")
			}
		case "dump":
			p.Dump = r.dump(v)
		case "part":
			part, err := convert.ParsePart(r.text(v, key))
			if p.Part = part.String(); r.err == nil && (err != nil || part.Whole()) {
				r.fail(v, "part must be like 2/8, the second of eight parts, and is %s: remove it for all documents", kindOf(v))
			}
		case "to":
			p.To = r.kind(v, key)
		case "made":
			p.Made = r.time(v, key)
		case "only":
			p.Only = r.texts(v, key)
			if r.err == nil && len(p.Only) == 0 {
				r.fail(v, "only names no collection: remove it for all of the database")
			}
		case "collections":
			seen := make(map[Entry]bool)
			r.list(v, key, func(v *yaml.Node) {
				c := r.collection(v)
				if seen[c.Entry()] {
					r.fail(v, "the collection %s is listed twice", c.Entry())
				}
				seen[c.Entry()] = true
				p.Collections = append(p.Collections, c)
			})
		case "references":
			r.list(v, key, func(v *yaml.Node) { p.References = append(p.References, r.reference(v)) })
		default:
			return false
		}
		return true
	})
	if p.Database == "" && p.Dump == nil {
		r.fail(root, "the plan has no %q", "database")
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

func (r *reader) dump(n *yaml.Node) *Dump {
	d := &Dump{}
	r.mapping(n, "the dump", []string{"path", "digest", "evidence"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "path":
			d.Path = r.text(v, key)
		case "collection":
			d.Collection = r.text(v, key)
		case "digest":
			d.Digest = r.text(v, key)
		case "evidence":
			d.Evidence = r.text(v, key)
		default:
			return false
		}
		return true
	})
	return d
}

func (r *reader) collection(n *yaml.Node) (c Collection) {
	c.Line = n.Line
	r.mapping(n, "a collection", []string{"name", "fields"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "name":
			c.Name = r.text(v, key)
		case "uuid":
			c.UUID = r.text(v, key)
		case "filter":
			var err error
			if _, c.Filter, err = convert.ParseFilter(r.text(v, key)); r.err == nil && (err != nil || c.Filter == "") {
				r.fail(v, "the filter: %v", cmp.Or(err, errors.New("it is empty")))
			}
		case "into":
			if c.Into = r.text(v, key); c.Into == "" {
				r.fail(v, "into is empty")
			}
		case "guard":
			if c.Guard = r.word(v, key, noGuard, guard.Moderate, guard.Strict); c.Guard == noGuard {
				c.Guard = ""
			}
		case "fields":
			r.list(v, key, func(v *yaml.Node) {
				f := r.field(v)
				if slices.ContainsFunc(c.Fields, func(o Field) bool { return o.Plain() == f.Plain() && o.Stored == f.Stored }) {
					r.fail(v, "the field %q (%s) is listed twice", f.Path, f.Stored)
				}
				c.Fields = append(c.Fields, f)
			})
		default:
			return false
		}
		return true
	})
	return c
}

// parseDecision returns the decision that s is in any letter case.
func parseDecision(s string) (Decision, error) {
	if strings.EqualFold(s, string(Leave)) {
		return Leave, nil
	}
	if strings.EqualFold(s, string(Unknown)) {
		return Unknown, nil
	}
	if len(s) < len(from) || !strings.EqualFold(s[:len(from)], from) {
		return "", fmt.Errorf("the decision must be leave, unknown, convert from X, or convert from X to text, and is %q", s)
	}
	name, end := s[len(from):], ""
	if at := len(name) - len(toText); at >= 0 && strings.EqualFold(name[at:], toText) {
		name, end = name[:at], toText
	}
	k, err := kinds.Parse(name)
	if err != nil {
		return "", fmt.Errorf("the decision %q: %w", s, err)
	}
	return Convert(k.Name) + Decision(end), nil
}

func (r *reader) field(n *yaml.Node) (f Field) {
	f.Line = n.Line
	r.mapping(n, "a field", []string{"path", "stored", "decision"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "path":
			f.Path = r.text(v, key)
		case "stored":
			f.Stored = kinds.Stored(r.word(v, key, kinds.AllStored()...))
		case "decision":
			var err error
			if f.Decision, err = parseDecision(r.text(v, key)); err != nil {
				r.fail(v, "%v", err)
			}
		case "trust":
			f.Trust = r.boolean(v, key)
		case "evidence":
			r.list(v, key, func(v *yaml.Node) { f.Evidence = append(f.Evidence, r.evidence(v)) })
		default:
			return false
		}
		return true
	})
	return f
}

func (r *reader) evidence(n *yaml.Node) (e Evidence) {
	r.mapping(n, "evidence", []string{"order", "by"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "order":
			e.Order = r.stored(v, key)
		case "by":
			e.By = decide.Basis(r.word(v, key, string(decide.Evidence), string(decide.Symmetric), string(decide.Equality), string(decide.None)))
		case "versions":
			e.Versions = r.versions(v, key)
		case "digits":
			e.Digits = r.versions(v, key)
		case "against":
			e.Against = r.texts(v, key)
		default:
			return false
		}
		return true
	})
	return e
}

func (r *reader) versions(n *yaml.Node, what string) (versions []int) {
	r.list(n, what, func(v *yaml.Node) {
		version := r.integer(v, "a version")
		if version < 1 || version > 8 {
			r.fail(v, "a version must be from 1 to 8, and is %d", version)
		}
		versions = append(versions, version)
	})
	return versions
}

func (r *reader) reference(n *yaml.Node) (ref Reference) {
	ref.Line = n.Line
	r.mapping(n, "a reference", []string{"between"}, func(key string, v *yaml.Node) bool {
		switch key {
		case "between":
			names := r.texts(v, key)
			if r.err == nil && (len(names) != 2) {
				r.fail(v, "between must name two collections")
			}
			copy(ref.Between[:], names)
		case "fields":
			ref.Fields = r.texts(v, key)
			if r.err == nil && len(ref.Fields) != 2 {
				r.fail(v, "fields must name two fields, one of each collection")
			}
		case "outside":
			r.list(v, key, func(v *yaml.Node) {
				ref.Outside = append(ref.Outside, kinds.Stored(r.word(v, key, kinds.AllStored()...)))
			})
		case "accepted":
			ref.Accepted = r.boolean(v, key)
		default:
			return false
		}
		return true
	})
	if ref.Between[0] == ref.Between[1] && r.err == nil && (len(ref.Fields) != 2 || Plain(ref.Fields[0]) == Plain(ref.Fields[1])) {
		r.fail(n, "between must name two collections, or fields two of the one collection")
	}
	return ref
}

// word returns a text that must be one of words, in any letter case.
func (r *reader) word(n *yaml.Node, what string, words ...string) string {
	s := r.text(n, what)
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
	if i < 0 {
		r.fail(n, "%s must be one of %q, and is %q", what, words, s)
		return s
	}
	return words[i]
}

func (r *reader) kind(n *yaml.Node, what string) string { return r.named(n, what, kinds.ParseBinary) }

// stored is kind for a kind that may not be binary.
func (r *reader) stored(n *yaml.Node, what string) string {
	return r.named(n, what, kinds.Parse)
}

func (r *reader) named(n *yaml.Node, what string, parse func(string) (kinds.Kind, error)) string {
	s := r.text(n, what)
	if k, err := parse(s); r.err == nil && (err != nil || k.Name != s) {
		r.fail(n, "%s: %q is not a representation", what, s)
	}
	return s
}

func (r *reader) time(n *yaml.Node, what string) time.Time {
	t, err := time.Parse(time.RFC3339, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.fail(n, "%s must be a time such as 2026-01-31T12:00:00Z, and is %s", what, kindOf(n))
	}
	return t.UTC()
}
