package report

import (
	"strings"
	"testing"
)

// Copies that differ from their collections are named, and the conversion is not said to be done.
func TestApplyUnverified(t *testing.T) {
	var b strings.Builder
	step := func(name, into string, status StepStatus) AppliedStep {
		return AppliedStep{Step: Step{Conversion: Conversion{Collection: name, Into: into}, Status: status}}
	}
	a := Applied{Database: "db", Dir: "dir", Written: true, Finished: true, Steps: []AppliedStep{step("a", "a_new", Unverified), step("b", "b_new", DoneStep), step("c", "", DoneStep)}}
	a.Text(&b)
	if s := b.String(); strings.Contains(s, "Done.") || !strings.Contains(s, "1 of 2 copies still differed from their collections: a_new. ") {
		t.Error(s)
	}
	a.Steps[0].Status = DoneStep
	b.Reset()
	if a.Text(&b); !strings.Contains(b.String(), "Done.") {
		t.Error(b.String())
	}
}
