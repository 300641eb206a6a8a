package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Proof is what bsonids verify found.
type Proof migrate.Proof

// Text writes the results as a table.
func (p Proof) Text(w io.Writer) {
	name := p.Database
	if p.Dump != nil {
		name = p.Dump.Path
	}
	fmt.Fprintf(w, "%s\n\n", name)
	t := newTable(w, "collection", "conversion", "read", "old values", "left", "proven", "wrong", "changed or deleted since", "result")
	for _, s := range p.Steps {
		v, result := s.Result, "not proven"
		switch {
		case s.Proven:
			result = "proven"
		case s.Basis == "", s.Result.Finished != nil && !*s.Result.Finished:
			result += ": " + string(s.Status)
		}
		t.AppendRow([]any{terminal.Cell(s.Collection), taskText(s.Task), v.Read, v.Old, v.Left, v.Proven, v.Wrong + v.Missing + v.Extra, v.Changed + v.Gone, result})
	}
	t.Render()
	for _, s := range p.Steps {
		if s.Reason != "" {
			fmt.Fprintf(w, "\n%s, %s, is not finished: %s\n", terminal.Cell(s.Collection), taskText(s.Task), terminal.Cell(s.Reason))
		}
		findings(w, s.Task, s.Result.Skips)
	}
	if p.Dump != nil {
		dumpProof(w, p.Dump)
	}
	but := ""
	if n := migrate.Proof(p).Left(); n > 0 {
		but = fmt.Sprintf(" but %d, which the decisions leave", n)
	}
	switch {
	case p.Proven && p.Dump != nil:
		fmt.Fprintf(w, "\nProven by the dump, and the evidence of its plan: %s holds its documents in their order, each converted%s, byte for byte, and no others.\n", p.Dump.Out, but)
	case p.Proven:
		what := "all values are converted, and none is lost."
		if left := migrate.Proof(p).Left(); left > 0 {
			what = fmt.Sprintf("no value is lost, and all are converted but %d, which are left; the skip lists have them with the reasons.", left)
		}
		fmt.Fprintf(w, "\nProven by the undo logs and the sources of the copies: %s\n", what)
	default:
		fmt.Fprintln(w, "\nNot proven.")
		if slices.ContainsFunc(p.Steps, func(s migrate.StepProof) bool { return !s.Proven && s.Result.Changed+s.Result.Gone > 0 }) {
			fmt.Fprintln(w, "To accept documents that other programs changed or deleted since, give --allow-changed.")
		}
	}
}

// Undone is what bsonids undo did, or would do.
type Undone struct {
	Database string               `json:"database"`
	Written  bool                 `json:"written"`
	Steps    []migrate.UndoneStep `json:"steps"`
}

// Text writes the results as a table.
func (u Undone) Text(w io.Writer) {
	verb := "to restore"
	if u.Written {
		verb = "restored"
	}
	fmt.Fprintf(w, "%s: undo%s\n\n", u.Database, dry(u.Written))
	t := newTable(w, "collection", "conversion", "documents "+verb, "already restored", "deleted since", "changed since", "note")
	var left, foreign int64
	accepted := false
	for _, s := range u.Steps {
		r, note := s.Result, ""
		accepted, left, foreign = accepted || r.Accepted, left+r.Left, foreign+r.Foreign
		switch {
		case s.Into != "" && s.Status == migrate.NotBegun, s.Into == "" && !s.Begun:
			note = "not begun"
		case s.Into != "":
			note = "a copy: drop " + terminal.Cell(s.Into) + " if you do not need it"
		}
		t.AppendRow([]any{terminal.Cell(s.Collection), taskText(s.Task), r.Restored, r.Already, r.Gone, r.Changed, note})
	}
	t.Render()
	for _, s := range u.Steps {
		findings(w, s.Task, s.Result.Skips)
	}
	if foreign > 0 {
		fmt.Fprintf(w, "\n%d values of the new representation are in none of the undo logs: other programs or other runs wrote them, or a log that is lost had them. undo leaves them.\n", foreign)
	}
	if left > 0 && u.Written && !accepted {
		fmt.Fprintln(w, "\nTo accept the values that are not restored, and to end the undo, give --allow-changed.")
	}
}
