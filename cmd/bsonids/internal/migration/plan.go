package migration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
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
	filters, err := parsed(of.Filters)
	if err != nil {
		return nil, err
	}
	var kept []record.KeptCollection
	var left []record.Left
	err = s.Do(ctx, func() (err error) {
		if kept, err = record.Kept(ctx, db); err == nil {
			left, err = record.Abandoned(ctx, db)
		}
		return err
	})
	if err != nil && !Denied(err) { // without the record, a person sees what they are
		return nil, err
	}
	o := survey.Options{Only: of.Only, Needed: of.Needed, Filters: filters, Kept: kept, Left: left, Temp: os.TempDir(), Now: time.Now, Patience: s.Patience, Progress: s.Progress}
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
	return sv, s.Unselected(ctx, db, of.Filters)
}

// parsed returns the filters of the collections.
func parsed(texts map[string][]string) (map[string][]survey.Filter, error) {
	filters := make(map[string][]survey.Filter)
	for name, of := range texts {
		for _, text := range of {
			query, _, err := convert.ParseFilter(text)
			if err != nil {
				return nil, fmt.Errorf("%q: the filter %s: %w", name, text, err)
			}
			filters[name] = append(filters[name], survey.Filter{Text: text, Query: query})
		}
	}
	return filters, nil
}

// Unselected warns of the documents that the filters of a plan leave out.
func (s *Session) Unselected(ctx context.Context, db *mongo.Database, texts map[string][]string) error {
	filters, err := parsed(texts)
	for name, of := range filters {
		if slices.ContainsFunc(of, func(f survey.Filter) bool { return len(f.Query) == 0 }) {
			continue
		}
		none := bson.A{}
		for _, f := range of {
			none = append(none, f.Query)
		}
		var n int64
		err := s.Do(ctx, func() (err error) {
			n, err = db.Collection(name).CountDocuments(ctx, bson.D{{Key: "$nor", Value: none}})
			return err
		})
		if err != nil {
			return err
		}
		if n > 0 {
			s.Warn("%s: %d documents match no filter of the plan: they are neither read nor converted", name, n)
		}
	}
	return err
}

// IdentityOf returns the identity of the conversion of a step.
func IdentityOf(database string, st plan.Step) convert.Identity {
	return convert.Identity{Database: database, Collection: st.Collection, Pairs: st.Pairs, Into: st.Into, Part: st.Part, Query: st.Filter}
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
	return report.AppliedStep{Step: report.Step{Conversion: report.Conversion{Collection: st.Collection, Filter: st.Filter, Pairs: st.Pairs, Into: st.Into},
		Part: st.Part, Pass: st.Pass, Listed: st.Listed, Status: report.NotBegun}}
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
	a.Values, a.Documents, a.Skipped = f.Values, f.Changed, Left(state, st, f)
	return a, nil
}

// Left returns the number of documents with values that a step has listed, and that no later step was for. It is
// that of the step, whose state is f, as long as a later step is not done, or the list cannot be read.
func Left(state *plan.State, st plan.Step, f convert.State) int64 {
	var pairs []kinds.Pair
	for _, later := range state.Later(st) {
		of, err := StateOf(state, later)
		if err == nil && of.Done {
			pairs = append(pairs, later.Pairs...)
		}
	}
	if len(pairs) == 0 {
		return f.Skipped
	}
	var n int64
	c, err := rule.Compile(pairs)
	if err == nil {
		n, err = convert.ListedBeside(state.Files(st).SkipList, f, c)
	}
	if err != nil {
		return f.Skipped
	}
	return n
}

// StateOf returns the state of a step. The error names a file of another conversion, or of another pass, too.
func StateOf(state *plan.State, st plan.Step) (convert.State, error) {
	path := state.Files(st).State
	s, err := convert.ReadState(path)
	if err == nil {
		err = IsOf("the state file "+path, s.Identity, IdentityOf(state.Plan.Database, st))
	}
	return s, err
}
