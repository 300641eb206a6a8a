package plan

import (
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
	var b strings.Builder
	line := func(indent int, format string, args ...any) {
		fmt.Fprintf(&b, "%*s%s\n", indent, "", fmt.Sprintf(format, args...))
	}
	comment := func(indent int, lines []string) {
		for _, l := range lines {
			line(indent, "%s", strings.TrimSpace("# "+terminal.Cell(l)))
		}
	}
	comment(0, p.Comment)
	line(0, "schemaVersion: %d", SchemaVersion)
	line(0, "database: %s", Quote(p.Database))
	line(0, "to: %s", p.To)
	line(0, "made: %s", p.Made.UTC().Format(time.RFC3339))
	if len(p.Collections) == 0 {
		line(0, "collections: []")
	} else {
		line(0, "\ncollections:")
	}
	for _, c := range p.Collections {
		b.WriteByte('\n')
		comment(2, c.Comment)
		line(2, "- name: %s", Quote(c.Name))
		if c.UUID != "" {
			line(4, "uuid: %s", Quote(c.UUID))
		}
		if c.Into != "" {
			line(4, "into: %s", Quote(c.Into))
		}
		if len(c.Fields) == 0 {
			line(4, "fields: []")
			continue
		}
		line(4, "fields:")
		for _, f := range c.Fields {
			comment(6, f.Comment)
			line(6, "- path: %s", Quote(f.Path))
			line(8, "stored: %s", f.Stored)
			line(8, "decision: %s", f.Decision)
			if f.Trust {
				line(8, "trust: true")
			}
			if len(f.Evidence) > 0 {
				line(8, "evidence:")
			}
			for _, e := range f.Evidence {
				line(10, "- %s", e.yaml())
			}
		}
	}
	b.WriteByte('\n')
	comment(0, p.ReferencesComment)
	if len(p.References) == 0 {
		line(0, "references: []")
	} else {
		line(0, "references:")
	}
	for _, r := range p.References {
		comment(2, r.Comment)
		line(2, "- between: %s", quoteAll(r.Between[:]))
		if len(r.Fields) > 0 {
			line(4, "fields: %s", quoteAll(r.Fields))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
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
