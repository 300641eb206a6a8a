package report

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// newTable returns a table that its Render method writes to w.
func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SuppressTrailingSpaces()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateColumns = false
	t.Style().Options.DrawBorder = false
	t.Style().Format.Header = text.FormatDefault
	if len(header) > 0 {
		t.AppendHeader(table.Row(header))
	}
	return t
}

// tally writes a table of the counts, with two headers.
func tally(w io.Writer, of, count string, n rule.Tally) {
	t := newTable(w, of, count)
	for _, name := range slices.Sorted(maps.Keys(n)) {
		t.AppendRow([]any{name, n[name]})
	}
	t.Render()
}

// written returns the verb of a report, and what its title says about a dry run.
func written(write bool, did, would string) (verb, how string) {
	if write {
		return did, ""
	}
	return would, "; dry run, nothing was changed"
}

// section writes the title of a part of a report.
func section(w io.Writer, title string) {
	fmt.Fprintf(w, "\n%s\n", title)
	for range title {
		fmt.Fprint(w, "─")
	}
	fmt.Fprintln(w)
}
