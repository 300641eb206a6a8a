// Package protect sets, raises and removes the guards of collections: validators that refuse old values.
package protect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// ErrNone is the error of a guard that the record does not have.
var ErrNone = errors.New("there is no guard")

// Guard is the guard of a collection. It is not safe for concurrent use.
type Guard struct {
	*migration.Session
	coll  *mongo.Collection
	begun func() // called before the first change of the collection or of the record

	// What the plan wants.
	conversion rule.Conversion
	refuses    []record.Refused // sorted
	level      string

	// What was read last.
	uuid  *bson.Binary
	now   record.Settings // of the collection
	saved *record.Guard   // nil if the record has none
}

// open reads the settings of a collection and the guard that the record has of it. The error is a usage error
// if the collection or the server cannot have one.
func open(ctx context.Context, s *migration.Session, database, collection string, begun func()) (*Guard, error) {
	g := &Guard{Session: s.Child(database + "." + collection), coll: s.Client.Database(database).Collection(collection), begun: begun}
	return g, needs(s.Do(ctx, func() error {
		spec, err := g.read(ctx)
		if err != nil {
			return err
		}
		if err := guard.Fits(database, spec); err != nil {
			return err
		}
		known, err := guard.Known(ctx, g.coll.Database())
		if err == nil && !known {
			err = failure.Usagef("cannot guard %s, because the server does not know the command collMod, which sets validators; FerretDB 1 does not", g.name())
		}
		if err != nil {
			return err
		}
		return migration.NotFenced(ctx, g.coll.Database(), collection)
	}))
}

func (g *Guard) read(ctx context.Context) (*mongo.CollectionSpecification, error) {
	spec, err := server.FindCollection(ctx, g.coll)
	if err != nil {
		return nil, err
	}
	g.uuid, g.now = spec.UUID, guard.SettingsOf(spec)
	g.saved, err = record.FindGuard(ctx, g.coll.Database(), g.coll.Name(), g.uuid)
	return spec, err
}

func (g *Guard) name() string { return g.coll.Database().Name() + "." + g.coll.Name() }

// Open finds out whether the collection can have a guard against the values that the conversions change.
// begun is called before the first change of something.
func Open(ctx context.Context, s *migration.Session, database, collection, level string, conversion rule.Conversion, begun func()) (*Guard, error) {
	var refuses []record.Refused
	for _, c := range conversion {
		for _, p := range c.Fields {
			path, err := guard.ParseField(p.String())
			if err != nil {
				return nil, failure.Usagef("%v", err)
			}
			refuses = append(refuses, record.Refused{Path: path, Subtype: c.From.Subtype})
		}
	}
	guard.Sort(refuses)
	g, err := open(ctx, s, database, collection, begun)
	if err != nil {
		return nil, err
	}
	g.conversion, g.refuses, g.level = conversion, refuses, level
	if err := g.differs(); err != nil {
		return nil, err
	}
	if err := g.mayOrder(ctx); err != nil {
		return nil, err
	}
	switch before := g.before(); {
	case len(before.Validator) > 0 && !guard.Enforced(before):
		g.Warn("the validator of %s has level %s and action %s, so that it refuses nothing; the guard replaces it until it is removed", g.name(), before.Level, before.Action)
	case len(before.Validator) > 0 && before.Level == guard.Strict && level != guard.Strict:
		g.Warn("the validator of %s has level strict; at level moderate, it does not apply to updates of documents that have an old value or that it refuses", g.name())
	}
	return g, nil
}

// mayOrder returns a usage error if the server does not apply the validator as MongoDB does.
func (g *Guard) mayOrder(ctx context.Context) error {
	for _, r := range g.refuses {
		ordered, err := patience.Ask(ctx, g.Patience, func() (bool, error) { return guard.Ordered(ctx, g.coll, r) })
		why := "the server does not order binary values as MongoDB does (by length, subtype, then bytes)"
		if r.IsText() {
			why = "the server does not apply regular expressions, or types, as MongoDB does"
		}
		switch {
		case err != nil:
			return fmt.Errorf("asking the server how it applies the validator: %w", err)
		case !ordered:
			return failure.Usagef("cannot guard %s: %s: the validator would accept old values or refuse new ones", g.name(), why)
		}
	}
	return nil
}

