package migrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Survey reads the collections of the database, those with filters in the plan once by each. The error is a usage error,
// with the line, if the server does not take a filter.
func Survey(ctx context.Context, s *session.Session, db *mongo.Database, o survey.Options, p *plan.Plan) (sv *survey.Survey, err error) {
	filters := p.Filters()
	if o.Filters, err = parsed(filters); err != nil {
		return nil, err
	}
	o.Patience, o.Progress = s.Patience, s.Progress
	if sv, err = survey.Make(ctx, db, o); err != nil {
		var of *survey.FilterError
		if errors.As(err, &of) {
			where := plan.Entry{Collection: of.Collection, Filter: of.Filter}
			return nil, failure.Usagef("line %d: %s: %s", p.LineOf(where), where, s.Explain(of.Err).Text)
		}
		return nil, err
	}
	for _, n := range sv.NotRead {
		s.Warn("not read: %s", n)
	}
	return sv, unselected(ctx, s, db, filters)
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

// unselected warns of the documents that the filters of a plan leave out.
func unselected(ctx context.Context, s *session.Session, db *mongo.Database, texts map[string][]string) error {
	filters, err := parsed(texts)
	for name, of := range filters {
		if slices.ContainsFunc(of, func(f survey.Filter) bool { return len(f.Query) == 0 }) {
			continue
		}
		none := bson.A{}
		for _, f := range of {
			none = append(none, f.Query)
		}
		n, err := patience.Ask(ctx, s.Patience, func() (int64, error) {
			return db.Collection(name).CountDocuments(ctx, bson.D{{Key: "$nor", Value: none}})
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

// MayApply returns a usage error if the plan of a directory may not be applied.
func MayApply(dir string, p *plan.Plan) error {
	if p.Migration == "" && p.Dump == nil {
		return failure.Usagef("%s has no migration, a random id: make a plan with bsonids plan", filepath.Join(dir, plan.PlanFile))
	}
	if problems := p.Check(); len(problems) > 0 {
		return failure.Usagef("%s cannot be applied: %s", filepath.Join(dir, plan.PlanFile), strings.Join(problems, "; "))
	}
	return nil
}

// Fresh returns a step that was not begun.
func Fresh(st plan.Step) AppliedStep {
	return AppliedStep{Step: Step{Task: st.Task, Status: NotBegun}}
}
