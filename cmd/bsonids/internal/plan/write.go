package plan

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Write writes the plan as YAML, with its comments.
func Write(w io.Writer, p *Plan) error {
	b := &writer{dump: p.Dump != nil}
	b.comment(0, p.Comment)
	b.line(0, "schemaVersion: %d", SchemaVersion)
	if p.Database != "" || p.Dump == nil {
		b.line(0, "database: %s", Quote(p.Database))
	}
	if d := p.Dump; d != nil {
		b.line(0, "dump:")
		b.line(2, "path: %s", Quote(d.Path))
		if d.Collection != "" {
			b.line(2, "collection: %s", Quote(d.Collection))
		}
		b.line(2, "digest: %s", Quote(d.Digest))
		b.line(2, "evidence: %s", Quote(d.Evidence))
	}
	if p.Part != "" {
		b.line(0, "part: %s", p.Part)
	}
	b.line(0, "to: %s", p.To)
	b.made(p)
	b.only(p)
	if len(p.Collections) == 0 {
		b.line(0, "collections: []")
	} else {
		b.line(0, "\ncollections:")
	}
	for _, c := range p.Collections {
		b.collection(c)
	}
	b.WriteByte('\n')
	b.comment(0, p.ReferencesComment)
	if len(p.References) == 0 {
		b.line(0, "references: []")
	} else {
		b.line(0, "references:")
	}
	for _, r := range p.References {
		b.reference(r)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writer writes the parts of a plan.
type writer struct {
	strings.Builder
	dump bool
}

func (b *writer) line(indent int, format string, args ...any) {
	fmt.Fprintf(b, "%*s%s\n", indent, "", fmt.Sprintf(format, args...))
}

func (b *writer) comment(indent int, lines []string) {
	for _, l := range lines {
		b.line(indent, "%s", strings.TrimSpace("# "+terminal.Cell(l)))
	}
}

func (b *writer) made(p *Plan) { b.line(0, "made: %s", p.Made.UTC().Format(time.RFC3339)) }

func (b *writer) only(p *Plan) {
	if len(p.Only) > 0 {
		b.line(0, "only: %s", quoteAll(p.Only))
	}
}

func (b *writer) collection(c Collection) {
	b.WriteByte('\n')
	b.comment(2, c.Comment)
	b.line(2, "- name: %s", Quote(c.Name))
	if c.UUID != "" {
		b.line(4, "uuid: %s", Quote(c.UUID))
	}
	if c.Filter != "" {
		b.line(4, "filter: %s", Quote(c.Filter))
	}
	b.into(c)
	if !b.dump || c.Guard != "" {
		b.line(4, "guard: %s", cmp.Or(c.Guard, noGuard))
	}
	if len(c.Fields) == 0 {
		b.line(4, "fields: []")
		return
	}
	b.line(4, "fields:")
	for _, f := range c.Fields {
		b.field(f)
	}
}

func (b *writer) into(c Collection) {
	if c.Into != "" {
		b.line(4, "into: %s", Quote(c.Into))
	}
}

func (b *writer) field(f Field) {
	b.comment(6, f.Comment)
	b.line(6, "- path: %s", Quote(f.Path))
	b.line(8, "stored: %s", f.Stored)
	b.line(8, "decision: %s", f.Decision)
	if f.Trust {
		b.line(8, "trust: true")
	}
	b.evidence(f)
}

func (b *writer) evidence(f Field) {
	if len(f.Evidence) > 0 {
		b.line(8, "evidence:")
	}
	for _, e := range f.Evidence {
		b.line(10, "- %s", e.yaml())
	}
}

func (b *writer) reference(r Reference) {
	b.comment(2, r.Comment)
	b.line(2, "- between: %s", quoteAll(r.Between[:]))
	if len(r.Fields) > 0 {
		b.line(4, "fields: %s", quoteAll(r.Fields))
	}
	b.outside(r)
	if r.Accepted {
		b.line(4, "accepted: true")
	}
}

func (b *writer) outside(r Reference) {
	if len(r.Outside) > 0 {
		b.line(4, "outside: [%s]", storedAs(r.Outside, ", "))
	}
}

func (e Evidence) yaml() string {
	s := fmt.Sprintf("{order: %s, by: %s", e.Order, e.By)
	for _, l := range []struct {
		key  string
		list []int
	}{{"versions", e.Versions}, {"digits", e.Digits}} {
		if len(l.list) > 0 {
			s += ", " + l.key + ": " + strings.ReplaceAll(fmt.Sprint(l.list), " ", ", ")
		}
	}
	if len(e.Against) > 0 {
		s += ", against: " + quoteAll(e.Against)
	}
	return s + "}"
}

// Quote returns s as a YAML scalar on one line, of characters that a terminal shows. Text that is
// not UTF-8 becomes base64 with the tag !!binary.
func Quote(s string) string {
	if !utf8.ValidString(s) {
		return `!!binary "` + base64.StdEncoding.EncodeToString([]byte(s)) + `"`
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == ' ' || unicode.IsPrint(r) && terminal.Visible(r) == r && r <= 0xd7ff:
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
