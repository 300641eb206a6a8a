package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// StepStatusOf is how far one conversion has come.
type StepStatusOf struct {
	Collection string     `json:"collection"`
	Filter     string     `json:"filter,omitempty"` // in extended JSON
	From       string     `json:"from"`
	To         string     `json:"to"`
	Into       string     `json:"into,omitempty"`
	Part       string     `json:"part,omitempty"`
	Conversion string     `json:"conversion,omitempty"` // its name in the record
	Status     StepStatus `json:"status"`
	Documents  int64      `json:"documents"` // about how many there are to read; 0 if it is not known
	Read       int64      `json:"documentsRead"`
	Changed    int64      `json:"documentsChanged"`
	Skipped    int64      `json:"documentsSkipped"`
	// PerSecond is the number of documents that the last run has read per second, and SecondsLeft
	// how long it still reads at this rate. Both are 0 if they are not known.
	PerSecond   float64    `json:"documentsPerSecond,omitempty"`
	SecondsLeft int64      `json:"secondsLeft,omitempty"`
	By          string     `json:"by,omitempty"` // user, host and process of the last run
	Started     *time.Time `json:"started,omitempty"`
	Updated     *time.Time `json:"updated,omitempty"`
	Reason      string     `json:"reason,omitempty"`   // why the last run stopped
	Verified    *bool      `json:"verified,omitempty"` // whether the last proof held; absent if there was none
	// Stream is set while a copy follows its source.
	Stream *record.Stream `json:"stream,omitempty"`
}

// BeingUndone is the status of a conversion while bsonids undo restores its values.
const BeingUndone StepStatus = "being undone"

// Add adds a run of the conversion, which began after those that were added before. now is the time
// of the server.
func (s *StepStatusOf) Add(r *record.Run, now time.Time) {
	s.By = r.By.String()
	s.Started, s.Updated, s.Reason, s.Part = &r.Started, &r.Updated, r.Reason, r.Part
	s.PerSecond, s.SecondsLeft, s.Stream = 0, 0, nil
	alive := r.Alive(now)
	if r.Kind == record.Undo {
		switch {
		case alive:
			s.Status = BeingUndone
		case r.Outcome == record.Done:
			s.Status = WasUndone
		default:
			s.Status, s.Reason = Stopped, stopReason(r, "the undo was killed")
		}
		return
	}
	if r.Progress.Documents > 0 {
		s.Documents = r.Progress.Documents
	}
	s.Read = min(s.Read+r.Progress.Read, max(s.Documents, r.Progress.Read))
	s.Changed, s.Skipped = max(s.Changed, r.Progress.Changed), max(s.Skipped, r.Progress.Skipped)
	if r.Verified != nil {
		s.Verified = &r.Verified.Proven
	}
	switch {
	case alive:
		s.Status, s.Stream = Running, r.Progress.Stream
	case r.Outcome == record.Done:
		s.Status, s.Read = DoneStep, s.Documents
	default:
		s.Status, s.Reason = Stopped, stopReason(r, "the run was killed")
	}
	if r.Undone != nil {
		s.Status = WasUndone
		if !r.Undone.Complete {
			s.Status = Stopped
			s.Reason = "the undo is not complete"
		}
	}
	if took := r.Updated.Sub(r.Started).Seconds(); took > 0 && r.Progress.Read > 0 {
		s.PerSecond = float64(r.Progress.Read) / took
		if alive {
			s.SecondsLeft = int64(float64(max(0, s.Documents-s.Read)) / s.PerSecond)
		}
	}
}

// stopReason returns why a run stopped.
func stopReason(r *record.Run, killed string) string {
	if r.Ended == nil {
		return killed
	}
	return r.Reason
}

// Progress is how far the conversions of a database have come.
type Progress struct {
	Database    string
	Time        time.Time // of the server, if there was one
	Steps       []StepStatusOf
	PerSecond   float64 // of all runs in progress
	SecondsLeft int64   // of all that has begun or not, at this rate; 0 if it is not known
	Divisions   []DivisionStatus
	Cutovers    []CutoverStatus
	Guards      []GuardStatus
	Migrations  []MigrationStatus
	Unfit       string            // why the record and the directory do not fit; empty if they do
	Steering    patience.Steering // the files by which a person steers the work; empty without a directory
	Paused      bool
	Limit       int // documents that are written per second; 0 for no limit
}

// MigrationStatus is a migration that has written to the record.
type MigrationStatus struct {
	ID        string     `json:"id"`
	To        string     `json:"to"`
	Directory string     `json:"directory"` // where the last command had it
	By        string     `json:"by"`        // user, host and process of the last command
	Commands  int64      `json:"commands"`  // that have written
	Started   time.Time  `json:"started"`   // of the last command
	Abandoned *time.Time `json:"abandoned,omitempty"`
}

// CutoverStatus is how far a cutover has come that has not ended.
type CutoverStatus struct {
	Collections []string  `json:"collections"`
	State       string    `json:"state"`
	Waits       bool      `json:"waitsForRelease"` // the new collections are in place and fenced
	By          string    `json:"by"`
	Begun       time.Time `json:"begun"`
	Updated     time.Time `json:"updated"`
	Next        string    `json:"next"` // the command that goes on
}

// GuardStatus is a guard that is set, or is being set or removed.
type GuardStatus struct {
	Collection string    `json:"collection"`
	Level      string    `json:"level"`
	State      string    `json:"state"`
	Against    string    `json:"against"` // the values that it refuses
	Updated    time.Time `json:"updated"`
	Release    string    `json:"release"` // the command that removes it
}

