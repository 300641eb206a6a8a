package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// column is one way in which values are stored, in a table or a chart.
type column struct {
	Label, Class string // the class is for the page
	Count        int64
}

// columns returns the counts of a field in the order of the columns.
func columns(c scan.Counts) []column {
	return []column{{"subtype 4", "k4", c.Standard}, {"subtype 3", "k3", c.Legacy}, {"subtype 0", "k0", c.Generic}, {"text", "kt", c.Text},
		{"malformed", "km", c.Malformed}, {"other", "ko", c.Other}, {"Go structs", "kg", c.Structs}, {"empty documents", "ke", c.Empty},
		{"text in binary", "kb", c.BinaryText}}
}

// shown returns which of the columns a table of the fields has: those that are rare, only if they count something.
func shown(fields []scan.Field) (which []int) {
	for i, col := range columns(scan.Counts{}) {
		if col.Class != "kg" && col.Class != "ke" && col.Class != "kb" || slices.ContainsFunc(fields, func(f scan.Field) bool { return columns(f.Counts)[i].Count > 0 }) {
			which = append(which, i)
		}
	}
	return which
}

// total returns the number of all values of a field.
func total(c scan.Counts) (n int64) {
	for _, col := range columns(c) {
		n += col.Count
	}
	return n
}

// judged is what the values of a field show that are stored in one way.
type judged struct {
	Stored, Headline string
	Tone             string // a CSS class
	Reasons          []string
	Fits             []fit // if values are different in different byte orders
}

// fit holds the percentage of values that have the bits of a UUID in one order, and the percentage
// expected by chance.
type fit struct {
	Order           string
	Fits, Of        int64
	Percent, Chance float64
	Named           bool
}

// evidenceOf returns what the values of a field show.
func evidenceOf(f scan.Field) (all []judged) {
	for _, e := range f.Forms {
		stored := e.Form
		switch stored {
		case kinds.GoStruct:
			stored = "Go structs"
		case kinds.OfBinaryText:
			stored = "text in binary"
		}
		all = append(all, judged{stored, e.Headline(), "named", e.Reasons, nil})
	}
	for _, e := range f.Evidence {
		j := judged{fmt.Sprintf("subtype %d", e.Subtype), e.Headline(), "named", e.Reasons, nil}
		switch e.Verdict {
		case scan.Undetermined:
			j.Tone = "open"
		case scan.Mixed:
			j.Tone = "mixed"
		}
		if e.Settle != "" {
			j.Reasons = slices.Concat(e.Reasons, []string{"to determine it: " + e.Settle})
		}
		of := e.Distinct - e.Uninformative
		for _, o := range e.Orders {
			if of > 0 {
				j.Fits = append(j.Fits, fit{o.Order, o.Fits, of, 100 * float64(o.Fits) / float64(of), 100 * o.ByChance / float64(of), o.Order == string(e.Verdict)})
			}
		}
		all = append(all, j)
	}
	if n := f.Counts.Empty; n > 0 {
		all = append(all, judged{"empty documents", fmt.Sprintf("%d in place of ids", n), "mixed", []string{
			"a Go program stores {} for a struct whose UUID is private and has no codec: these values cannot be had back"}, nil})
	}
	return all
}

// converted returns how many of the distinct values a conversion would convert, from each order that it
// can convert from, or a dash.
func converted(e scan.Evidence) string {
	var from []string
	for _, o := range e.Orders {
		if c := o.Conversion; c != nil && c.Values > 0 && e.Distinct > e.Uninformative {
			text := fmt.Sprintf("%d of %d", c.Values, e.Distinct)
			if o.Order != string(e.Verdict) {
				text = o.Order + ": " + text
			}
			from = append(from, text)
		}
	}
	if len(from) == 0 {
		return "–"
	}
	return strings.Join(from, ", ")
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

// noUUIDs describes a collection that has no fields with UUIDs.
func noUUIDs(c scan.Collection) string {
	if c.Overflow {
		return "no UUIDs in the first fields; there are too many fields, and the rest were ignored"
	}
	return "no UUIDs"
}
