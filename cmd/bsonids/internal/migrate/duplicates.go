package migrate

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// findDuplicates finds the documents to which the steps would give the _id, or the value of a unique index, of another one, and
// writes their pairs to the directory dir of the migration. sv is nil if nothing was read. decide prepares the conversion
// of a step.
func findDuplicates(ctx context.Context, s *session.Session, db *mongo.Database, sv *survey.Survey, dir string, steps []plan.Step,
	decide func(st plan.Step, d *Described) error) (r *duplicates.Report, err error) {
	f := &duplicates.Finder{Patience: s.Patience, Progress: s.Progress}
	defer func() { err = errors.Join(err, f.Close()) }()
	var all []duplicates.Collection
	for _, st := range steps {
		d, err := Describe(db.Name(), st.Task)
		if err != nil {
			return nil, &failure.CollectionError{Collection: st.Collection, Err: err}
		}
		if err := decide(st, &d); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(c duplicates.Collection) bool { return c.Name() == st.Collection })
		if i < 0 {
			i = len(all)
			all = append(all, duplicates.Collection{Collection: db.Collection(st.Collection), Copied: st.Into != "", Scan: scanOf(sv, st.Collection)})
		}
		all[i].Parts = append(all[i].Parts, duplicates.Part{Selection: d.Selection})
	}
	for _, c := range all {
		if err := f.Find(ctx, c); err != nil {
			return nil, &failure.CollectionError{Collection: c.Name(), Err: err}
		}
	}
	r, err = f.Report(filepath.Join(dir, plan.DuplicatesFile))
	return r, files.FileError(err)
}

// scanOf returns what was found in all documents of a collection, or nil.
func scanOf(sv *survey.Survey, name string) *scan.Collection {
	if sv == nil {
		return nil
	}
	for i, c := range sv.Collections {
		if c.Name == name && c.Filter == "" {
			return &sv.Collections[i].Scan
		}
	}
	return nil
}

// PlanDuplicates is findDuplicates for a plan that is made of a survey. It warns of what it finds, and notes it in the plan.
func PlanDuplicates(ctx context.Context, s *session.Session, sv *survey.Survey, dir string, p *plan.Plan) error {
	r, err := findDuplicates(ctx, s, s.Client.Database(p.Database), sv, dir, p.Steps(), func(st plan.Step, d *Described) error {
		var all map[string]decide.Decision
		for _, c := range sv.Collections {
			if c.Name == st.Collection && c.Filter == st.Filter {
				all = c.Scan.Decisions
			}
		}
		return d.Conversion.Decide(st.Decisions(all, sv.Made))
	})
	if err != nil {
		return err
	}
	for _, line := range r.Lines() {
		s.Warn("%s", line)
	}
	p.Duplicates(r)
	return nil
}
