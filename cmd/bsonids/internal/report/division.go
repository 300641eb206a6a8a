package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// DivisionStatus is how far the conversion of a collection by parts has come: the sum of its parts.
type DivisionStatus struct {
	stepKey
	Parts   int      `json:"parts"`
	Done    int      `json:"partsDone"`
	Proven  int      `json:"partsProven"`
	Missing []string `json:"partsMissing"` // those that have not begun, and have no plan that was applied
	// The documents are those of all parts.
	Documents int64 `json:"documents"`
	Read      int64 `json:"documentsRead"`
	Changed   int64 `json:"documentsChanged"`
	Skipped   int64 `json:"documentsSkipped"`
}

// stepKey tells conversions apart whose parts are added up.
type stepKey struct {
	Collection string `json:"collection"`
	Filter     string `json:"filter,omitempty"`
	From       string `json:"from"`
	To         string `json:"to"`
	Into       string `json:"into,omitempty"`
}

// Divisions adds up the conversions that are of parts. Those that were undone are left out.
func Divisions(steps []StepStatusOf) (all []DivisionStatus) {
	type division struct {
		stepKey
		of string
	}
	var order []division
	parts := make(map[division]map[string][]StepStatusOf)
	for _, s := range steps {
		_, of, ok := strings.Cut(s.Part, "/")
		if !ok || s.Status == WasUndone {
			continue
		}
		key := division{stepKey{s.Collection, s.Filter, s.From, s.To, s.Into}, of}
		if parts[key] == nil {
			order, parts[key] = append(order, key), make(map[string][]StepStatusOf)
		}
		parts[key][s.Part] = append(parts[key][s.Part], s)
	}
	for _, key := range order {
		d := DivisionStatus{stepKey: key.stepKey, Missing: []string{}}
		for _, part := range record.Parts(key.of) {
			d.Parts++
			of := parts[key][part]
			if len(of) == 0 {
				d.Missing = append(d.Missing, part)
				continue
			}
			if !slices.ContainsFunc(of, func(s StepStatusOf) bool { return s.Status != DoneStep }) {
				d.Done++
				if !slices.ContainsFunc(of, func(s StepStatusOf) bool { return s.Verified == nil || !*s.Verified }) {
					d.Proven++
				}
			}
			for _, s := range of {
				d.Documents, d.Read, d.Changed, d.Skipped = d.Documents+s.Documents, d.Read+s.Read, d.Changed+s.Changed, d.Skipped+s.Skipped
			}
		}
		all = append(all, d)
	}
	return all
}

// divisions writes the sums of parts.
func divisions(w io.Writer, all []DivisionStatus) {
	for _, d := range all {
		fmt.Fprintf(w, "\n%s, %s: %d of %d parts done, %d proven; %d of %d documents read, %d changed, %d skipped\n", terminal.Cell(d.Collection),
			AppliedStep{Filter: d.Filter, From: d.From, To: d.To, Into: d.Into}.conversion(), d.Done, d.Parts, d.Proven, d.Read, d.Documents, d.Changed, d.Skipped)
		if len(d.Missing) > 0 {
			fmt.Fprintf(w, "Not begun: part %s\n", strings.Join(d.Missing, ", "))
		}
	}
}
