package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

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
	"howRead": howRead, "noUUIDs": noUUIDs, "judge": evidenceOf, "bars": bars, "total": total, "digits": digits, "summarize": summarize, "groupOf": groupOf, "adviseOn": adviseOn,
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
	column
	X, Width float64
	Percent  string
}

// bars lays out the counts of a field next to each other over 100 units. A count above zero is at
// least half a unit wide.
func bars(c scan.Counts) (out []bar) {
	const least = 0.5
	var wide float64
	for _, col := range columns(c) {
		if share := float64(col.Count) / float64(total(c)); share > 0 {
			out = append(out, bar{column: col, Width: max(100*share, least), Percent: percent(share)})
			wide += max(100*share, least)
		}
	}
	x := 0.0
	for i := range out {
		out[i].X, out[i].Width = x, out[i].Width*100/wide
		x += out[i].Width
	}
	return out
}

// percent returns 0 % only for zero, and 100 % only for all.
func percent(p float64) string {
	switch {
	case p >= 0.9995 && p < 1: // it would be rounded to 100
		return "> 99.9 %"
	case p > 0 && p < 0.0005:
		return "< 0.1 %"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", p*100), ".0") + " %"
}

// digits formats a number with its digits in groups of three.
func digits(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}
