package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// guardFields returns the fields to guard: those of --field, or else those of the guard in the record,
// or else those of the decision in the record, or else those that a conversion would convert.
func (o *guardOptions) guardFields(ctx context.Context, g *guard.Guard, coll *mongo.Collection, conv convert.Conversion) ([]guard.Field, error) {
	if len(o.fields) > 0 {
		fields, err := parseFields(o.fields)
		if err != nil {
			return nil, err
		}
		return fields, o.again(ctx, func() error { return matching(ctx, coll, conv) })
	}
	if names, _, ok := g.Saved(); ok {
		return parseFields(names)
	}
	var d decide.Decision
	var found bool
	err := o.again(ctx, func() error {
		spec, err := server.FindCollection(ctx, coll)
		if err != nil {
			return err
		}
		found, err = record.Decision(ctx, coll.Database(), record.Run{Collection: o.collection, UUID: spec.UUID, From: conv.From.Name, To: conv.To.Name}, &d)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !found || d.BySubtype {
		if d, err = o.decideFields(ctx, coll, conv); err != nil {
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
		return nil, failure.Usagef("%s.%s has no %s, from which the fields to guard could be seen; give --field", o.database, o.collection, conv.From.Values())
	case len(names) == 0:
		return nil, failure.Usagef("no field would be converted: %s; give --field for the fields to guard", strings.Join(reasons[:min(len(reasons), 5)], "; "))
	}
	return parseFields(names)
}

// decideFields decides which fields a conversion of the whole collection would convert.
func (o *guardOptions) decideFields(ctx context.Context, coll *mongo.Collection, conv convert.Conversion) (d decide.Decision, err error) {
	s := decide.NewSurvey(os.TempDir(), time.Now(), decide.Question{Kind: conv.From})
	defer func() { err = errors.Join(err, s.Close()) }()
	c, err := s.Collection(o.database, o.collection, true)
	if err != nil {
		return d, err
	}
	if err := o.readInto(ctx, o.load.patience, coll, bson.D{}, c); err != nil {
		return d, err
	}
	if err := s.Decide(); err != nil {
		return d, err
	}
	d = *c.Decision(conv.From)
	if conv.From.BySubtype() { // the subtype alone determines the order
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
