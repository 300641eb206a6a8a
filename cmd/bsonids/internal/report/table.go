package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
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

// list writes a table with a row for each element.
func list[T any](w io.Writer, of []T, row func(T) []any, header ...any) {
	t := newTable(w, header...)
	for _, x := range of {
		t.AppendRow(row(x))
	}
	t.Render()
}

// facts writes a table of names and values, which alternate. It leaves out values that are empty.
func facts(w io.Writer, of ...any) {
	t := newTable(w)
	for p := range slices.Chunk(of, 2) {
		if p[1] != "" {
			t.AppendRow(p)
		}
	}
	t.Render()
}

// at returns an instant as text, or nothing.
func at(t *time.Time, layout string) string {
	if t == nil {
		return ""
	}
	return t.Format(layout)
}

// dry is what the title of a report says about a dry run.
func dry(written bool) string {
	if written {
		return ""
	}
	return "; dry run, nothing was changed"
}

// known returns the text of a number, or a dot for 0.
func known[T comparable](n T, format string) string {
	var zero T
	if n == zero {
		return "·"
	}
	return fmt.Sprintf(format, n)
}

// section writes the title of a part of a report.
func section(w io.Writer, title string) {
	fmt.Fprintf(w, "\n%s\n", title)
	for range title {
		fmt.Fprint(w, "─")
	}
	fmt.Fprintln(w)
}
