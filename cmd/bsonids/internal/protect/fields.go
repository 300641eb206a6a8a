package protect

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// guardFields returns the fields to guard: those of --field, or else those of the guard in the record,
// or else those of the decision in the record, or else those that a conversion would convert.
func (w *worker) guardFields(ctx context.Context) ([]guard.Field, error) {
	if len(w.ID.Fields) > 0 {
		fields, err := parseFields(w.ID.Fields)
		if err != nil {
			return nil, err
		}
		return fields, w.Do(ctx, func() error { return migration.Matching(ctx, w.coll, w.Conversion) })
	}
	if names, _, ok := w.guard.Saved(); ok {
		return parseFields(names)
	}
	var d decide.Decision
	var found bool
	err := w.Do(ctx, func() error {
		spec, err := server.FindCollection(ctx, w.coll)
		if err != nil {
			return err
		}
		found, err = record.Decision(ctx, w.coll.Database(), record.Run{Collection: w.ID.Collection, UUID: spec.UUID, From: w.Conversion.From.Name, To: w.Conversion.To.Name}, &d)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !found || d.BySubtype {
		if d, err = w.decideFields(ctx); err != nil {
			return nil, err
		}
	}
	var names, reasons []string
	for _, f := range d.Fields {
		if f.Converted() {
			names = append(names, f.Path)
		} else {
			reasons = append(reasons, f.Path+": "+f.Reason)
		}
	}
	switch {
	case len(names) == 0 && len(reasons) == 0:
		return nil, failure.Usagef("%s.%s has no %s, from which the fields to guard could be seen; give --field", w.ID.Database, w.ID.Collection, w.Conversion.From.Values())
	case len(names) == 0:
		return nil, failure.Usagef("no field would be converted: %s; give --field for the fields to guard", strings.Join(reasons[:min(len(reasons), 5)], "; "))
	}
	return parseFields(names)
}

// decideFields decides which fields a conversion of the whole collection would convert.
func (w *worker) decideFields(ctx context.Context) (d decide.Decision, err error) {
	s := decide.NewSurvey(os.TempDir(), time.Now(), decide.Question{Kind: w.Conversion.From})
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := s.Collection(w.ID.Database, w.ID.Collection, true)
	if err != nil {
		return d, err
	}
	if err := w.Survey(ctx, w.coll, bson.D{}, c); err != nil {
		return d, err
	}
	if err := s.Decide(); err != nil {
		return d, err
	}
	d = *c.Decision(w.Conversion.From)
	if w.Conversion.From.BySubtype() { // the subtype alone determines the order
		for i := range d.Fields {
			d.Fields[i].Basis = decide.Evidence
		}
	}
	return d, nil
}

// parseFields returns the fields with the paths, each once. The error is a usage error that has the
// reason for each field that cannot be guarded.
func parseFields(paths []string) ([]guard.Field, error) {
	fields := make(map[string]guard.Field)
	var reasons []string
	for _, path := range paths {
		if path == decide.Others {
			reasons = append(reasons, "there are too many fields to name them")
			continue
		}
		f, err := guard.ParseField(path)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		fields[f.String()] = f
	}
	names := slices.Sorted(maps.Keys(fields))
	if len(reasons) > 0 {
		text := strings.Join(reasons, "; ")
		if len(names) > 0 {
			text += "; to guard only the others, give --field " + strings.Join(names, ",")
		}
		return nil, failure.Usagef("cannot guard %s", text)
	}
	var out []guard.Field
	for _, name := range names {
		out = append(out, fields[name])
	}
	return out, nil
}
