package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Status is how far the conversions and the cutovers of a database are.
type Status struct {
	Database    string            `json:"database"`
	Time        time.Time         `json:"time"`               // of the server, if there was one
	PerSecond   float64           `json:"documentsPerSecond"` // of all runs in progress
	SecondsLeft int64             `json:"secondsLeft"`        // of all that has begun or not, at this rate; 0 if it is not known
	Steps       []StepStatusOf    `json:"conversions"`
	Cutovers    []CutoverStatus   `json:"cutovers"`
	Migrations  []MigrationStatus `json:"migrations,omitempty"`
	Faults      []string          `json:"faults,omitempty"` // of the undo logs in the directory
	Paused      bool              `json:"paused"`
	Limit       int               `json:"limit"` // documents that are written per second; 0 for no limit
	Steering    patience.Steering `json:"-"`     // the files by which a person steers the work; empty without a directory
}

// StepStatusOf is how far one conversion has come.
type StepStatusOf struct {
	Step
	Conversion string `json:"conversion,omitempty"` // its name in the record
	Documents  int64  `json:"documents"`            // about how many there are to read; 0 if it is not known
	Read       int64  `json:"documentsRead"`
	Changed    int64  `json:"documentsChanged"`
	Skipped    int64  `json:"documentsSkipped"`
	// PerSecond is the number of documents that the last run has read per second, and SecondsLeft
	// how long it still reads at this rate. Both are 0 if they are not known.
	PerSecond   float64    `json:"documentsPerSecond,omitempty"`
	SecondsLeft int64      `json:"secondsLeft,omitempty"`
	By          string     `json:"by,omitempty"` // user, host and process of the last run
	Started     *time.Time `json:"started,omitempty"`
	Updated     *time.Time `json:"updated,omitempty"`
	Reason      string     `json:"reason,omitempty"`   // why the last run stopped
	Verified    *bool      `json:"verified,omitempty"` // whether the last proof held; absent if there was none
}

// MigrationStatus is a migration that has written to the record.
type MigrationStatus struct {
	ID        string    `json:"id"`
	Directory string    `json:"directory"` // where the last command had it
	By        string    `json:"by"`        // user, host and process of the last command
	Started   time.Time `json:"started"`   // of the last command
}

// CutoverStatus is how far a cutover has come that has not ended.
type CutoverStatus struct {
	ID          string    `json:"id"` // names it with --db, if the directory of its migration is lost
	Maker       string    `json:"-"`  // the conversion that made one of its copies
	Collections []string  `json:"collections"`
	State       string    `json:"state"`
	Waits       bool      `json:"waitsForRelease"` // the new collections are in place and fenced
	By          string    `json:"by"`
	Begun       time.Time `json:"begun"`
	Updated     time.Time `json:"updated"`
	Next        string    `json:"next"` // the command that goes on
}

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
		if c.Status == DoneStep {
			done++
		}
		switch {
		case c.Status == DoneStep && c.Verified != nil && *c.Verified:
			status = "done, proven"
		case c.Status == DoneStep && c.Verified != nil:
			status = "done, not proven"
		}
		t.AppendRow([]any{name, taskText(c.Task), status, c.Read, known(c.Documents, "%d"), c.Changed, c.Skipped, known(c.PerSecond, "%.0f"),
			known(time.Duration(c.SecondsLeft)*time.Second, "%v")})
	}
	t.Render()
	for _, c := range s.Steps {
		if c.Reason != "" && c.Status == Stopped {
			fmt.Fprintf(w, "\n%s stopped: %s (%s)\n", terminal.Cell(c.Collection), terminal.Cell(c.Reason), terminal.Cell(c.By))
		}
	}
	fmt.Fprintf(w, "\n%d of %d conversions done", done, len(s.Steps))
	if s.PerSecond > 0 {
		fmt.Fprintf(w, "; %.0f documents per second, about %v left", s.PerSecond, time.Duration(max(1, s.SecondsLeft))*time.Second)
	}
	fmt.Fprintln(w)
}
