package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

var (
	//go:embed report.html.tmpl
	page string
	//go:embed report.css
	style string
	//go:embed report.js
	script string
)

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"headline": Headline, "formName": formName, "formHeadline": FormHeadline, "howRead": howRead, "bars": bars, "fits": fits, "digits": digits, "tone": tone, "total": total,
	"summarize": summarize, "groupOf": groupOf, "adviseOn": adviseOn,
	"style":  func() template.CSS { return template.CSS(style) },
	"script": func() template.JS { return template.JS(script) },
	"policy": func() string {
		return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s", digest(style), digest(script))
	},
}).Parse(page))

// digest returns the source expression of a content security policy for an inline element.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// HTML writes the report as one page. Its policy lets it load nothing and run only its own script.
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

// parts returns the counts of a field with their names, in drawing order.
func parts(c scan.Counts) []bar {
	return []bar{
		{Class: "k4", Label: "subtype 4", Count: c.Standard},
		{Class: "k3", Label: "subtype 3", Count: c.Legacy},
		{Class: "k0", Label: "subtype 0", Count: c.Generic},
		{Class: "kt", Label: "text", Count: c.Text},
		{Class: "km", Label: "malformed", Count: c.Malformed},
		{Class: "kg", Label: "Go structs", Count: c.Structs},
		{Class: "ko", Label: "other", Count: c.Other},
	}
}

// bars lays out the counts of a field next to each other over 100 units. A count above zero is at
// least half a unit wide.
func bars(c scan.Counts) []bar {
	const least = 0.5
	sum := float64(total(c))
	var out []bar
	var wide float64
	for _, b := range parts(c) {
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
	for _, b := range parts(c) {
		n += b.Count
	}
	return n
}

// fit holds the percentage of values that have the bits of a UUID in one order, and the percentage
// expected by chance.
type fit struct {
	Order           string
	Fits, Of        int64
	Percent, Chance float64
	Named           bool
}

func fits(e scan.Evidence) []fit {
	var out []fit
	for _, o := range e.Orders {
		f := fit{Order: o.Order, Fits: o.Fits, Of: e.Distinct - e.Uninformative, Named: o.Order == e.Verdict.Order}
		if f.Of > 0 {
			f.Percent, f.Chance = 100*float64(f.Fits)/float64(f.Of), 100*o.ByChance/float64(f.Of)
		}
		out = append(out, f)
	}
	return out
}

// tone returns the CSS class of a verdict.
func tone(e scan.Evidence) string {
	switch e.Verdict.Outcome {
	case scan.Undecided:
		return "open"
	case scan.Mixed:
		return "mixed"
	}
	return "named"
}

// digits formats a number with its digits in groups of three.
func digits(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
