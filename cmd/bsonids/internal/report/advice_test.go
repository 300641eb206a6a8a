package report

import (
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

func evidence(subtype byte, v scan.Verdict) []scan.Evidence {
	return []scan.Evidence{{Subtype: subtype, Verdict: v}}
}

func TestAdvice(t *testing.T) {
	legacy := scan.Counts{Legacy: 1}
	const planOf = "bsonids plan migration.d --db shop --collection orders.eu"
	for name, tt := range map[string]struct {
		c       scan.Collection
		f       scan.Field
		group   string
		command string
	}{
		"java": {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy",
			planOf},
		"partly converted": {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: scan.Counts{Legacy: 1, Standard: 5}, Evidence: evidence(3, "csharpLegacy")}, "csharpLegacy",
			planOf},
		"id": {scan.Collection{Mode: source.All}, scan.Field{Path: "_id", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy",
			planOf},
		"in an id": {scan.Collection{Mode: source.All}, scan.Field{Path: "_id.tenant", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy",
			planOf},
		"generic": {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: scan.Counts{Generic: 1}, Evidence: evidence(0, "generic")}, "generic",
			planOf},
		"subtype 0 in C# order":    {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: scan.Counts{Generic: 1}, Evidence: evidence(0, "subtype 0 in C# order")}, "generic", ""},
		"undetermined in a sample": {scan.Collection{Mode: source.Sample}, scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, scan.Undetermined)}, "undetermined", "bsonids scan --all --db shop --collection orders.eu"},
		"undetermined": {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, scan.Undetermined)}, "undetermined",
			planOf},
		"mixed":     {scan.Collection{Mode: source.All}, scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, scan.Mixed)}, "mixed", planOf},
		"standard":  {scan.Collection{}, scan.Field{Path: "a", Counts: scan.Counts{Standard: 1}}, "standard", ""},
		"text":      {scan.Collection{}, scan.Field{Path: "a", Counts: scan.Counts{Text: 1}}, "text", planOf},
		"binary":    {scan.Collection{}, scan.Field{Path: "a", Counts: scan.Counts{Generic: 1}, Evidence: evidence(0, scan.Undetermined)}, "binary", ""},
		"malformed": {scan.Collection{}, scan.Field{Path: "a", Counts: scan.Counts{Malformed: 1}}, "malformed", ""},
	} {
		tt.c.Namespace = "shop.orders.eu"
		if got := groupOf(tt.f); got != tt.group {
			t.Errorf("%s: group %s, want %s", name, got, tt.group)
		}
		if got := adviseOn(tt.c, tt.f); got.Command != tt.command || got.Text == "" {
			t.Errorf("%s: %+v, want %s", name, got, tt.command)
		}
	}
}

// Every field is in one group of the summary.
func TestSummary(t *testing.T) {
	s := summarize(sample())
	n := 0
	for _, g := range s.Groups {
		n += g.N
	}
	if s.Collections != 2 || s.WithUUIDs != 1 || s.Fields != 2 || n != s.Fields || s.Documents != 1000 || !s.Sampled {
		t.Errorf("%+v", s)
	}
	var b strings.Builder
	if err := HTML(&b, scan.Report{}); err != nil || !strings.Contains(b.String(), "There are no collections.") {
		t.Errorf("%v\n%s", err, &b)
	}
}
