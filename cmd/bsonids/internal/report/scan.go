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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Scan is the report of a scan.
type Scan scan.Report

// Text writes the report as tables with box-drawing characters, without colors.
func (r Scan) Text(w io.Writer) {
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
		which := shown(c.Fields)
		header := table.Row{"field"}
		var align []table.ColumnConfig
		for i, col := range which {
			header = append(header, columns(scan.Counts{})[col].Label)
			align = append(align, table.ColumnConfig{Number: 2 + i, Align: text.AlignRight})
		}
		t := newTable(w, append(header, "order of subtypes 3 and 0", "distinct, converted")...)
		t.SetColumnConfigs(align)
		for _, f := range c.Fields {
			row := table.Row{terminal.Cell(f.Path)}
			for _, col := range which {
				row = append(row, known(columns(f.Counts)[col].Count, "%d"))
			}
			if len(f.Evidence) == 0 {
				t.AppendRow(append(row, "", ""))
			}
			for i, e := range f.Evidence {
				if i > 0 {
					row = slices.Repeat(table.Row{""}, len(row))
				}
				verdict := string(e.Verdict)
				if !e.Verdict.Named() {
					verdict += fmt.Sprintf(" (subtype %d)", e.Subtype)
				}
				t.AppendRow(append(row, verdict, converted(e)))
			}
		}
		t.Render()
		for _, f := range c.Fields {
			for _, j := range evidenceOf(f) {
				fmt.Fprintf(w, "\n  %s, %s: %s\n", terminal.Cell(f.Path), j.Stored, j.Headline)
				for _, reason := range j.Reasons {
					fmt.Fprintf(w, "    – %s\n", terminal.Cell(reason))
				}
			}
		}
		if c.Overflow {
			fmt.Fprintln(w, "  There are too many fields; the rest were ignored.")
		}
	}
}
