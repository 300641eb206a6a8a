// Package report writes the results of the commands: as tables or an HTML page for users, and as
// JSON for programs.
package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Scan writes the report of a scan as text tables with box-drawing characters, without colors.
func Scan(w io.Writer, r scan.Report) {
	fmt.Fprintf(w, "%s, scanned at %s\n", r.Server, r.Time.Format("2006-01-02 15:04:05 MST"))
	if len(r.Collections) == 0 {
		fmt.Fprintln(w, "There are no collections.")
	}
	for _, c := range r.Collections {
		fmt.Fprintf(w, "\n%s: %s\n", terminal.Cell(c.Namespace), howRead(c))
		if len(c.Fields) == 0 {
			fmt.Fprintln(w, "  "+noUUIDs(c))
			continue
		}
		header := table.Row{"field", "subtype 4", "subtype 3", "subtype 0", "text", "malformed", "other"}
		structs := slices.ContainsFunc(c.Fields, func(f scan.Field) bool { return f.Counts.Structs > 0 })
		if structs {
			header = append(header, "Go structs")
		}
		var columns []table.ColumnConfig
		for i := range header[1:] {
			columns = append(columns, table.ColumnConfig{Number: 2 + i, Align: text.AlignRight})
		}
		t := newTable(w, append(header, "order of subtypes 3 and 0", "distinct, converted")...)
		for _, f := range c.Fields {
			n := f.Counts
			row := table.Row{terminal.Cell(f.Path), count(n.Standard), count(n.Legacy), count(n.Generic), count(n.Text), count(n.Malformed), count(n.Other)}
			if structs {
				row = append(row, count(n.Structs))
			}
			if len(f.Evidence) == 0 {
				t.AppendRow(append(row, "", ""))
			}
			for i, e := range f.Evidence {
				if i > 0 {
					row = slices.Repeat(table.Row{""}, len(row))
				}
				t.AppendRow(append(row, Verdict(e), Converted(e)))
			}
		}
		t.SetColumnConfigs(columns)
		t.Render()
		for _, f := range c.Fields {
			for _, e := range f.Forms {
				fmt.Fprintf(w, "\n  %s, %s: %s\n", terminal.Cell(f.Path), formName(e), FormHeadline(e))
				for _, reason := range e.Reasons {
					fmt.Fprintf(w, "    – %s\n", terminal.Cell(reason))
				}
			}
			for _, e := range f.Evidence {
				fmt.Fprintf(w, "\n  %s, subtype %d: %s\n", terminal.Cell(f.Path), e.Subtype, Headline(e))
				for _, reason := range e.Reasons {
					fmt.Fprintf(w, "    – %s\n", terminal.Cell(reason))
				}
				if e.Settle != "" {
					fmt.Fprintf(w, "    – to determine it: %s\n", e.Settle)
				}
			}
		}
		if c.Overflow {
			fmt.Fprintln(w, "  There are too many fields; the rest were ignored.")
		}
	}
}

// noUUIDs describes a collection that has no fields with UUIDs.
func noUUIDs(c scan.Collection) string {
	if c.Overflow {
		return "no UUIDs in the first fields; there are too many fields, and the rest were ignored"
	}
	return "no UUIDs"
}

func howRead(c scan.Collection) string {
	switch c.Mode {
	case source.All:
		return fmt.Sprintf("all %d documents", c.Scanned)
	case source.Sample:
		return fmt.Sprintf("a random sample of %d of about %d documents", c.Scanned, c.Documents)
	}
	return fmt.Sprintf("the first %d of about %d documents", c.Scanned, c.Documents)
}

func count(n int64) string {
	if n == 0 {
		return "·"
	}
	return fmt.Sprint(n)
}
