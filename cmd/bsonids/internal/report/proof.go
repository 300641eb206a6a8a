package report

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// Basis is what a proof is based on.
type Basis string

// The bases. [Proof] writes what each of them proves.
const (
	RestsOnUndoLog  Basis = "undoLog"
	RestsOnSource   Basis = "source"   // the collection that was copied
	RestsOnSubtypes Basis = "subtypes" // the subtypes of the current values
)

// ProofJSON writes the result of a proof as JSON.
func ProofJSON(w io.Writer, c Conversion, v convert.Verified, b Basis, proven bool) error {
	return JSON(w, struct {
		Collection string           `json:"collection"`
		Part       string           `json:"part,omitempty"`
		Proven     bool             `json:"proven"`
		RestsOn    Basis            `json:"restsOn"`
		Result     convert.Verified `json:"result"`
	}{c.source(), c.Part, proven, b, v})
}

// Proof writes the result of a proof.
func Proof(w io.Writer, c Conversion, v convert.Verified, b Basis, proven bool) {
	fmt.Fprintf(w, "%s%s: %s to %s\n\n", c.source(), c.part(), c.From.Name, c.To.Name)
	t := newTable(w)
	t.AppendRow([]any{"documents read", v.Read})
	if !c.sameSubtype() {
		t.AppendRow([]any{c.From.Values() + " left", v.Old})
		for _, field := range slices.Sorted(maps.Keys(v.Fields)) {
			t.AppendRow([]any{"  in " + field, v.Fields[field]})
		}
		t.AppendRow([]any{c.To.Values(), v.New})
	}
	if v.Left > 0 {
		t.AppendRow([]any{"values that the decision leaves unchanged", v.Left})
	}
	switch b {
	case RestsOnSource:
		t.AppendRow([]any{"documents equal to their converted source", v.Proven})
		t.AppendRow([]any{"different", v.Wrong})
		t.AppendRow([]any{"missing in " + c.Into, v.Missing})
		t.AppendRow([]any{"in " + c.Into + " without a source", v.Extra})
	case RestsOnUndoLog:
		t.AppendRow([]any{"documents that match the undo log", v.Proven})
		t.AppendRow([]any{"documents that do not match", v.Wrong})
		t.AppendRow([]any{"changed since by other programs", v.Changed})
		t.AppendRow([]any{"deleted since", v.Gone})
		if c.sameSubtype() {
			t.AppendRow([]any{"values that are not in the undo log", v.Unlogged})
		} else if v.Foreign > 0 {
			t.AppendRow([]any{"new values that are not in the undo log", v.Foreign})
		}
	}
	t.Render()
	findings(w, v.Skips)
	if !proven {
		notProven(w, v, b)
		return
	}
	switch b {
	case RestsOnSubtypes:
		what := "subtypes"
		if !c.From.IsBinary() || !c.To.IsBinary() {
			what = "types"
		}
		fmt.Fprintf(w, "\nProven by the %s alone: no value is left to convert. Only the undo log proves that the new values are correct.\n", what)
	case RestsOnSource:
		fmt.Fprintf(w, "\nProven by the source: %s has the converted documents of %s, byte for byte, and no others.\n", c.Into, c.Collection)
	default:
		fmt.Fprintf(w, "\nProven by the undo log: %d documents have the converted values of the log, and no value is left to convert.\n", v.Proven)
		if v.Foreign > 0 {
			fmt.Fprintf(w, "%d other %s are not in the undo log.\n", v.Foreign, c.To.Values())
		}
	}
	if v.Changed+v.Gone+v.Unlogged > 0 {
		fmt.Fprintln(w, "The proof does not cover what other programs changed or deleted since.")
	}
}

// notProven writes why a proof failed, and what to do.
func notProven(w io.Writer, v convert.Verified, b Basis) {
	fmt.Fprintln(w, "\nNot proven.")
	if v.Finished != nil && !*v.Finished {
		fmt.Fprintln(w, "According to the state file, the conversion is not finished: run the same bsonids convert command again.")
	}
	if v.Unlogged > 0 && v.Finished == nil {
		fmt.Fprintln(w, "Only the state file shows which values the conversion left unchanged on purpose: give --state.")
	}
	if b == RestsOnUndoLog && v.Changed+v.Gone > 0 {
		fmt.Fprintln(w, "To accept documents that other programs changed or deleted since, give --allow-changed.")
	}
}
