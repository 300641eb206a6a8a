package guard

import (
	"bytes"
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Removed is the result of removing a guard.
type Removed struct {
	// Restored reports whether the collection has the settings that it had before the guard. If not,
	// another program has replaced the validator, and it was left as it is.
	Restored bool
	Before   Settings // the settings before the guard
	Now      Settings // the settings that the collection has
}

// Removal returns what Remove would restore.
func (g *Guard) Removal() (Removed, error) {
	if g.saved == nil {
		return Removed{}, fail(ErrNone, "the record has no guard of %s", g.namespace())
	}
	return Removed{Before: g.Before(), Now: settings(g.spec)}, nil
}

// Remove restores the settings that the collection had before the guard, and deletes the guard from
// the record. It can be called again after an error.
func (g *Guard) Remove(ctx context.Context) (Removed, error) {
	db := g.coll.Database()
	for {
		if err := g.read(ctx); err != nil {
			return Removed{}, err
		}
		now, saved := settings(g.spec), g.saved
		if saved == nil {
			return Removed{}, fail(ErrNone, "the record has no guard of %s", g.namespace())
		}
		r := Removed{Before: saved.Before, Now: now}
		if saved.Stale(g.uuid) {
			g.notice("the guard in the record is of another collection of this name, which was dropped")
			r.Before = now
		}
		clause := lastClause(saved.Now.Validator)
		switch {
		case now.Equal(r.Before):
			r.Restored = true
		case bytes.Equal(now.Validator, saved.Now.Validator):
			if now.Action != saved.Now.Action || now.Level != Moderate && now.Level != Strict {
				g.notice(fmt.Sprintf("another program changed the level or the action since: they were %s and %s", now.Level, now.Action))
			}
			g.begin()
			if ok, err := saved.Advance(ctx, db, record.Removing, saved.Now.Level); err != nil {
				return r, err
			} else if !ok {
				continue
			}
			if err := modify(ctx, g.coll, command(g.coll.Name(), saved.Before), saved.Before); err != nil {
				return r, err
			}
			r.Restored, r.Now = true, saved.Before
		case bytes.Contains(now.Validator, clause):
			return r, &Error{Reason: ErrChanged, Restore: &saved.Before, Text: fmt.Sprintf("another program changed the validator of %s since, and it still has the guard in it; "+
				"take it out by hand, and run the command again: it now has %s", g.namespace(), Describe(now))}
		}
		g.begin()
		ok, err := saved.Delete(ctx, db)
		if err == nil && !ok {
			continue
		}
		return r, err
	}
}

// lastClause returns the clause of the guard in a validator that guarded has made.
func lastClause(validator bson.Raw) bson.Raw {
	all, ok := validator.Lookup("$and").ArrayOK()
	if !ok {
		return validator
	}
	values, err := bson.Raw(all).Values()
	if err != nil || len(values) == 0 {
		return validator
	}
	return values[len(values)-1].Value
}
