package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// StepProof is the result of a proof of one conversion of a plan. Basis is empty if the conversion
// has not begun or was undone.
type StepProof struct {
	Step   AppliedStep
	Proven bool
	Basis  Basis
	Result convert.Verified
}

// PlanProofJSON writes the results of the proofs of a plan as JSON. dump is nil for a database of a server.
func PlanProofJSON(w io.Writer, database string, dump *DumpProof, proofs []StepProof, proven bool) error {
	type step struct {
		stepName
		Status  StepStatus       `json:"status"`
		Proven  bool             `json:"proven"`
		RestsOn Basis            `json:"restsOn,omitempty"`
		Result  convert.Verified `json:"result"`
	}
	steps := []step{}
	for _, p := range proofs {
		steps = append(steps, step{p.Step.name(), p.Step.Status, p.Proven, p.Basis, p.Result})
	}
	return JSON(w, struct {
		Database string `json:"database"`
		Dump     any    `json:"dump,omitempty"`
		Proven   bool   `json:"proven"`
		Steps    []step `json:"steps"`
	}{database, dump.json(), proven, steps})
}

// PlanProof writes the results of the proofs of a plan.
func PlanProof(w io.Writer, database string, dump *DumpProof, proofs []StepProof, proven bool) {
	if dump != nil {
		database = dump.Path
	}
	fmt.Fprintf(w, "%s\n\n", database)
	t := newTable(w, "collection", "conversion", "read", "old values", "left", "proven", "wrong", "changed or deleted since", "result")
	for _, p := range proofs {
		v := p.Result
		result := "not proven: " + string(p.Step.Status)
		switch {
		case p.Proven:
			result = "proven"
		case p.Basis != "":
			result = "not proven"
		}
		t.AppendRow([]any{terminal.Cell(p.Step.Collection), p.Step.conversion(), v.Read, v.Old, v.Left, v.Proven, v.Wrong + v.Missing + v.Extra + v.Unlogged, v.Changed + v.Gone, result})
	}
	t.Render()
	for _, p := range proofs {
		p.Step.findings(w, p.Result.Skips)
	}
	if dump != nil {
		dump.write(w)
	}
	switch {
	case proven && dump != nil:
		fmt.Fprintf(w, "\nProven by the dump, and the evidence of its plan: %s holds its documents in their order, each converted, byte for byte, and no others.\n", dump.Out)
	case proven:
		fmt.Fprintln(w, "\nProven by the undo logs and the sources of the copies: all values are converted, and none is lost.")
	default:
		fmt.Fprintln(w, "\nNot proven.")
		if slices.ContainsFunc(proofs, func(p StepProof) bool { return !p.Proven && p.Result.Changed+p.Result.Gone > 0 }) {
			fmt.Fprintln(w, "To accept documents that other programs changed or deleted since, give --allow-changed.")
		}
	}
}

// UndoneStep is the result of the undo of one conversion of a plan. Begun is false if there was
// nothing to undo.
type UndoneStep struct {
	Step   AppliedStep
	Begun  bool
	Result convert.Undone
}

// PlanUndoneJSON writes the results of the undo of a plan as JSON. write is false for a dry run.
func PlanUndoneJSON(w io.Writer, database string, write bool, undone []UndoneStep) error {
	type step struct {
		stepName
		Undone bool           `json:"undone"`
		Result convert.Undone `json:"result"`
	}
	steps := []step{}
	for _, u := range undone {
		steps = append(steps, step{u.Step.name(), u.Begun, u.Result})
	}
	return JSON(w, struct {
		Database string `json:"database"`
		Written  bool   `json:"written"`
		Steps    []step `json:"steps"`
	}{database, write, steps})
}

// PlanUndone writes the results of the undo of a plan.
func PlanUndone(w io.Writer, database string, write bool, undone []UndoneStep) {
	verb, how := written(write, "restored", "to restore")
	fmt.Fprintf(w, "%s: undo%s\n\n", database, how)
	t := newTable(w, "collection", "conversion", "documents "+verb, "already restored", "deleted since", "changed since", "note")
	var left, foreign int64
	accepted := false
	for _, u := range undone {
		accepted = accepted || u.Result.Accepted
		left, foreign = left+u.Result.Left, foreign+u.Result.Foreign
		r, note := u.Result, ""
		switch {
		case u.Step.Into != "" && u.Step.Status == NotBegun, u.Step.Into == "" && !u.Begun:
			note = "not begun"
		case u.Step.Into != "":
			note = "a copy: drop " + terminal.Cell(u.Step.Into) + " if you do not need it"
		}
		t.AppendRow([]any{terminal.Cell(u.Step.Collection), u.Step.conversion(), r.Restored, r.Already, r.Gone, r.Changed, note})
	}
	t.Render()
	for _, u := range undone {
		u.Step.findings(w, u.Result.Skips)
	}
	notRestored(w, left, foreign, write && !accepted)
}
