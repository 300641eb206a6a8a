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
	legacy, generic := scan.Counts{Legacy: 1}, scan.Counts{Generic: 1}
	undecided := scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, scan.Undetermined)}
	const planOf = "bsonids plan migration.d --db shop --collection orders.eu"
	for name, tt := range map[string]struct {
		f       scan.Field
		group   string
		command string
	}{
		"java":                     {scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy", planOf},
		"partly converted":         {scan.Field{Path: "a", Counts: scan.Counts{Legacy: 1, Standard: 5}, Evidence: evidence(3, "csharpLegacy")}, "csharpLegacy", planOf},
		"id":                       {scan.Field{Path: "_id", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy", planOf},
		"in an id":                 {scan.Field{Path: "_id.tenant", Counts: legacy, Evidence: evidence(3, "javaLegacy")}, "javaLegacy", planOf},
		"generic":                  {scan.Field{Path: "a", Counts: generic, Evidence: evidence(0, "generic")}, "generic", planOf},
		"subtype 0 in C# order":    {scan.Field{Path: "a", Counts: generic, Evidence: evidence(0, "subtype 0 in C# order")}, "generic", ""},
		"undetermined in a sample": {undecided, "undetermined", "bsonids scan --all --db shop --collection orders.eu"},
		"undetermined":             {undecided, "undetermined", planOf},
		"mixed":                    {scan.Field{Path: "a", Counts: legacy, Evidence: evidence(3, scan.Mixed)}, "mixed", planOf},
		"standard":                 {scan.Field{Path: "a", Counts: scan.Counts{Standard: 1}}, "standard", ""},
		"text in binary":           {scan.Field{Path: "a", Counts: scan.Counts{BinaryText: 1, Text: 1, Malformed: 1}}, "binaryText", planOf},
		"text":                     {scan.Field{Path: "a", Counts: scan.Counts{Text: 1}}, "text", planOf},
		"text and standard":        {scan.Field{Path: "a", Counts: scan.Counts{Text: 1, Standard: 1}}, "standard", planOf},
		"Go structs":               {scan.Field{Path: "a", Counts: scan.Counts{Structs: 1}}, "goStruct", planOf},
		"empty documents":          {scan.Field{Path: "a", Counts: scan.Counts{Empty: 1, Other: 2}}, "empty", ""},
		"empty beside UUIDs":       {scan.Field{Path: "a", Counts: scan.Counts{Empty: 1, Standard: 2}}, "standard", ""},
		"binary":                   {scan.Field{Path: "a", Counts: generic, Evidence: evidence(0, scan.Undetermined)}, "binary", ""},
		"malformed":                {scan.Field{Path: "a", Counts: scan.Counts{Malformed: 1}}, "malformed", ""},
	} {
		c := scan.Collection{Namespace: "shop.orders.eu", Mode: source.All}
		if strings.HasSuffix(name, "in a sample") {
			c.Mode = source.Sample
		}
		if got := groupOf(tt.f); got != tt.group {
			t.Errorf("%s: group %s, want %s", name, got, tt.group)
		}
		if got := adviseOn(c, tt.f); got.Command != tt.command || got.Text == "" {
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
}
