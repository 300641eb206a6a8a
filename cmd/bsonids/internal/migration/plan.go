package migration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Scope is which collections of a database a plan is about.
type Scope struct {
	Only    []string            // empty for all
	Needed  []string            // those of Only that must exist
	Sample  bool                // whether the others are sampled, for references
	Filters map[string][]string // as of plan.Plan.Filters
}

// samples is the number of documents that are read of a collection that is sampled.
const samples = 10_000

// SurveyAll reads the collections of the database, those with filters once by each.
func (s *Session) SurveyAll(ctx context.Context, db *mongo.Database, of Scope) (*survey.Survey, error) {
	filters := make(map[string][]survey.Filter)
	for name, texts := range of.Filters {
		for _, text := range texts {
			query, _, err := convert.ParseFilter(text)
			if err != nil {
				return nil, err
			}
			filters[name] = append(filters[name], survey.Filter{Text: text, Query: query})
		}
	}
	var kept []record.KeptCollection
	err := s.Do(ctx, func() (err error) {
		kept, err = record.Kept(ctx, db)
		return err
	})
	if err != nil && !Denied(err) { // without the record, a person sees what they are
		return nil, err
	}
	o := survey.Options{Only: of.Only, Needed: of.Needed, Filters: filters, Kept: kept, Temp: os.TempDir(), Now: time.Now, Patience: s.Patience, Progress: s.Progress}
	if of.Sample {
		o.Sample = samples
	}
	sv, err := survey.Make(ctx, db, o)
	if err != nil {
		return nil, err
	}
	for _, n := range sv.NotRead {
		s.Warn("not read: %s", n)
	}
	return sv, nil
}

// IdentityOf returns the identity of the conversion of a step.
func IdentityOf(database string, st plan.Step) convert.Identity {
	return convert.Identity{Database: database, Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields, Query: st.Filter}
}

// MayApply returns a usage error if the plan of a directory may not be applied.
func MayApply(dir string, p *plan.Plan) error {
	if bad := p.MayApply(); bad != nil {
		return failure.Usagef("%s %v", filepath.Join(dir, plan.PlanFile), bad)
	}
	return nil
}

// Fresh returns a step that was not begun.
func Fresh(st plan.Step) report.AppliedStep {
	return report.AppliedStep{Collection: st.Collection, Filter: st.Filter, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields, Pass: st.Pass, Listed: st.Listed, Status: report.NotBegun}
}

// StepOf returns how far a step has come, by its state file. The error names a file that is missing or
// damaged, or that is of another conversion, after the plan was begun.
func StepOf(state *plan.State, st plan.Step) (report.AppliedStep, error) {
	a := Fresh(st)
	f, err := StateOf(state, st)
	switch {
	case err != nil && state.Sealed():
		return a, &failure.Error{Kind: failure.Failed, Text: Nameless(err) + ": what the conversion has done is unknown without it; put the file back", Err: err}
	case err != nil:
	case f.Undone != "":
		a.Status = report.WasUndone
	case f.Done:
		a.Status = report.DoneStep
	case f.Begun():
		a.Status = report.Stopped
	}
	a.Values, a.Documents, a.Skipped = f.Values, f.Changed, f.Skipped
	return a, nil
}

// StateOf returns the state of a step. The error names a file of another conversion, or of another pass, too.
func StateOf(state *plan.State, st plan.Step) (convert.State, error) {
	path := state.Files(st).State
	s, err := convert.ReadState(path)
	if err == nil {
		err = IsOf("the state file "+path, s.Identity, IdentityOf(state.Plan.Database, st))
	}
	if d := s.Decision; err == nil && d != nil && !d.BySubtype && !slices.Equal(d.Trusted, st.Trust) {
		err = failure.Usagef("the state file %s is of another pass", path)
	}
	return s, err
}
