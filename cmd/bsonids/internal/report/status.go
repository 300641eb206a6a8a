package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Status is how far the conversions and the cutovers of a database are.
type Status migrate.Status

// Text writes the progress as a table.
func (s Status) Text(w io.Writer) {
	fmt.Fprintf(w, "%s at %s\n", s.Database, s.Time.Format("2006-01-02 15:04:05 MST"))
	for _, c := range s.Cutovers {
		what := "not finished"
		if c.Waits {
			what = "the new collections are in place, and the server refuses writes until the release"
		}
		fmt.Fprintf(w, "\nCutover %s of %s: %s (%s, begun %s)\nGo on with: %s\n", c.ID, terminal.Cell(strings.Join(c.Collections, ", ")), what, c.State, c.Begun.UTC().Format(time.DateTime), c.Next)
	}
	for _, m := range s.Migrations {
		fmt.Fprintf(w, "\nMigration %s: %s, by %s\n", m.ID, terminal.Cell(m.Directory), terminal.Cell(m.By))
	}
	if len(s.Migrations) > 0 {
		fmt.Fprintf(w, "\nIf the directory of one is lost: bsonids plan NEW --db %s --give-up ID\n", terminal.Command(s.Database))
	}
	if s.Paused {
		fmt.Fprintf(w, "\nPaused: apply and undo write nothing until %s is removed.\n", terminal.Cell(s.Steering.Pause))
	}
	if s.Limit > 0 {
		fmt.Fprintf(w, "\napply and undo write at most %d documents per second, as %s says.\n", s.Limit, terminal.Cell(s.Steering.Rate))
	}
	if len(s.Steps) == 0 {
		fmt.Fprintln(w, "There is no conversion in the record.")
	} else {
		s.steps(w)
	}
	for _, f := range s.Faults {
		fmt.Fprintf(w, "\n%s\n", terminal.Cell(f))
	}
}

// steps writes how far the conversions are.
func (s Status) steps(w io.Writer) {
	fmt.Fprintln(w)
	t := newTable(w, "collection", "conversion", "status", "read", "of", "changed", "skipped", "per second", "left")
	done := 0
	for _, c := range s.Steps {
		name, status := terminal.Cell(c.Collection), string(c.Status)
		if c.Status == migrate.Done {
			done++
		}
		switch {
		case c.Status == migrate.Done && c.Verified != nil && *c.Verified:
			status = "done, proven"
		case c.Status == migrate.Done && c.Verified != nil:
			status = "done, not proven"
		}
		t.AppendRow([]any{name, taskText(c.Task), status, c.Read, known(c.Documents, "%d"), c.Changed, c.Skipped, known(c.PerSecond, "%.0f"),
			known(time.Duration(c.SecondsLeft)*time.Second, "%v")})
	}
	t.Render()
	for _, c := range s.Steps {
		if c.Status == migrate.GivenUp && c.Updated != nil {
			fmt.Fprintf(w, "\n%s was given up at %s by %s: values stay converted whose undo logs are lost\n", terminal.Cell(c.Collection), c.Updated.UTC().Format(time.DateTime), terminal.Cell(c.By))
		}
		if c.Reason != "" && c.Status == migrate.Stopped {
			fmt.Fprintf(w, "\n%s stopped: %s (%s)\n", terminal.Cell(c.Collection), terminal.Cell(c.Reason), terminal.Cell(c.By))
		}
	}
	fmt.Fprintf(w, "\n%d of %d conversions done", done, len(s.Steps))
	if s.PerSecond > 0 {
		fmt.Fprintf(w, "; %.0f documents per second, about %v left", s.PerSecond, time.Duration(max(1, s.SecondsLeft))*time.Second)
	}
	fmt.Fprintln(w)
}
