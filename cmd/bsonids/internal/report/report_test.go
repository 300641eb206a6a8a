package report

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

func sample() scan.Report {
	return scan.Report{
		Server: "db.example:27017", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Warnings: []string{"a warning"},
		Collections: []scan.Collection{
			{Namespace: "shop.<script>alert(1)</script>", Documents: 1000000, Scanned: 1000, Mode: "sample", Fields: []scan.Field{
				{Path: "items[].id", Counts: scan.Counts{Standard: 1, Legacy: 998000, Generic: 2, Text: 3, Malformed: 4, Other: 5}, Evidence: []scan.Evidence{
					{Subtype: 3, Verdict: "javaLegacy", Reasons: []string{"because"}, Found: decide.Found{Distinct: 5000, Orders: []decide.Reading{
						{Order: "pythonLegacy", Fits: 10, ByChance: 128}, {Order: "csharpLegacy", Fits: 130, ByChance: 128}, {Order: "javaLegacy", Fits: 4990, ByChance: 625, Conversion: &decide.Conversion{Basis: "evidence", Values: 4990}},
					}}},
					{Subtype: 0, Found: decide.Found{Distinct: 1}, Verdict: scan.Undetermined, Settle: "more of them"},
				}},
				{Path: "x\"><img src=http://example.com>", Counts: scan.Counts{Text: 1}},
			}},
			{Namespace: "shop.none", Mode: "all", Fields: []scan.Field{}},
		},
	}
}

// The page is one well-formed file that loads nothing, and has one script, which its policy allows.
// Names from the data are escaped. The page supports light and dark mode, and narrow and wide
// screens.
func TestHTML(t *testing.T) {
	var b strings.Builder
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if !strings.Contains(page, "script-src "+strings.NewReplacer("+", "&#43;", "'", "&#39;").Replace(digest(script))) {
		t.Error("the policy does not allow the script")
	}
	if n := strings.Count(page, script); n != 1 {
		t.Errorf("the page has the script %d times", n)
	}
	page = strings.Replace(page, "<script>"+script+"</script>", "", 1)
	for _, bad := range []string{"<script", "<link", "@import", "url(", "<img"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if m := regexp.MustCompile(`(src|href)\s*=`).FindString(page); m != "" && !strings.Contains(page, "&lt;img src=") {
		t.Errorf("the page has %s", m)
	}
	for _, want := range []string{"prefers-color-scheme: dark", `name="viewport"`, "max-width: 40rem", "items[].id", "javaLegacy (5000 distinct values)",
		"undetermined", "998\u202f000", "a warning", "shop.none", "a random sample of 1000 of about 1000000 documents"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

func TestBars(t *testing.T) {
	for _, c := range []scan.Counts{{Standard: 1}, {Standard: 1, Legacy: 1_000_000}, {Standard: 1, Legacy: 2, Generic: 3, Text: 4, Malformed: 5, Other: 6}, {Other: 1, Malformed: 999}} {
		var x float64
		for _, b := range bars(c) {
			if b.Width < 0.4 || b.X < x-1e-9 || b.X > x+1e-9 {
				t.Errorf("%+v: %+v", c, b)
			}
			x = b.X + b.Width
		}
		if x < 99.999 || x > 100.001 {
			t.Errorf("%+v: the bars end at %v", c, x)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	Scan(sample()).Text(&b)
	for _, want := range []string{"items[].id", "998000", "javaLegacy", "4990 of 5000", "because", "to determine it: more of them", "no UUIDs"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("the table has terminal codes")
	}
}

func TestPercent(t *testing.T) {
	for p, want := range map[float64]string{
		0.9999: "> 99.9 %", 1: "100 %", 0.999: "99.9 %", 0.5: "50 %", 0.123: "12.3 %", 0: "0 %", 0.0001: "< 0.1 %", 0.001: "0.1 %",
	} {
		if got := percent(p); got != want {
			t.Errorf("%v: got %s, want %s", p, got, want)
		}
	}
	// Only zero is written as 0 %, and only all as 100 %.
	for i := 1; i < 10_000; i++ {
		if got := percent(float64(i) / 10_000); got == "0 %" || got == "100 %" {
			t.Errorf("%d in 10000: got %s", i, got)
		}
	}
}

// If fields were left out, the report does not say that there are no UUIDs.
func TestOverflow(t *testing.T) {
	r := scan.Report{Collections: []scan.Collection{{Namespace: "a.b", Mode: "all", Overflow: true}}}
	var table, page strings.Builder
	Scan(r).Text(&table)
	if err := HTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{table.String(), page.String()} {
		if !strings.Contains(out, "the rest were ignored") || strings.Contains(out, "no UUIDs\n") || strings.Contains(out, "No UUIDs.") {
			t.Error(out)
		}
	}
}

// A name is written on one line and in one cell, whatever characters it contains.
func TestNamesWithLineBreaks(t *testing.T) {
	r := sample()
	f := &r.Collections[0].Fields[0]
	f.Path, f.Evidence[0].Reasons = "a\nshop.orders: all 3 documents\tb", []string{"equal to ids in x.y c\nd"}
	r.Collections[0].Namespace = "shop.e\nf"
	var b strings.Builder
	Scan(r).Text(&b)
	for _, bad := range []string{"\nshop.orders", "\tb", "c\nd", "e\nf"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q stands in\n%s", bad, &b)
		}
	}
}
