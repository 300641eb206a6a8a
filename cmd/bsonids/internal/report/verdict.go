package report

import (
	"fmt"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// Verdict returns the verdict of e in one or two words.
func Verdict(e scan.Evidence) string {
	if e.Verdict.Outcome != scan.Named {
		return fmt.Sprintf("%s (subtype %d)", e.Verdict, e.Subtype)
	}
	return e.Verdict.String()
}

// Converted returns how many of the distinct values a conversion would convert, from each order that it
// can convert from, or a dash.
func Converted(e scan.Evidence) string {
	var from []string
	for _, o := range e.Orders {
		if c := o.Conversion; c != nil && c.Values > 0 && e.Distinct > e.Uninformative {
			text := fmt.Sprintf("%d of %d", c.Values, e.Distinct)
			if o.Order != e.Verdict.Order {
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

// percent never returns 100 %, and returns 0 % only for zero.
func percent(p float64) string {
	switch {
	case p >= 0.9995: // it would be rounded to 100
		return "> 99.9 %"
	case p > 0 && p < 0.0005:
		return "< 0.1 %"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", p*100), ".0") + " %"
}

// formName returns the name of the form for a reader.
func formName(e scan.FormEvidence) string {
	if e.Form == kinds.GoStruct {
		return "Go structs"
	}
	return e.Form
}

// FormHeadline describes the UUIDs of a field in one form in a few words.
func FormHeadline(e scan.FormEvidence) string { return distinctOnes(e.Distinct, "UUID") }

// distinctOnes says how many distinct values there are.
func distinctOnes(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d distinct %s", n, noun)
}

// Headline returns the verdict of e in one sentence.
func Headline(e scan.Evidence) string {
	verdict := e.Verdict.String()
	switch e.Verdict.Outcome {
	case scan.Undecided:
		verdict = "byte order undetermined"
	case scan.Mixed:
		verdict = "several byte orders"
	}
	return fmt.Sprintf("%s (%s)", verdict, distinctOnes(e.Distinct, "value"))
}
