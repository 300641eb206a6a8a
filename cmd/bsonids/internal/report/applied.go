package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// StepStatus is how far a conversion of a plan has come.
type StepStatus string

// The statuses.
const (
	NotBegun   StepStatus = "not begun"
	Running    StepStatus = "running"
	Stopped    StepStatus = "stopped"
	DoneStep   StepStatus = "done"
	Unverified StepStatus = "not verified" // the copy differs from its source
	WasUndone  StepStatus = "undone"
)

// AppliedStep is one conversion of a plan.
type AppliedStep struct {
	Collection string     `json:"collection"`
	Filter     string     `json:"filter,omitempty"` // in extended JSON
	From       string     `json:"from"`
	To         string     `json:"to"`
	Into       string     `json:"into,omitempty"`
	Part       string     `json:"part,omitempty"` // of the documents, such as 2/8; empty for all
	Fields     []string   `json:"fields"`
	Pass       int        `json:"pass,omitempty"`   // of several that convert a collection from one representation
	Listed     bool       `json:"listed,omitempty"` // only values are converted that an earlier pass has listed
	Status     StepStatus `json:"status"`
	Values     int64      `json:"values"`    // changed by all runs, or to change
	Documents  int64      `json:"documents"` // changed by all runs
	Skipped    int64      `json:"documentsSkipped"`
	SkipList   string     `json:"skipList,omitempty"` // path of the file
	// Stream is how the copy followed its collection. It is nil if it did not.
	Stream *convert.Followed `json:"stream,omitempty"`
	// Findings are documents of a copy that differ from their sources.
	Findings []convert.Skip `json:"findings,omitempty"`
	// SkippedFor counts, by reason, the values that this run left as they are.
	SkippedFor rule.Tally `json:"skippedFor,omitempty"`
}

// Applied is what bsonids apply did, or would do.
type Applied struct {
	Database string
	Written  bool
	Failed   bool     // it stopped before its end
	Changes  []string // of the plan since it was applied last
	Steps    []AppliedStep
	Guards   []Guard
	Dump     *AppliedDump // nil for a database of a server
}

// AppliedDump is the dump that was converted.
type AppliedDump struct {
	Path      string `json:"path"`
	Out       string `json:"out,omitempty"` // empty for a dry run
	SkipList  string `json:"skipList,omitempty"`
	Constants int64  `json:"constantsLeft"` // in options, indexes and views
}

// AppliedJSON writes a as JSON.
func AppliedJSON(w io.Writer, a Applied) error {
	return JSON(w, struct {
		Database string        `json:"database"`
		Dump     *AppliedDump  `json:"dump,omitempty"`
		Written  bool          `json:"written"`
		Finished bool          `json:"finished"`
		Changes  []string      `json:"changes,omitempty"`
		Steps    []AppliedStep `json:"steps"`
		Guards   []Guard       `json:"guards,omitempty"`
	}{a.Database, a.Dump, a.Written, a.Written && !a.Failed, a.Changes, a.Steps, a.Guards})
}

