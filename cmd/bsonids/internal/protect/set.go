package protect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// isSet reports whether the record has a guard of the collection.
func (g *Guard) isSet() bool { return g.saved != nil && !g.saved.Stale(g.uuid) }

// before returns the settings that the collection had before the guard, or has if there is none.
func (g *Guard) before() record.Settings {
	if g.isSet() {
		return g.saved.Before
	}
	return g.now
}

// differs returns an error if the record has a guard against values that the plan does not name.
func (g *Guard) differs() error {
	if !g.isSet() || !slices.ContainsFunc(g.saved.Refuses, func(r record.Refused) bool { return !slices.Contains(g.refuses, r) }) {
		return nil
	}
	return failure.Usagef("%s is guarded already, against %s; to guard other values, let the guard go first, with bsonids release --guards --write",
		g.name(), g.saved.Against())
}

// set sets the validator and its level, and then the guard in the record. Without a level, a guard that is set
// keeps its own, and another one is set at level moderate; a guard against some of the values is removed
// before. With a level, the guard must be set. It can be called again after an error.
func (g *Guard) set(ctx context.Context, level string) error {
	db := g.coll.Database()
	var set *record.Guard // whose validator was set here
	for {
		if _, err := g.read(ctx); err != nil {
			return err
		}
		now, saved := g.now, g.saved
		switch {
		case saved == nil && level != "":
			return failure.Usagef("the guard of %s was removed in the meantime", g.name())
		case saved == nil:
			if set == nil && bytes.Contains(now.Validator, guard.Clause(g.refuses)) {
				return failure.Usagef("%s has this guard already, but the record does not, so that the settings before it are not known; "+
					"remove it from the validator by hand: %s", g.name(), guard.Describe(now))
			}
			fresh := record.Guard{Collection: g.coll.Name(), UUID: g.uuid, Refuses: g.refuses, Before: now, Now: guard.Guarded(now, g.refuses)}
			if set != nil { // another command removed it meanwhile
				fresh.Before, fresh.Now = set.Before, set.Now
			}
			g.begun()
			if err := fresh.Insert(ctx, db, g.Version); err != nil && !errors.Is(err, record.ErrTakenOver) {
				return err
			}
			continue // with the document of whoever inserted it
		case saved.Stale(g.uuid):
			g.begun()
			g.Warn("the record has a guard of another collection of this name, which was dropped; it is replaced")
			if _, err := saved.Delete(ctx, db); err != nil {
				return err
			}
			continue
		case saved.State == record.Removing:
			return &failure.Error{Text: fmt.Sprintf("the guard of %s is being removed, by %s on %s since %s; to finish that, run bsonids release --guards --write",
				g.name(), saved.By.User, saved.By.Host, at(saved.Updated))}
		}
		if err := g.differs(); err != nil {
			return err
		}
		if !slices.Equal(saved.Refuses, g.refuses) {
			if _, err := g.remove(ctx, true); err != nil {
				return err
			}
			continue
		}
		want, change := saved.Now, guard.Modify
		there := bytes.Equal(now.Validator, want.Validator) && now.Action == want.Action
		switch {
		case there && level != "" && level != now.Level:
			want.Level, change = level, guard.SetLevel
		case there && (now.Level == guard.Moderate || now.Level == guard.Strict):
			if saved.State == record.Set && want.Level == now.Level {
				return nil
			}
			want.Level, change = now.Level, nil
		case level != "" || !now.Equal(saved.Before):
			return g.changed("another program changed the settings of %s since they were guarded on %s: it now has %s", g.name(), at(saved.Updated), guard.Describe(now))
		default:
			if saved.State == record.Set {
				g.Warn("another program removed the guard since %s; it is set again", at(saved.Updated))
			}
			want.Level, set = guard.Moderate, saved
		}
		g.begun()
		if change != nil {
			if err := change(ctx, g.coll, want); err != nil {
				return err
			}
		}
		if err := saved.Advance(ctx, db, record.Set, want.Level); !errors.Is(err, record.ErrTakenOver) {
			return err
		}
	}
}

// remove restores the settings that the collection had before the guard, and deletes the guard from the
// record; or it finds what it would restore. It can be called again after an error.
func (g *Guard) remove(ctx context.Context, write bool) (r report.GuardRemoved, err error) {
	db := g.coll.Database()
	for {
		if _, err := g.read(ctx); err != nil {
			return r, err
		}
		saved := g.saved
		if saved == nil {
			return r, &failure.Error{Kind: failure.Usage, Err: ErrNone, Text: fmt.Sprintf("the record has no guard of %s", g.name())}
		}
		r = report.GuardRemoved{Collection: g.name(), Written: write, Before: g.before(), Now: g.now}
		if !write {
			return r, nil
		}
		if !g.isSet() {
			g.Warn("the guard in the record is of another collection of this name, which was dropped")
		}
		switch {
		case r.Now.Equal(r.Before):
			r.Restored = true
		case bytes.Equal(r.Now.Validator, saved.Now.Validator):
			if r.Now.Action != saved.Now.Action || r.Now.Level != guard.Moderate && r.Now.Level != guard.Strict {
				g.Warn("another program changed the level or the action since: they were %s and %s", r.Now.Level, r.Now.Action)
			}
			g.begun()
			if err := saved.Advance(ctx, db, record.Removing, saved.Now.Level); errors.Is(err, record.ErrTakenOver) {
				continue
			} else if err != nil {
				return r, err
			}
			if err := guard.Modify(ctx, g.coll, saved.Before); err != nil {
				return r, err
			}
			r.Restored, r.Now = true, saved.Before
		case bytes.Contains(r.Now.Validator, lastClause(saved.Now.Validator)):
			return r, g.changed("another program changed the validator of %s since, and it still has the guard in it; "+
				"take it out by hand, and run the command again: it now has %s", g.name(), guard.Describe(r.Now))
		}
		g.begun()
		if ok, err := saved.Delete(ctx, db); ok || err != nil {
			return r, err
		}
	}
}

// lastClause returns the clause of the guard in a validator, which is the last one beside that of the collection.
func lastClause(validator bson.Raw) []byte {
	if all, ok := validator.Lookup("$and").ArrayOK(); ok {
		if clauses, err := all.Values(); err == nil && len(clauses) > 0 {
			return clauses[len(clauses)-1].Value
		}
	}
	return validator
}

func (g *Guard) changed(format string, args ...any) error {
	return &failure.Error{Err: guard.ErrChanged, Text: fmt.Sprintf(format, args...) + "; before the guard, it had " + guard.Describe(g.saved.Before) +
		"; bsonids release --guards --write ends a guard that is not in the validator any more, and leaves the validator as it is"}
}

func at(t time.Time) string { return t.UTC().Format(time.DateTime) }
