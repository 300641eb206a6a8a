// Package protect sets and removes the guard of a collection: it finds the fields to guard, and raises the
// level when passes over the documents prove that it can.
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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// Options describe a guard.
type Options struct {
	migration.Described
	Level     string // guard.Moderate, guard.Strict, or empty
	Write     bool
	Unordered bool // set the validator although the server does not order binary values as MongoDB does
}

type worker struct {
	*migration.Session
	Options
	coll  *mongo.Collection
	guard *guard.Guard
}

// open opens the guard of a collection. begun is set before the first change.
func open(ctx context.Context, s *migration.Session, database, collection string, begun *bool) (*mongo.Collection, *guard.Guard, error) {
	s.About(database + "." + collection)
	coll := s.Client.Database(database).Collection(collection)
	var g *guard.Guard
	err := s.Do(ctx, func() (err error) {
		if g, err = guard.Open(ctx, coll, s.Version); err != nil {
			return err
		}
		return migration.NotFenced(ctx, coll.Database(), collection)
	})
	if err != nil {
		return nil, nil, err
	}
	g.Begun = func() { *begun = true }
	g.Notice = func(text string) { s.Warn("%s", text) }
	return coll, g, nil
}

// Remove restores the settings that a collection had before its guard, or finds what it would restore.
// begun reports whether it may have changed something.
func Remove(ctx context.Context, s *migration.Session, database, collection string, write bool) (r guard.Removed, begun bool, err error) {
	_, g, err := open(ctx, s, database, collection, &begun)
	if err != nil {
		return r, false, err
	}
	err = s.Do(ctx, func() (err error) {
		if write {
			r, err = g.Remove(ctx)
		} else {
			r, err = g.Removal()
		}
		return err
	})
	return r, begun, err
}

// Set sets the validator, or finds what it would set. begun reports whether it may have changed
// something.
func Set(ctx context.Context, s *migration.Session, o Options) (r report.Guard, begun bool, err error) {
	w := &worker{Session: s, Options: o}
	if w.coll, w.guard, err = open(ctx, s, o.ID.Database, o.ID.Collection, &begun); err == nil {
		r, err = w.set(ctx)
	}
	return r, begun, err
}

func (w *worker) set(ctx context.Context) (r report.Guard, err error) {
	fields, err := w.guardFields(ctx)
	if err != nil {
		return r, err
	}
	if err := w.guard.Differs(fields, w.Conversion.From); err != nil {
		return r, err
	}
	_, saved, isSet := w.guard.Saved()
	strict := w.Level == guard.Strict || w.Level == "" && isSet && saved == guard.Strict
	if err := w.mayOrder(ctx, fields); err != nil {
		return r, err
	}
	r = report.Guard{Database: w.ID.Database, Collection: w.ID.Collection, From: w.Conversion.From, Fields: fields, Write: w.Write, Before: w.guard.Before(),
		Now: w.guard.Proposed(fields, w.Conversion.From), Strict: strict}
	w.warnOfValidator(r.Before, strict)
	pass := func() (found guard.Found, err error) {
		found, err = w.guard.Pass(ctx, fields, w.Conversion, w.Patience, func(total int64) *progress.Progress {
			return w.Progress(total, "checking", w.ID.Database+"."+w.ID.Collection)
		})
		r.Passes = append(r.Passes, found)
		return found, err
	}
	set := func(level string) error { return w.Do(ctx, func() error { return w.guard.SetLevel(ctx, level) }) }

	// A pass before level strict proves something only if the validator is set before it.
	if w.Write && strict {
		if err := w.Do(ctx, func() error { return w.guard.Set(ctx, fields, w.Conversion.From) }); err != nil {
			return r, err
		}
	}
	found, err := pass()
	if err != nil {
		return r, err
	}
	if err := untested(found); err != nil && !strict {
		return r, err
	}
	var others int64
	if strict {
		if err := w.Do(ctx, func() (err error) { others, err = w.guard.Others(ctx); return err }); err != nil {
			return r, err
		}
	}
	r.Stays = stays(found, others, strict)
	switch {
	case !w.Write:
	case !strict:
		if err = w.Do(ctx, func() error { return w.guard.Set(ctx, fields, w.Conversion.From) }); err == nil && w.Level != "" {
			err = set(w.Level)
		}
	case r.Stays != "":
		err = set(guard.Moderate)
	default:
		if err = set(guard.Strict); err != nil {
			break
		}
		if found, err = pass(); err != nil {
			break
		}
		if r.Stays = stays(found, 0, true); r.Stays != "" {
			r.Stays += ", written in spite of the validator"
			err = set(guard.Moderate)
		}
	}
	if err != nil {
		return r, err
	}
	if w.Write {
		r.Now = w.guard.Proposed(fields, w.Conversion.From)
	} else {
		r.Now.Level = guard.Moderate
		if strict && r.Stays == "" {
			r.Now.Level = guard.Strict
		}
	}
	r.Shell = guard.Shell(w.coll, r.Now)
	return r, nil
}

