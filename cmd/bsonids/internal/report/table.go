// Package report writes what a scan found, for people: as a table, or as one HTML page.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// Table writes the report as text tables with box-drawing characters and no colour.
func Table(w io.Writer, r scan.Report) {
	fmt.Fprintf(w, "%s, scanned at %s\n", r.Server, r.Time.Format("2006-01-02 15:04:05 MST"))
	if len(r.Collections) == 0 {
		fmt.Fprintln(w, "There are no collections.")
	}
	for _, c := range r.Collections {
		fmt.Fprintf(w, "\n%s: %s\n", oneLine(c.Namespace), howRead(c))
		if len(c.Fields) == 0 {
			fmt.Fprintln(w, "  "+noUUIDs(c))
			continue
		}
		t := table.NewWriter()
		t.SetOutputMirror(w)
		t.SuppressTrailingSpaces()
		t.SetStyle(table.StyleLight)
		t.Style().Options.SeparateColumns = false
		t.Style().Options.DrawBorder = false
		t.Style().Format.Header = text.FormatDefault
		t.AppendHeader(table.Row{"field", "subtype 4", "subtype 3", "subtype 0", "text", "malformed", "other", "order of subtypes 3 and 0", "confidence"})
		for _, f := range c.Fields {
			n := f.Counts
			row := table.Row{oneLine(f.Path), count(n.Standard), count(n.Legacy), count(n.Generic), count(n.Text), count(n.Malformed), count(n.Other)}
			if len(f.Evidence) == 0 {
				t.AppendRow(append(row, "", ""))
			}
			for i, e := range f.Evidence {
				if i > 0 {
					row = table.Row{"", "", "", "", "", "", ""}
				}
				t.AppendRow(append(row, Verdict(e), Confidence(e)))
			}
		}
		t.SetColumnConfigs([]table.ColumnConfig{
			{Number: 2, Align: text.AlignRight}, {Number: 3, Align: text.AlignRight}, {Number: 4, Align: text.AlignRight},
			{Number: 5, Align: text.AlignRight}, {Number: 6, Align: text.AlignRight}, {Number: 7, Align: text.AlignRight},
		})
		t.Render()
		for _, f := range c.Fields {
			for _, e := range f.Evidence {
				fmt.Fprintf(w, "\n  %s, subtype %d: %s\n", oneLine(f.Path), e.Subtype, Headline(e))
				for _, reason := range e.Reasons {
					fmt.Fprintf(w, "    – %s\n", oneLine(reason))
				}
				if e.Settle != "" {
					fmt.Fprintf(w, "    – to settle it: %s\n", e.Settle)
				}
			}
		}
		if c.Overflow {
			fmt.Fprintln(w, "  There are more fields than are told apart; the rest were left out.")
		}
	}
}

// oneLine keeps a name from the data, in which anything may stand, to its line and its cell.
func oneLine(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, name)
}

// noUUIDs is what there is to say of a collection without a field that has some.
func noUUIDs(c scan.Collection) string {
	if c.Overflow {
		return "no UUIDs in the first fields; there are more fields than are told apart, and the rest were left out"
	}
	return "no UUIDs"
}

func howRead(c scan.Collection) string {
	switch c.Mode {
	case "all":
		return fmt.Sprintf("all %d documents", c.Scanned)
	case "sample":
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

// Verdict is the answer of e in a word or two.
func Verdict(e scan.Evidence) string {
	if e.Verdict == "cannot tell" || e.Verdict == "mixed" {
		return fmt.Sprintf("%s (subtype %d)", e.Verdict, e.Subtype)
	}
	if e.Verdict == scan.Network.Name(bson.TypeBinaryGeneric) {
		return "likely " + e.Verdict + " (network order)"
	}
	return "likely " + e.Verdict
}

// Confidence is the probability of the verdict, or nothing where none was reached.
func Confidence(e scan.Evidence) string {
	if e.Verdict == "cannot tell" {
		return "–"
	}
	return percent(e.Confidence)
}

// percent never says 100 %, and 0 % of nothing only.
func percent(p float64) string {
	switch {
	case p >= 0.9995: // which rounds to 100
		return "> 99.9 %"
	case p > 0 && p < 0.0005:
		return "< 0.1 %"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", p*100), ".0") + " %"
}

// Headline is the answer of e in a sentence.
func Headline(e scan.Evidence) string {
	distinct := fmt.Sprintf("%d distinct values", e.Distinct)
	if e.Distinct == 1 {
		distinct = "1 distinct value"
	}
	if int64(e.Sample+e.Uninformative) < e.Distinct {
		distinct = fmt.Sprintf("about %s, %d of them looked at", distinct, e.Sample+e.Uninformative)
	}
	switch e.Verdict {
	case "cannot tell":
		return "cannot tell the byte order (" + distinct + ")"
	case "mixed":
		return fmt.Sprintf("mixed, probability %s (%s)", percent(e.Confidence), distinct)
	}
	return fmt.Sprintf("most likely %s, probability %s (%s)", e.Verdict, percent(e.Confidence), distinct)
}
