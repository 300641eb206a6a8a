// Package status tells how far the conversions and the cutovers of a database have come.
package status

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// Of returns the conversions of a plan by its ledger; those of a dump as in its last output.
func Of(state *plan.State) []report.StepStatusOf {
	out := []report.StepStatusOf{}
	if state.Plan.Dump != nil {
		for i, st := range state.Plan.Steps() {
			s := report.StepStatusOf{Step: migration.Fresh(st).Step}
			if c := state.Converted; c != nil && i < len(c.Steps) {
				s.Status, s.Changed, s.Skipped = report.DoneStep, c.Steps[i].Documents, c.Steps[i].Skipped
			}
			out = append(out, s)
		}
		return out
	}
	for _, st := range state.Steps() {
		a := migration.StepOf(state, st)
		out = append(out, report.StepStatusOf{Step: a.Step, Conversion: state.Of(st).Conversion, Changed: a.Documents, Skipped: a.Skipped})
	}
	return out
}

// Record reads the record of a database. If steps is nil, the status has all conversions; otherwise these, to
// which it adds. It lacks the next commands for the cutovers.
func Record(ctx context.Context, s *migration.Session, database string, steps []report.StepStatusOf) (r report.Status, err error) {
	r.Cutovers = []report.CutoverStatus{}
	db := s.Client.Database(database)
	plans, err := record.Plans(ctx, db)
	if err != nil {
		return r, err
	}
	runs, err := record.Runs(ctx, db)
	if err != nil {
		return r, err
	}
	if r.Time, err = record.Now(ctx, db); err != nil {
		return r, err
	}
	open, err := record.Cutovers(ctx, db, true)
	if err != nil {
		return r, err
	}
	for _, c := range open {
		r.Cutovers = append(r.Cutovers, report.CutoverStatus{ID: c.Conversion(), Maker: c.Collections[0].Maker, Collections: c.Names(), State: c.State, Waits: c.State == record.Switched || c.State == record.Releasing,
			By: c.By.String(), Begun: c.Begun, Updated: c.Updated})
	}
	if r.Steps = steps; steps == nil {
		r.Steps = conversions(plans, runs)
	}
	documents := make(map[string]int64)
	for _, p := range plans {
		if steps == nil {
			r.Migrations = append(r.Migrations, report.MigrationStatus{ID: p.Migration, Directory: p.StateDir, Commands: p.Epoch, Started: p.Started, By: p.By.String()})
		}
		for _, st := range p.Steps {
			documents[st.Conversion] = st.Documents
		}
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Documents = documents[s.Conversion]
		skipped, done := s.Skipped, s.Status == report.DoneStep // by the directory, which knows what later steps have converted
		for _, run := range runs {
			if run.Conversion == s.Conversion && s.Conversion != "" {
				add(s, run, r.Time)
			}
		}
		if done {
			s.Skipped = skipped
		}
	}
	if err := dropped(ctx, db, r.Steps); err != nil {
		return r, err
	}
	sum(&r)
	return r, nil
}

// sum adds up how fast the runs are, and how long all of them still take.
func sum(r *report.Status) {
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

// dropped changes the status of copies that were made and are not there any more.
func dropped(ctx context.Context, db *mongo.Database, steps []report.StepStatusOf) error {
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
	gone, err := migration.Dropped(ctx, db, made, copies...)
	for i := range steps {
		if s := &steps[i]; s.Status == report.DoneStep && slices.Contains(gone, s.Into) {
			s.Status, s.Read, s.Reason = report.Stopped, 0, "the copy "+s.Into+" is not there any more: apply makes it again"
		}
	}
	return err
}

// conversions returns the conversions in the record: those of the plans in the order of the work,
// and then the others in the order in which they began.
func conversions(plans []record.Plan, runs []*record.Run) []report.StepStatusOf {
	out := []report.StepStatusOf{}
	seen := make(map[string]bool)
	add := func(name string, of kinds.Task) {
		if !seen[name] {
			seen[name] = true
			out = append(out, report.StepStatusOf{Step: report.Step{Task: of, Status: report.NotBegun}, Conversion: name})
		}
	}
	for _, p := range plans {
		for _, st := range p.Steps {
			add(st.Conversion, st.Task)
		}
	}
	for _, r := range runs {
		add(r.Conversion, r.Task)
	}
	return out
}
