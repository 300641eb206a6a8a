package migrate

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Status is how far the conversions and the cutovers of a database are.
type Status struct {
	Database    string            `json:"database"`
	Time        time.Time         `json:"time"`               // of the server, if there was one
	PerSecond   float64           `json:"documentsPerSecond"` // of all runs in progress
	SecondsLeft int64             `json:"secondsLeft"`        // of all that has begun or not, at this rate; 0 if it is not known
	Steps       []StepProgress    `json:"conversions"`
	Cutovers    []CutoverStatus   `json:"cutovers"`
	Migrations  []MigrationStatus `json:"migrations,omitempty"`
	Faults      []string          `json:"faults,omitempty"` // of the undo logs in the directory
	Paused      bool              `json:"paused"`
	Limit       int               `json:"limit"` // documents that are written per second; 0 for no limit
	Steering    patience.Steering `json:"-"`     // the files by which a person steers the work; empty without a directory
}

// StepProgress is how far one conversion has come.
type StepProgress struct {
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

// StatusOfPlan returns the conversions of a plan as if none had begun; those of a dump as in its last output.
func StatusOfPlan(state *plan.State) ([]StepProgress, error) {
	out := []StepProgress{}
	var last *plan.Converted
	if state.Plan.Dump != nil {
		var err error
		if last, err = state.Converted(); err != nil {
			return nil, files.FileError(err)
		}
	}
	for i, st := range state.Steps() {
		s := StepProgress{Step: Fresh(st).Step}
		if state.Plan.Dump == nil {
			s.Conversion = state.Plan.Conversion(st.Task)
		}
		if last != nil {
			s.Status, s.Changed, s.Skipped = Done, last.Steps[i].Documents, last.Steps[i].Skipped
		}
		out = append(out, s)
	}
	return out, nil
}

// StatusOfRecord reads the record of a database. The status has the conversions of the migration in a directory, also those that its
// plan does not have any more, and what is wrong with its undo logs; or all, if state is nil. Of the logs, their sizes are compared with the record, and with checksums all that they have. It lacks the next commands
// for the cutovers.
func StatusOfRecord(ctx context.Context, s *session.Session, database string, state *plan.State, checksums bool) (r Status, err error) {
	r.Cutovers = []CutoverStatus{}
	recorded, err := ReadRecord(ctx, s, database)
	if err != nil {
		return r, err
	}
	r.Time = recorded.Now
	for _, c := range recorded.Cutovers {
		if c.Open() {
			r.Cutovers = append(r.Cutovers, CutoverStatus{ID: c.Conversion(), Maker: c.Collections[0].Maker, Collections: c.Names(), State: c.State, Waits: c.State == record.Switched || c.State == record.Releasing,
				By: c.By.String(), Begun: c.Begun, Updated: c.Updated})
		}
	}
	r.Steps = []StepProgress{}
	if state != nil {
		if r.Steps, err = StatusOfPlan(state); err != nil {
			return r, err
		}
		faults, err := recorded.Faults(state, checksums)
		if err != nil {
			return r, err
		}
		for _, f := range faults {
			r.Faults = append(r.Faults, f.Error())
		}
	}
	for _, run := range recorded.Runs {
		if state != nil && run.Migration != state.Plan.Migration {
			continue
		}
		i := slices.IndexFunc(r.Steps, func(s StepProgress) bool { return s.Conversion == run.Conversion })
		if i < 0 {
			i = len(r.Steps)
			r.Steps = append(r.Steps, StepProgress{Step: Step{Task: run.Task, Status: NotBegun}, Conversion: run.Conversion})
		}
		addRun(&r.Steps[i], run, r.Time)
		if state == nil && run.Migration != "" {
			addMigration(&r, run)
		}
	}
	if err := markDropped(ctx, s.Client.Database(database), r.Steps); err != nil {
		return r, err
	}
	addUp(&r)
	return r, nil
}

// addMigration adds a run to those of the migrations.
func addMigration(r *Status, run *record.Run) {
	i := slices.IndexFunc(r.Migrations, func(m MigrationStatus) bool { return m.ID == run.Migration })
	if i < 0 {
		i = len(r.Migrations)
		r.Migrations = append(r.Migrations, MigrationStatus{ID: run.Migration})
	}
	m := &r.Migrations[i]
	m.Directory, m.Started, m.By = run.Directory, run.Started, run.By.String()
}

// addUp adds up how fast the runs are, and how long all of them still take.
func addUp(r *Status) {
	var left int64
	for _, s := range r.Steps {
		if s.Status == Running {
			r.PerSecond += s.PerSecond
		}
		if s.Status == Running || s.Status == NotBegun || s.Status == Stopped {
			left += max(0, s.Documents-s.Read)
		}
	}
	if r.PerSecond > 0 {
		r.SecondsLeft = int64(float64(left) / r.PerSecond)
	}
}

// markDropped changes the status of copies that were made and are not there any more.
func markDropped(ctx context.Context, db *mongo.Database, steps []StepProgress) error {
	var copies, made []string
	for _, s := range steps {
		if s.Conversion != "" {
			made = append(made, s.Conversion)
		}
		if s.Into != "" && s.ended() && !slices.Contains(copies, s.Into) {
			copies = append(copies, s.Into)
		}
	}
	if len(copies) == 0 {
		return nil
	}
	gone, err := Dropped(ctx, db, made, copies...)
	if failure.IsDenied(err) { // that is not known
		return nil
	}
	for i := range steps {
		if s := &steps[i]; s.ended() && slices.Contains(gone, s.Into) {
			s.Status, s.Read, s.Reason = Stopped, 0, "the copy "+s.Into+" is not there any more: apply makes it again"
		}
	}
	return err
}
