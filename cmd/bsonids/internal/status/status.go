// Package status tells how far the conversions and the cutovers of a database have come.
package status

import (
	"context"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// Of returns the conversions of a plan by its files.
func Of(state *plan.State) ([]report.StepStatusOf, error) {
	var out []report.StepStatusOf
	if state.Plan.Dump != nil {
		return ofDump(state), nil
	}
	for _, st := range state.Steps() {
		a, err := migration.StepOf(state, st)
		if err != nil {
			return nil, err
		}
		s := report.StepStatusOf{Collection: a.Collection, Filter: a.Filter, From: a.From, To: a.To, Into: a.Into, Part: a.Part, Status: a.Status, Changed: a.Documents, Skipped: a.Skipped}
		if f, err := migration.StateOf(state, st); err == nil {
			s.Conversion = f.Conversion
		}
		out = append(out, s)
	}
	return out, nil
}

// ofDump returns the conversions of the last output of a dump.
func ofDump(state *plan.State) (out []report.StepStatusOf) {
	for i, st := range state.Plan.Steps() {
		s := report.StepStatusOf{Collection: st.Collection, From: st.From, To: st.To, Status: report.NotBegun}
		if c := state.Converted; c != nil && i < len(c.Steps) {
			s.Status, s.Changed, s.Skipped = report.DoneStep, c.Steps[i].Documents, c.Steps[i].Skipped
		}
		out = append(out, s)
	}
	return out
}

// Recorded is what the record of a database says.
type Recorded struct {
	Steps      []report.StepStatusOf
	Parts      []report.DivisionStatus // the sums of the parts; empty with steps
	Cutovers   []report.CutoverStatus  // without the next command
	Guards     []report.GuardStatus    // without the command that removes them
	Migrations []report.MigrationStatus
	Time       time.Time // of the server
}

// Record reads the record of a database. If steps is nil, it returns all conversions; otherwise it adds
// to them.
func Record(ctx context.Context, s *migration.Session, database string, steps []report.StepStatusOf) (r Recorded, err error) {
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
		r.Cutovers = append(r.Cutovers, report.CutoverStatus{Collections: c.Names(), State: c.State, Waits: c.State == record.Switched || c.State == record.Releasing,
			By: c.By.String(), Begun: c.Begun, Updated: c.Updated})
	}
	guards, err := record.Guards(ctx, db)
	if err != nil {
		return r, err
	}
	for _, g := range guards {
		r.Guards = append(r.Guards, report.GuardStatus{Collection: g.Collection, Level: g.Now.Level, State: g.State, Against: g.Against(), Updated: g.Updated})
	}
	if r.Steps = steps; steps == nil {
		r.Steps = conversions(plans, runs)
	}
	documents := make(map[string]int64)
	for _, p := range plans {
		r.Migrations = append(r.Migrations, report.MigrationStatus{ID: p.Migration, To: p.To, Directory: p.StateDir, Commands: p.Epoch, Started: p.Started, Abandoned: p.Abandoned,
			By: p.By.String()})
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
				s.Add(run, r.Time)
			}
		}
		if done {
			s.Skipped = skipped
		}
	}
	if err := dropped(ctx, db, r.Steps); err != nil {
		return r, err
	}
	if steps == nil {
		r.Parts = report.Divisions(r.Steps)
	}
	return r, nil
}

// dropped changes the status of copies that were made and are not there any more.
func dropped(ctx context.Context, db *mongo.Database, steps []report.StepStatusOf) error {
	isCopy := func(s report.StepStatusOf) bool { return s.Into != "" && s.Status == report.DoneStep }
	var copies []string
	for _, s := range steps {
		if isCopy(s) && !slices.Contains(copies, s.Into) {
			copies = append(copies, s.Into)
		}
	}
	if len(copies) == 0 {
		return nil
	}
	gone, err := migration.Dropped(ctx, db, copies...)
	for i := range steps {
		if s := &steps[i]; isCopy(*s) && slices.Contains(gone, s.Into) {
			s.Status, s.Read, s.Reason = report.Stopped, 0, "the copy "+s.Into+" is not there any more: apply makes it again"
		}
	}
	return err
}

// conversions returns the conversions in the record: those of the plans in the order of the work,
// and then the others in the order in which they began.
func conversions(plans []record.Plan, runs []*record.Run) []report.StepStatusOf {
	var out []report.StepStatusOf
	seen := make(map[string]bool)
	add := func(s report.StepStatusOf) {
		if !seen[s.Conversion] {
			seen[s.Conversion] = true
			s.Status = report.NotBegun
			out = append(out, s)
		}
	}
	for _, p := range plans {
		for _, st := range p.Steps {
			add(report.StepStatusOf{Collection: st.Collection, Filter: st.Filter, From: st.From, To: st.To, Into: st.Into, Part: st.Part, Conversion: st.Conversion})
		}
	}
	for _, r := range runs {
		add(report.StepStatusOf{Collection: r.Collection, Filter: r.Query, From: r.From, To: r.To, Into: r.Into, Part: r.Part, Conversion: r.Conversion})
	}
	return out
}