// stays returns why the level cannot be strict, or "" if it can.
func stays(found guard.Found, others int64, strict bool) string {
	var reasons []string
	if found.Old > 0 {
		reasons = append(reasons, fmt.Sprintf("%d old values are left in %d documents", found.Old, found.Documents))
	}
	if len(found.Untested) > 0 {
		reasons = append(reasons, "old values are left in arrays in arrays ("+strings.Join(slices.Sorted(maps.Keys(found.Untested)), ", ")+")")
	}
	if found.Corrupt > 0 {
		reasons = append(reasons, fmt.Sprintf("%d documents are not valid BSON", found.Corrupt))
	}
	if others > 0 {
		reasons = append(reasons, fmt.Sprintf("the collection's own validator, which is at level moderate, refuses %d documents, and strict would apply it to them", others))
	}
	if !strict {
		return ""
	}
	return strings.Join(reasons, "; ")
}

// untested returns a usage error if the validator does not test old values in the guarded fields.
func untested(found guard.Found) error {
	if len(found.Untested) == 0 {
		return nil
	}
	return failure.Usagef("cannot guard %s: arrays in arrays; a validator tests only the elements of the outer ones", strings.Join(slices.Sorted(maps.Keys(found.Untested)), ", "))
}

// mayOrder returns a usage error if the server does not apply the validator as MongoDB does.
func (w *worker) mayOrder(ctx context.Context, fields []guard.Field) error {
	var ordered bool
	err := w.Do(ctx, func() (err error) {
		ordered, err = guard.Ordered(ctx, w.coll, fields[0], w.Conversion.From)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("asking the server how it applies the validator: %w", err)
	case ordered:
		return nil
	}
	why := "the server does not order binary values as MongoDB does (by length, subtype, then bytes)"
	if !w.Conversion.From.IsBinary() {
		why = "the server does not apply regular expressions, or types, as MongoDB does"
	}
	if w.Write && !w.Unordered {
		return failure.Usagef("%s: the validator would accept old values or refuse new ones of %s.%s; --confirm-unordered sets it nevertheless", why, w.ID.Database, w.ID.Collection)
	}
	w.Warn("%s: there, the validator accepts old values or refuses new ones", why)
	return nil
}

// warnOfValidator says what a guard means for the collection's own validator.
func (w *worker) warnOfValidator(before guard.Settings, strict bool) {
	switch own, enforced := guard.Own(before); {
	case own && !enforced:
		w.Warn("the validator of %s.%s has level %s and action %s, so that it refuses nothing; the guard replaces it until it is removed", w.ID.Database, w.ID.Collection, before.Level, before.Action)
	case own && before.Level == guard.Strict && !strict:
		w.Warn("the validator of %s.%s has level strict; at level moderate, it does not apply to updates of documents that have an old value or that it refuses", w.ID.Database, w.ID.Collection)
	}
}