// Report returns what the guard is, or what Set would set.
func (g *Guard) Report() report.Guard {
	r := report.Guard{Collection: g.coll.Name(), Wanted: g.level, Before: g.before()}
	if g.isSet() && slices.Equal(g.saved.Refuses, g.refuses) {
		r.Now = g.saved.Now
	} else {
		r.Now = guard.Guarded(r.Before, g.refuses)
	}
	r.Shell = guard.Shell(g.coll, r.Now)
	return r
}

// Set sets the validator at level moderate, unless it is set.
func (g *Guard) Set(ctx context.Context) error {
	return needs(g.Do(ctx, func() error { return g.set(ctx, "") }))
}

// Raise changes the level of the guard, which must be set, to the one of the plan. Level strict needs a pass
// over all documents that finds no old value, and a second one at level strict.
func (g *Guard) Raise(ctx context.Context) (r report.Guard, err error) {
	stays := ""
	set := func(level string) error { return g.Do(ctx, func() error { return g.set(ctx, level) }) }
	strict := g.level == guard.Strict
	if strict {
		stays, err = g.pass(ctx)
	}
	switch {
	case err != nil:
	case !strict || stays != "":
		err = set(guard.Moderate)
	default:
		if err = set(guard.Strict); err == nil {
			stays, err = g.pass(ctx)
		}
		if err == nil && stays != "" {
			stays += ", written in spite of the validator"
			err = set(guard.Moderate)
		}
	}
	r = g.Report()
	r.Stays = stays
	return r, needs(err)
}

// pass reads all documents, and returns why the level cannot be strict, or "" if it can.
func (g *Guard) pass(ctx context.Context) (string, error) {
	found := &guard.Pass{Conversion: g.conversion}
	read, err := source.Collection{Collection: g.coll}.Read(ctx, g.Patience, func(total int64) progress.Progress {
		return g.Progress(total, "checking", g.name())
	}, found)
	if err != nil {
		return "", err
	}
	var others int64 // that the own validator refuses, and to which level strict would apply it
	if before := g.before(); guard.Enforced(before) && before.Level == guard.Moderate {
		others, err = patience.Ask(ctx, g.Patience, func() (int64, error) {
			return g.coll.CountDocuments(ctx, bson.D{{Key: "$nor", Value: bson.A{bson.Raw(before.Validator)}}})
		})
		if err != nil {
			return "", err
		}
	}
	names := func(t rule.Tally) string { return strings.Join(slices.Sorted(maps.Keys(t)), ", ") }
	var reasons []string
	if found.Old > 0 {
		reasons = append(reasons, fmt.Sprintf("%d old values are left in %d documents (%s)", found.Old, found.Documents, names(found.Fields)))
	}
	if len(found.Untested) > 0 {
		reasons = append(reasons, "old values are left in arrays in arrays ("+names(found.Untested)+")")
	}
	if read.Malformed > 0 {
		reasons = append(reasons, fmt.Sprintf("%d documents are not valid BSON", read.Malformed))
	}
	if others > 0 {
		reasons = append(reasons, fmt.Sprintf("the collection's own validator, which is at level moderate, refuses %d documents, and strict would apply it to them", others))
	}
	return strings.Join(reasons, "; "), nil
}

// Remove restores the settings that a collection had before its guard, or finds what it would restore.
// begun is called before the first change. The error wraps [ErrNone] if the record has no guard.
func Remove(ctx context.Context, s *migration.Session, database, collection string, write bool, begun func()) (r report.GuardRemoved, err error) {
	g, err := open(ctx, s, database, collection, begun)
	if err != nil {
		return r, err
	}
	r, err = patience.Ask(ctx, g.Patience, func() (report.GuardRemoved, error) { return g.remove(ctx, write) })
	return r, needs(err)
}

// needs adds to the error of a missing privilege which ones a guard needs.
func needs(err error) error {
	if !migration.Denied(err) {
		return err
	}
	e := failure.Explain(err, "")
	return &failure.Error{Kind: e.Kind, Text: e.Text + "; a guard needs collMod on the collection, and find, insert, update and remove on " + record.Name, Err: err}
}

// Has reports whether the record has a guard of the collection. A record that the user may not read has
// none.
func Has(ctx context.Context, s *migration.Session, db *mongo.Database, collection string) (has bool, err error) {
	err = s.Do(ctx, func() error {
		g, err := record.FindGuard(ctx, db, collection, nil)
		if migration.Denied(err) {
			return nil
		}
		has = g != nil
		return err
	})
	return has, err
}
