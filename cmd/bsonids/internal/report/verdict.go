package report

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// Verdict returns the verdict of e in one or two words.
func Verdict(e scan.Evidence) string {
	switch v := e.Verdict; {
	case v.Outcome != scan.Named:
		return fmt.Sprintf("%s (subtype %d)", v, e.Subtype)
	case v.Subtype == bson.TypeBinaryGeneric && v.Order == scan.Network:
		return fmt.Sprintf("likely %s (network order)", v)
	default:
		return fmt.Sprintf("likely %s", v)
	}
}

// Confidence returns the probability of the verdict, or a dash if there is no verdict.
func Confidence(e scan.Evidence) string {
	if e.Verdict.Outcome == scan.Undecided {
		return "–"
	}
	return percent(e.Confidence)
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
	if e.Form == "goStruct" {
		return "Go structs"
	}
	return e.Form
}

// FormHeadline describes the UUIDs of a field in one form in a few words.
func FormHeadline(e scan.FormEvidence) string {
	return distinctOnes(e.Distinct, e.Sample+e.Uninformative, "UUID")
}

// distinctOnes says how many distinct values there are, and how many of them were examined.
func distinctOnes(n int64, examined int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	text := fmt.Sprintf("%d distinct %s", n, noun)
	if int64(examined) < n {
		text = fmt.Sprintf("about %s, %d of them examined", text, examined)
	}
	return text
}

// Headline returns the verdict of e in one sentence.
func Headline(e scan.Evidence) string {
	distinct := distinctOnes(e.Distinct, e.Sample+e.Uninformative, "value")
	switch e.Verdict.Outcome {
	case scan.Undecided:
		return "byte order undetermined (" + distinct + ")"
	case scan.Mixed:
		return fmt.Sprintf("mixed, probability %s (%s)", percent(e.Confidence), distinct)
	}
	return fmt.Sprintf("most likely %s, probability %s (%s)", e.Verdict, percent(e.Confidence), distinct)
}