// Apply writes a as a table. dir is the directory of the migration.
func Apply(w io.Writer, a Applied, dir string) {
	_, how := written(a.Written, "", "")
	name := a.Database
	if a.Dump != nil {
		name = a.Dump.Path
	}
	fmt.Fprintf(w, "%s: %s%s\n\n", name, dir, how)
	header := []any{"collection", "conversion", "values", "documents", "skipped", "status"}
	if !a.Written {
		header = []any{"collection", "conversion", "fields", "values", "status"}
	}
	t := newTable(w, header...)
	var skipped int64
	var lists, differ []string
	copies := 0
	why := rule.Tally{}
	found := false
	if a.Dump != nil && a.Dump.SkipList != "" {
		lists = append(lists, a.Dump.SkipList)
	}
	for _, s := range a.Steps {
		row := []any{terminal.Cell(s.Collection), s.conversion()}
		if a.Written {
			row = append(row, s.Values, s.Documents, s.Skipped, string(s.Status))
		} else {
			row = append(row, len(s.Fields), s.Values, string(s.Status))
		}
		t.AppendRow(row)
		skipped += s.Skipped
		found = found || len(s.Findings) > 0
		for reason, n := range s.SkippedFor {
			why.Add(reason, n)
		}
		if s.Into != "" {
			copies++
		}
		if s.Status == Unverified {
			differ = append(differ, terminal.Cell(s.Into))
		}
		if s.SkipList != "" && a.Dump == nil {
			lists = append(lists, s.SkipList)
		}
	}
	t.Render()
	for _, s := range a.Steps {
		s.findings(w, s.Findings)
		s.followed(w)
	}
	reasons(w, why)
	if skipped > 0 {
		fmt.Fprintf(w, "\n%d documents have values that are left as they are; the skip lists are in %s.\n", skipped, dir)
	}
	for _, l := range lists {
		fmt.Fprintf(w, "  %s\n", l)
	}
	if a.Dump != nil && a.Dump.Constants > 0 {
		fmt.Fprintf(w, "\n%d constants in options, indexes and views are left as they are.\n", a.Dump.Constants)
	}
	guards(w, a.Guards, a.Written)
	switch {
	case a.Failed:
	case !a.Written && a.Dump != nil:
		fmt.Fprintln(w, "\nTo write the converted dump, add --out.")
	case !a.Written:
		fmt.Fprintln(w, "\nTo change them, add --write.")
	case a.followed() && len(differ) > 0:
		fmt.Fprintf(w, "\n%d of %d copies differ from their collections: %s; see the findings. The copies do not follow any more. The same command continues.\n",
			len(differ), copies, strings.Join(differ, ", "))
	case a.followed():
		fmt.Fprintln(w, "\nThe copies do not follow any more. The same command continues.")
	case found:
		fmt.Fprintf(w, "\nEvery conversion has come to its end, but %d of %d copies are not verified: %s; see the findings. Their collections were not changed.\n",
			len(differ), copies, strings.Join(differ, ", "))
	case len(differ) > 0:
		fmt.Fprintf(w, "\nEvery conversion has come to its end, but %d of %d copies still differed from their collections: %s. Other programs write to these. "+
			"Run the same command again, or put the copies in place with bsonids cutover, which brings them up to date.\n", len(differ), copies, strings.Join(differ, ", "))
	case a.Dump != nil && a.Dump.Out == "-":
		fmt.Fprintf(w, "\nDone. To verify the conversion, run bsonids verify %s INPUT OUTPUT.\n", terminal.Quote(dir))
	default:
		fmt.Fprintf(w, "\nDone. To verify the conversions, run bsonids verify %s.\n", terminal.Quote(dir))
	}
}

// followed writes how a copy followed its collection.
func (s AppliedStep) followed(w io.Writer) {
	f := s.Stream
	if f == nil {
		return
	}
	into, of := terminal.Cell(s.Into), terminal.Cell(s.Collection)
	fmt.Fprintf(w, "\n%s: %d events of the change stream, %d documents written, %d deleted\n", into, f.Events, f.Written, f.Deleted)
	switch {
	case !f.CaughtUp:
		fmt.Fprintf(w, "%s had not caught up with %s.\n", into, of)
	case s.Status == DoneStep:
		fmt.Fprintf(w, "Verified: %s has every change of %s, except those of the last %d seconds.\n", into, of, f.LagSeconds)
	}
}

// followed reports whether copies followed their collections.
func (a Applied) followed() bool {
	return slices.ContainsFunc(a.Steps, func(s AppliedStep) bool { return s.Stream != nil })
}

// stepName tells a conversion of a plan from the others.
type stepName struct {
	Collection string `json:"collection"`
	Filter     string `json:"filter,omitempty"`
	From       string `json:"from"`
	To         string `json:"to"`
	Into       string `json:"into,omitempty"`
	Part       string `json:"part,omitempty"`
}

func (s AppliedStep) name() stepName {
	return stepName{s.Collection, s.Filter, s.From, s.To, s.Into, s.Part}
}

// findings writes findings about the documents of the conversion.
func (s AppliedStep) findings(w io.Writer, found []convert.Skip) {
	if len(found) > 0 {
		fmt.Fprintf(w, "\n%s, %s:", terminal.Cell(s.Collection), s.conversion())
		findings(w, found)
	}
}

func (s AppliedStep) conversion() string {
	text := s.From + " to " + s.To
	if s.Into != "" {
		text += ", into " + terminal.Cell(s.Into)
	}
	if s.Filter != "" {
		text += ", filter " + terminal.Cell(s.Filter)
	}
	if s.Part != "" {
		text += ", part " + s.Part
	}
	switch {
	case s.Listed:
		text += ", listed values of " + terminal.Cell(strings.Join(s.Fields, ", "))
	case s.Pass > 0:
		text += ", " + terminal.Cell(strings.Join(s.Fields, ", "))
	}
	return strings.TrimSpace(text)
}
