package migrate

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// StepStatus is how far a conversion of a plan has come.
type StepStatus string

// The statuses.
const (
	NotBegun    StepStatus = "not begun"
	Running     StepStatus = "running"
	Stopped     StepStatus = "stopped"
	Done        StepStatus = "done"
	Unverified  StepStatus = "not verified" // the copy differs from its source
	WasUndone   StepStatus = "undone"
	GivenUp     StepStatus = "given up" // its undo logs are lost, and its values stay converted
	BeingUndone StepStatus = "being undone"
)

// Step is one conversion of a plan, and how far it is. All results about conversions have it.
type Step struct {
	kinds.Task
	Status StepStatus `json:"status"`
}

// ended reports whether the last run of the conversion has come to its end.
func (s Step) ended() bool { return s.Status == Done || s.Status == Unverified }

// Recorded is what the record of a database has.
type Recorded struct {
	Runs     []*record.Run // in the order in which they began, without their decisions
	Cutovers []*record.Cutover
	Now      time.Time // by the server
}

// ReadRecord reads the record of a database.
func ReadRecord(ctx context.Context, s *session.Session, database string) (*Recorded, error) {
	r, err := patience.Ask(ctx, s.Patience, func() (*Recorded, error) { return readRecord(ctx, s.Client.Database(database)) })
	return r, session.OfRecord(err)
}

// readRecord reads the record once.
func readRecord(ctx context.Context, db *mongo.Database) (*Recorded, error) {
	var r Recorded
	var err error
	if r.Runs, err = record.Runs(ctx, db); err != nil {
		return &r, err
	}
	if r.Cutovers, err = record.Cutovers(ctx, db); err != nil {
		return &r, err
	}
	r.Now, err = record.Now(ctx, db)
	return &r, err
}

// Of returns the runs of a conversion whose values are not restored, in the order in which they began.
func (r *Recorded) Of(conversion string) (runs []*record.Run) {
	for _, run := range r.Runs {
		if run.Kind == record.Convert && run.Conversion == conversion && (run.Undone == nil || !run.Undone.Complete) {
			runs = append(runs, run)
		}
	}
	return runs
}

// Last returns the last run of a conversion whose values are not restored, or nil.
func (r *Recorded) Last(conversion string) *record.Run {
	runs := r.Of(conversion)
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// Named returns the run with the random id, or nil.
func (r *Recorded) Named(id string) *record.Run {
	i := slices.IndexFunc(r.Runs, func(run *record.Run) bool { return run.Kind == record.Convert && run.By.Token == id })
	if i < 0 {
		return nil
	}
	return r.Runs[i]
}

// Converted returns what the conversions of a migration have converted: for each, as its last run says that has changed
// something, or made a copy.
func (r *Recorded) Converted(migration string) (tasks []kinds.Task) {
	at := make(map[string]int)
	for _, run := range r.Runs {
		if run.Migration != migration || run.Undone != nil && run.Undone.Complete || !run.Wrote() && !run.Copied() {
			continue
		}
		if i, ok := at[run.Conversion]; ok {
			tasks[i] = run.Task
			continue
		}
		at[run.Conversion] = len(tasks)
		tasks = append(tasks, run.Task)
	}
	return tasks
}

// Exchange returns how a cutover has exchanged the copy that a conversion has made, and that cutover, or nil if none has, or
// if it was rolled back.
func (r *Recorded) Exchange(conversion string) (*record.Exchange, *record.Cutover) {
	for _, c := range slices.Backward(r.Cutovers) {
		for i, x := range c.Collections {
			if x.Maker == conversion && c.State != record.RolledBack {
				return &c.Collections[i], c
			}
		}
	}
	return nil, nil
}

// HasCopy reports whether a conversion has made the copy with the UUID, which may be nil.
func (r *Recorded) HasCopy(conversion string, uuid *bson.Binary) bool {
	return slices.ContainsFunc(r.Of(conversion), func(run *record.Run) bool { return run.Copied() && run.Made(uuid, r.Cutovers) })
}

// statusOf returns the status of a conversion whose last run is run, unless an undo of it is complete.
func statusOf(run *record.Run, now time.Time) StepStatus {
	switch {
	case run.Undone != nil:
		return Stopped
	case run.Alive(now):
		return Running
	case run.Outcome != record.Done:
		return Stopped
	case run.Differs:
		return Unverified
	}
	return Done
}

// Step returns how far the conversion of a task has come.
func (r *Recorded) Step(conversion string, t kinds.Task) AppliedStep {
	a := AppliedStep{Step: Step{Task: t, Status: NotBegun}}
	for _, run := range r.Runs {
		if run.Conversion != conversion || run.Kind != record.Convert {
			continue
		}
		if run.Undone != nil && run.Undone.Complete {
			a.Status = undoneStatus(a.Status, run)
			continue
		}
		if t.Into != "" {
			a.Values, a.Documents = 0, 0
		}
		a.Values, a.Documents, a.Skipped = a.Values+run.Progress.Values, a.Documents+run.Progress.Changed, run.Progress.Skipped
		a.Status = statusOf(run, r.Now)
	}
	return a
}

// begin makes the runs of the session those of the migration in a directory.
func begin(s *session.Session, state *plan.State) {
	s.Migration, s.Directory, s.Lock = state.Plan.Migration, files.Absolute(state.Dir()), record.FileID(state.LockPath())
}

// Begun returns the steps of a plan that the record has, as they were converted.
func (r *Recorded) Begun(p *plan.Plan) (steps []plan.Step) {
	for _, t := range r.Converted(p.Migration) {
		steps = append(steps, plan.Step{Task: t})
	}
	return steps
}

// Edited returns a usage error if the plan was edited where it has converted values.
func (r *Recorded) Edited(dir string, p *plan.Plan) error {
	if edits := p.Frozen(r.Converted(p.Migration)); len(edits) > 0 {
		return failure.Usagef("%s: %v", filepath.Join(dir, plan.PlanFile), &plan.FrozenError{Edits: edits})
	}
	return nil
}
