package report

import (
	"strings"
	"testing"
)

// Copies that differ from their collections are named, and the conversion is not said to be done.
func TestApplyUnverified(t *testing.T) {
	var b strings.Builder
	a := Applied{Database: "db", Written: true, Steps: []AppliedStep{{Collection: "a", Into: "a_new", Status: Unverified}, {Collection: "b", Into: "b_new", Status: DoneStep}, {Collection: "c", Status: DoneStep}}}
	Apply(&b, a, "dir")
	if s := b.String(); strings.Contains(s, "Done.") || !strings.Contains(s, "1 of 2 copies still differed from their collections: a_new. ") {
		t.Error(s)
	}
	a.Steps[0].Status = DoneStep
	b.Reset()
	if Apply(&b, a, "dir"); !strings.Contains(b.String(), "Done.") {
		t.Error(b.String())
	}
}
