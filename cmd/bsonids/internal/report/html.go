package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

//go:embed report.html.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"headline": Headline, "verdict": Verdict, "confidence": Confidence, "howRead": howRead, "bars": bars, "fits": fits,
	"group": group, "tone": tone, "total": total,
}).Parse(page))

// HTML writes the report as one page that needs no other file and no network.
func HTML(w io.Writer, r scan.Report) error {
	if err := pageTemplate.Execute(w, r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// bar is one part of a chart, in the units of its view box.
type bar struct {
	Class, Label string
	X, Width     float64
	Count        int64
	Percent      string
}

// kinds are the counts of a field with their names, in the order in which they are drawn.
func kinds(c scan.Counts) []bar {
	return []bar{
		{Class: "k4", Label: "subtype 4", Count: c.Standard},
		{Class: "k3", Label: "subtype 3", Count: c.Legacy},
		{Class: "k0", Label: "subtype 0", Count: c.Generic},
		{Class: "kt", Label: "text", Count: c.Text},
		{Class: "km", Label: "malformed", Count: c.Malformed},
		{Class: "ko", Label: "other", Count: c.Other},
	}
}

// bars lays the counts of a field side by side over 100 units. What is there is at least half a unit wide.
func bars(c scan.Counts) []bar {
	const least = 0.5
	sum := float64(total(c))
	var out []bar
	var wide float64
	for _, b := range kinds(c) {
		if b.Count == 0 {
			continue
		}
		share := float64(b.Count) / sum
		b.Width, b.Percent = max(100*share, least), percent(share)
		if share == 1 {
			b.Percent = "100 %"
		}
		wide += b.Width
		out = append(out, b)
	}
	x := 0.0
	for i := range out {
		out[i].Width *= 100 / wide
		out[i].X = x
		x += out[i].Width
	}
	return out
}

func total(c scan.Counts) int64 {
	var n int64
	for _, b := range kinds(c) {
		n += b.Count
	}
	return n
}

// fit is how many values have the bits of a UUID in one order, beside what chance would give, in percent.
type fit struct {
	Order            string
	Fits, Sample     int
	Percent, Chance  float64
	Matches, InRange int
	MatchedIn        string
	Named            bool
}

func fits(e scan.Evidence) []fit {
	var out []fit
	for _, o := range e.Orders {
		f := fit{Order: o.Order, Fits: o.Fits, Sample: e.Sample, Matches: o.Matches, InRange: max(o.Comparable, o.Matches), MatchedIn: o.MatchedIn, Named: o.Order == e.Verdict}
		if e.Sample > 0 {
			f.Percent, f.Chance = 100*float64(o.Fits)/float64(e.Sample), 100*o.ByChance/float64(e.Sample)
		}
		out = append(out, f)
	}
	return out
}

// tone is the class of a verdict.
func tone(e scan.Evidence) string {
	switch e.Verdict {
	case "cannot tell":
		return "open"
	case "mixed":
		return "mixed"
	}
	return "named"
}

// group writes a number with its digits in groups of three.
func group(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
