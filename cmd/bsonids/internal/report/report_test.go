package report

import (
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
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

// page returns the HTML of a report.
func pageOf(t *testing.T, r scan.Report) string {
	t.Helper()
	var b strings.Builder
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// table returns the text of a report.
func tableOf(r Result) string {
	var b strings.Builder
	r.Text(&b)
	return b.String()
}

// has fails the test unless the text has the words and has none of the others.
func has(t *testing.T, text string, words, others []string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
	for _, w := range others {
		if strings.Contains(text, w) {
			t.Errorf("%q stands in\n%s", w, text)
		}
	}
}

// The page is one well-formed file that loads nothing, and has one script, which its policy allows.
// Names from the data are escaped. The page supports light and dark mode, and narrow and wide
// screens.
func TestHTML(t *testing.T) {
	page := pageOf(t, sample())
	if !strings.Contains(page, "script-src "+strings.NewReplacer("+", "&#43;", "'", "&#39;").Replace(digest(script))) {
		t.Error("the policy does not allow the script")
	}
	if n := strings.Count(page, script); n != 1 {
		t.Errorf("the page has the script %d times", n)
	}
	page = strings.Replace(page, "<script>"+script+"</script>", "", 1)
	if m := regexp.MustCompile(`(src|href)\s*=`).FindString(page); m != "" && !strings.Contains(page, "&lt;img src=") {
		t.Errorf("the page has %s", m)
	}
	has(t, page, []string{"prefers-color-scheme: dark", `name="viewport"`, "max-width: 40rem", "items[].id", "javaLegacy (5000 distinct values)", "undetermined", "998\u202f000",
		"a warning", "shop.none", "a random sample of 1000 of about 1000000 documents"}, []string{"<script", "<link", "@import", "url(", "<img"})
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var err error
	for err == nil {
		_, err = d.Token()
	}
	if err != io.EOF {
		t.Fatalf("not well-formed: %v", err)
	}
	has(t, pageOf(t, scan.Report{}), []string{"There are no collections."}, nil)
}

// The parts of a chart lie next to each other, and can all be seen.
func TestBars(t *testing.T) {
	for _, c := range []scan.Counts{{Standard: 1}, {Standard: 1, Legacy: 1_000_000}, {Standard: 1, Legacy: 2, Generic: 3, Text: 4, Malformed: 5, Other: 6}, {Other: 1, Malformed: 999}} {
		var x float64
		for _, b := range bars(c) {
			if b.Width < 0.4 || math.Abs(b.X-x) > 1e-9 {
				t.Errorf("%+v: %+v", c, b)
			}
			x = b.X + b.Width
		}
		if math.Abs(x-100) > 0.001 {
			t.Errorf("%+v: the bars end at %v", c, x)
		}
	}
}

func TestTable(t *testing.T) {
	has(t, tableOf(Scan(sample())), []string{"items[].id", "998000", "javaLegacy", "4990 of 5000", "because", "to determine it: more of them", "no UUIDs"}, []string{"\x1b"})
	// A name is written on one line and in one cell, whatever characters it contains.
	r := sample()
	f := &r.Collections[0].Fields[0]
	f.Path, f.Evidence[0].Reasons = "a\nshop.orders: all 3 documents\tb", []string{"equal to ids in x.y c\nd"}
	r.Collections[0].Namespace = "shop.e\nf"
	has(t, tableOf(Scan(r)), nil, []string{"\nshop.orders", "\tb", "c\nd", "e\nf"})
	// Columns that are rare are there only if they count something.
	for _, n := range []int64{0, 7} {
		r := sample()
		has(t, tableOf(Scan(r)), nil, []string{"Go structs", "empty documents"})
		f := &r.Collections[0].Fields[0]
		f.Counts.Empty = n
		for _, out := range []string{tableOf(Scan(r)), pageOf(t, r)} {
			if n > 0 {
				has(t, out, []string{"empty documents: 7 in place of ids", "cannot be had back"}, []string{"Go structs:"})
			} else {
				has(t, out, nil, []string{"empty documents"})
			}
		}
	}
	// If fields were left out, the report does not say that there are no UUIDs.
	r = scan.Report{Collections: []scan.Collection{{Namespace: "a.b", Mode: "all", Overflow: true}}}
	for _, out := range []string{tableOf(Scan(r)), pageOf(t, r)} {
		has(t, out, []string{"the rest were ignored"}, []string{"no UUIDs\n", "no UUIDs<", "No UUIDs."})
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

// Copies that differ from their collections are named, and the conversion is not said to be done.
func TestApplyUnverified(t *testing.T) {
	step := func(name, into string, status migrate.StepStatus) migrate.AppliedStep {
		return migrate.AppliedStep{Step: migrate.Step{Task: kinds.Task{Collection: name, Into: into}, Status: status}}
	}
	a := Applied{Database: "db", Dir: "dir", Written: true, Finished: true, Steps: []migrate.AppliedStep{step("a", "a_new", migrate.Unverified), step("b", "b_new", migrate.Done), step("c", "", migrate.Done)}}
	has(t, tableOf(a), []string{"1 of 2 copies still differed from their collections: a_new. "}, []string{"Done."})
	a.Steps[0].Status = migrate.Done
	has(t, tableOf(a), []string{"Done."}, nil)
}