// NewStatus returns the progress of the conversions.
func NewStatus(database string, at time.Time, steps []StepStatusOf) Progress {
	p := Progress{Database: database, Time: at.UTC(), Steps: steps}
	var left int64
	for _, s := range steps {
		switch s.Status {
		case Running:
			p.PerSecond += s.PerSecond
			left += max(0, s.Documents-s.Read)
		case NotBegun, Stopped:
			left += max(0, s.Documents-s.Read)
		}
	}
	if p.PerSecond > 0 {
		p.SecondsLeft = int64(float64(left) / p.PerSecond)
	}
	return p
}

// StatusJSON writes the progress as JSON.
func StatusJSON(w io.Writer, p Progress) error {
	if p.Steps == nil {
		p.Steps = []StepStatusOf{}
	}
	if p.Cutovers == nil {
		p.Cutovers = []CutoverStatus{}
	}
	return JSON(w, struct {
		Database    string            `json:"database"`
		Time        time.Time         `json:"time"`
		PerSecond   float64           `json:"documentsPerSecond"`
		SecondsLeft int64             `json:"secondsLeft"`
		Conversions []StepStatusOf    `json:"conversions"`
		Divisions   []DivisionStatus  `json:"divisions,omitempty"`
		Cutovers    []CutoverStatus   `json:"cutovers"`
		Guards      []GuardStatus     `json:"guards,omitempty"`
		Migrations  []MigrationStatus `json:"migrations,omitempty"`
		Unfit       string            `json:"unfit,omitempty"`
		Paused      bool              `json:"paused"`
		Limit       int               `json:"limit"`
	}{p.Database, p.Time, p.PerSecond, p.SecondsLeft, p.Steps, p.Divisions, p.Cutovers, p.Guards, p.Migrations, p.Unfit, p.Paused, p.Limit})
}

// Status writes the progress as a table.
func Status(w io.Writer, p Progress) {
	fmt.Fprintf(w, "%s at %s\n", p.Database, p.Time.Format("2006-01-02 15:04:05 MST"))
	for _, c := range p.Cutovers {
		what := "not finished"
		if c.Waits {
			what = "the new collections are in place, and the server refuses writes until the release"
		}
		fmt.Fprintf(w, "\nCutover of %s: %s (%s, begun %s)\nGo on with: %s\n", terminal.Cell(strings.Join(c.Collections, ", ")), what, c.State, c.Begun.UTC().Format(time.DateTime), c.Next)
	}
	for _, g := range p.Guards {
		state := ""
		if g.State != record.Set {
			state = " (" + g.State + ")"
		}
		fmt.Fprintf(w, "\nThe guard of %s, at level %s, refuses %s%s.\nLet it go with: %s\n", terminal.Cell(g.Collection), g.Level, terminal.Cell(g.Against), state, g.Release)
	}
	if p.Unfit != "" {
		fmt.Fprintf(w, "\n%s\n", terminal.Cell(p.Unfit))
	}
	for _, m := range p.Migrations {
		state := ""
		if m.Abandoned != nil {
			state = ", abandoned on " + m.Abandoned.UTC().Format(time.DateTime)
		}
		fmt.Fprintf(w, "\nMigration %s to %s: %s, by %s%s\n", m.ID, m.To, terminal.Cell(m.Directory), terminal.Cell(m.By), state)
	}
	if p.Paused {
		fmt.Fprintf(w, "\nPaused: apply and undo write nothing until %s is removed.\n", terminal.Cell(p.Steering.Pause))
	}
	if p.Limit > 0 {
		fmt.Fprintf(w, "\napply and undo write at most %d documents per second, as %s says.\n", p.Limit, terminal.Cell(p.Steering.Rate))
	}
	if len(p.Steps) == 0 {
		fmt.Fprintln(w, "There is no conversion in the record.")
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, "collection", "conversion", "status", "read", "of", "changed", "skipped", "per second", "left")
	done := 0
	for _, s := range p.Steps {
		if s.Status == DoneStep {
			done++
		}
		name := terminal.Cell(s.Collection)
		if s.Part != "" {
			name += ", part " + s.Part
		}
		status := string(s.Status)
		if s.Verified != nil && s.Status == DoneStep {
			status = map[bool]string{true: "done, proven", false: "done, not proven"}[*s.Verified]
		}
		if s.Stream != nil {
			status = fmt.Sprintf("following, %d s behind", s.Stream.LagSeconds)
			if s.Stream.Pending > 0 {
				status += fmt.Sprintf(", %d documents pending", s.Stream.Pending)
			}
		}
		t.AppendRow([]any{name, AppliedStep{Filter: s.Filter, From: s.From, To: s.To, Into: s.Into}.conversion(), status, s.Read, count(s.Documents), s.Changed, s.Skipped,
			rate(s.PerSecond), duration(s.SecondsLeft)})
	}
	t.Render()
	divisions(w, p.Divisions)
	for _, s := range p.Steps {
		if s.Reason != "" && s.Status == Stopped {
			fmt.Fprintf(w, "\n%s stopped: %s (%s)\n", terminal.Cell(s.Collection), terminal.Cell(s.Reason), terminal.Cell(s.By))
		}
	}
	fmt.Fprintf(w, "\n%d of %d conversions done", done, len(p.Steps))
	if p.PerSecond > 0 {
		fmt.Fprintf(w, "; %s documents per second, about %s left", rate(p.PerSecond), duration(max(1, p.SecondsLeft)))
	}
	fmt.Fprintln(w)
}

func rate(perSecond float64) string {
	if perSecond == 0 {
		return "·"
	}
	return fmt.Sprintf("%.0f", perSecond)
}

func duration(seconds int64) string {
	if seconds == 0 {
		return "·"
	}
	return (time.Duration(seconds) * time.Second).String()
}
