package migrate

import (
	"context"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// StatusOfPlan returns the conversions of a plan as if none had begun; those of a dump as in its last output.
func StatusOfPlan(state *plan.State) ([]report.StepStatusOf, error) {
	out := []report.StepStatusOf{}
	var last *plan.Converted
	if state.Plan.Dump != nil {
		var err error
		if last, err = state.Converted(); err != nil {
			return nil, files.FileError(err)
		}
	}
	for i, st := range state.Steps() {
		s := report.StepStatusOf{Step: Fresh(st).Step}
		if state.Plan.Dump == nil {
			s.Conversion = state.Plan.Conversion(st.Task)
		}
		if last != nil {
			s.Status, s.Changed, s.Skipped = report.DoneStep, last.Steps[i].Documents, last.Steps[i].Skipped
		}
		out = append(out, s)
	}
	return out, nil
}

// StatusOfRecord reads the record of a database. The status has the conversions of the migration in a directory, also those that its
// plan does not have any more, and what is wrong with its undo logs; or all, if state is nil. It lacks the next commands
// for the cutovers.
func StatusOfRecord(ctx context.Context, s *session.Session, database string, state *plan.State) (r report.Status, err error) {
	r.Cutovers = []report.CutoverStatus{}
	recorded, err := ReadRecord(ctx, s, database)
	if err != nil {
		return r, err
	}
	r.Time = recorded.Now
	for _, c := range recorded.Cutovers {
		if c.State != record.Released && c.State != record.RolledBack {
			r.Cutovers = append(r.Cutovers, report.CutoverStatus{ID: c.Conversion(), Maker: c.Collections[0].Maker, Collections: c.Names(), State: c.State, Waits: c.State == record.Switched || c.State == record.Releasing,
				By: c.By.String(), Begun: c.Begun, Updated: c.Updated})
		}
	}
	r.Steps = []report.StepStatusOf{}
	if state != nil {
		if r.Steps, err = StatusOfPlan(state); err != nil {
			return r, err
		}
		faults, err := recorded.Faults(state)
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
		i := slices.IndexFunc(r.Steps, func(s report.StepStatusOf) bool { return s.Conversion == run.Conversion })
		if i < 0 {
			i = len(r.Steps)
			r.Steps = append(r.Steps, report.StepStatusOf{Step: report.Step{Task: run.Task, Status: report.NotBegun}, Conversion: run.Conversion})
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
func addMigration(r *report.Status, run *record.Run) {
	i := slices.IndexFunc(r.Migrations, func(m report.MigrationStatus) bool { return m.ID == run.Migration })
	if i < 0 {
		i = len(r.Migrations)
		r.Migrations = append(r.Migrations, report.MigrationStatus{ID: run.Migration})
	}
	m := &r.Migrations[i]
	m.Directory, m.Started, m.By = run.Directory, run.Started, run.By.String()
}

// addUp adds up how fast the runs are, and how long all of them still take.
func addUp(r *report.Status) {
	var left int64
	for _, s := range r.Steps {
		if s.Status == report.Running {
			r.PerSecond += s.PerSecond
		}
		if s.Status == report.Running || s.Status == report.NotBegun || s.Status == report.Stopped {
			left += max(0, s.Documents-s.Read)
		}
	}
	if r.PerSecond > 0 {
		r.SecondsLeft = int64(float64(left) / r.PerSecond)
	}
}

// markDropped changes the status of copies that were made and are not there any more.
func markDropped(ctx context.Context, db *mongo.Database, steps []report.StepStatusOf) error {
	var copies, made []string
	for _, s := range steps {
		if s.Conversion != "" {
			made = append(made, s.Conversion)
		}
		if s.Into != "" && s.Status == report.DoneStep && !slices.Contains(copies, s.Into) {
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
		if s := &steps[i]; s.Status == report.DoneStep && slices.Contains(gone, s.Into) {
			s.Status, s.Read, s.Reason = report.Stopped, 0, "the copy "+s.Into+" is not there any more: apply makes it again"
		}
	}
	return err
}
