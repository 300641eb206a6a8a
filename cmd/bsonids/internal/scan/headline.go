package scan

import (
	"fmt"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Headline describes the UUIDs of a field in one form in a few words.
func (e FormEvidence) Headline() string { return terminal.Count(e.Distinct, "distinct UUID") }

// Headline returns the verdict of e in one sentence.
func (e Evidence) Headline() string {
	verdict := string(e.Verdict)
	switch e.Verdict {
	case Undetermined:
		verdict = "byte order undetermined"
	case Mixed:
		verdict = "several byte orders"
	}
	return fmt.Sprintf("%s (%s)", verdict, terminal.Count(e.Distinct, "distinct value"))
}
