// Package protect sets, raises and removes the guards of collections.
package protect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Guard is the guard of a collection of a plan.
type Guard struct {
	*migration.Session
	coll        *mongo.Collection
	conversions []rule.Conversion
	values      []guard.Values
	strict      bool
	guard       *guard.Guard
}

// open opens the guard of a collection. begun is called before the first change.
func open(ctx context.Context, s *migration.Session, database, collection string, begun func()) (*mongo.Collection, *guard.Guard, error) {
	coll := s.Client.Database(database).Collection(collection)
	var g *guard.Guard
	err := s.Do(ctx, func() (err error) {
		if g, err = guard.Open(ctx, coll, s.Version); err != nil {
			return err
		}
		return migration.NotFenced(ctx, coll.Database(), collection)
	})
	if err != nil {
		return nil, nil, needs(err)
	}
	g.Begun = begun
	g.Notice = func(text string) { s.Warn("%s", text) }
	return coll, g, nil
}

// Open finds out whether the collection can have a guard against the values that the conversions change.
// begun is called before the first change of something.
func Open(ctx context.Context, s *migration.Session, database, collection, level string, conversions []rule.Conversion, begun func()) (*Guard, error) {
	w := &Guard{Session: s.Child(database + "." + collection), conversions: conversions, strict: level == guard.Strict}
	for _, c := range conversions {
		for _, p := range c.Fields {
			f, err := guard.ParseField(p.String())
			if err != nil {
				return nil, failure.Usagef("%v", err)
			}
			w.values = append(w.values, guard.Values{Field: f, Kind: c.From})
		}
	}
	var err error
	if w.coll, w.guard, err = open(ctx, w.Session, database, collection, begun); err != nil {
		return nil, err
	}
	if err := w.guard.Differs(w.values); err != nil {
		return nil, err
	}
	if err := w.mayOrder(ctx); err != nil {
		return nil, err
	}
	w.warnOfValidator(w.guard.Before())
	return w, nil
}

// report returns what the guard is, or would be, with the level.
func (w *Guard) report(now guard.Settings) report.Guard {
	r := report.Guard{Collection: w.coll.Name(), Wanted: guard.Moderate, Before: w.guard.Before(), Now: now, Shell: guard.Shell(w.coll, now)}
	if w.strict {
		r.Wanted = guard.Strict
	}
	return r
}

// Proposed returns what Set would set.
func (w *Guard) Proposed() report.Guard { return w.report(w.guard.Proposed(w.values)) }

// Set sets the validator at level moderate, unless it is set.
func (w *Guard) Set(ctx context.Context) error {
	return needs(w.Do(ctx, func() error { return w.guard.Set(ctx, w.values) }))
}

// Raise changes the level of the guard, which must be set, to the one of the plan. Level strict needs a pass
// over all documents that finds no old value, and a second one at level strict.
func (w *Guard) Raise(ctx context.Context) (r report.Guard, err error) {
	stays := ""
	set := func(level string) error { return w.Do(ctx, func() error { return w.guard.SetLevel(ctx, level) }) }
	if w.strict {
		stays, err = w.pass(ctx)
	}
	switch {
	case err != nil:
	case !w.strict || stays != "":
		err = set(guard.Moderate)
	default:
		if err = set(guard.Strict); err == nil {
			stays, err = w.pass(ctx)
		}
		if err == nil && stays != "" {
			stays += ", written in spite of the validator"
			err = set(guard.Moderate)
		}
	}
	r = w.report(w.guard.Proposed(w.values))
	r.Stays = stays
	return r, needs(err)
}

// pass reads all documents, and returns why the level cannot be strict, or "" if it can.
func (w *Guard) pass(ctx context.Context) (string, error) {
	found, err := w.guard.Pass(ctx, w.conversions, w.Patience, func(total int64) *progress.Progress {
		return w.Progress(total, "checking", w.coll.Database().Name()+"."+w.coll.Name())
	})
	if err != nil {
		return "", err
	}
	var others int64
	if err := w.Do(ctx, func() (err error) { others, err = w.guard.Others(ctx); return err }); err != nil {
		return "", err
	}
	var reasons []string
	if found.Old > 0 {
		reasons = append(reasons, fmt.Sprintf("%d old values are left in %d documents (%s)", found.Old, found.Documents, names(found.Fields)))
	}
	if len(found.Untested) > 0 {
		reasons = append(reasons, "old values are left in arrays in arrays ("+names(found.Untested)+")")
	}
	if found.Corrupt > 0 {
		reasons = append(reasons, fmt.Sprintf("%d documents are not valid BSON", found.Corrupt))
	}
	if others > 0 {
		reasons = append(reasons, fmt.Sprintf("the collection's own validator, which is at level moderate, refuses %d documents, and strict would apply it to them", others))
	}
	return strings.Join(reasons, "; "), nil
}

func names(t rule.Tally) string { return strings.Join(slices.Sorted(maps.Keys(t)), ", ") }

// mayOrder returns a usage error if the server does not apply the validator as MongoDB does.
func (w *Guard) mayOrder(ctx context.Context) error {
	for _, v := range w.values {
		var ordered bool
		err := w.Do(ctx, func() (err error) {
			ordered, err = guard.Ordered(ctx, w.coll, v.Field, v.Kind)
			return err
		})
		why := "the server does not order binary values as MongoDB does (by length, subtype, then bytes)"
		if !v.Kind.IsBinary() {
			why = "the server does not apply regular expressions, or types, as MongoDB does"
		}
		switch {
		case err != nil:
			return fmt.Errorf("asking the server how it applies the validator: %w", err)
		case !ordered:
			return failure.Usagef("cannot guard %s.%s: %s: the validator would accept old values or refuse new ones", w.coll.Database().Name(), w.coll.Name(), why)
		}
	}
	return nil
}

// warnOfValidator says what a guard means for the collection's own validator.
func (w *Guard) warnOfValidator(before guard.Settings) {
	name := w.coll.Database().Name() + "." + w.coll.Name()
	switch own, enforced := guard.Own(before); {
	case own && !enforced:
		w.Warn("the validator of %s has level %s and action %s, so that it refuses nothing; the guard replaces it until it is removed", name, before.Level, before.Action)
	case own && before.Level == guard.Strict && !w.strict:
		w.Warn("the validator of %s has level strict; at level moderate, it does not apply to updates of documents that have an old value or that it refuses", name)
	}
}

// Remove restores the settings that a collection had before its guard, or finds what it would restore.
// begun is called before the first change.
func Remove(ctx context.Context, s *migration.Session, database, collection string, write bool, begun func()) (r guard.Removed, err error) {
	_, g, err := open(ctx, s, database, collection, begun)
	if err != nil {
		return r, err
	}
	err = s.Do(ctx, func() (err error) {
		if write {
			r, err = g.Remove(ctx)
		} else {
			r, err = g.Removal()
		}
		return err
	})
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
