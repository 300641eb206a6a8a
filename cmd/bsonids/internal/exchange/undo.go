package exchange

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// releasedOf returns the cutover to undo. The error is a usage error if there is none.
func (e *Exchange) releasedOf(ctx context.Context, names []string) (c *record.Cutover, err error) {
	err = e.Do(ctx, func() (err error) {
		if c, err = record.CutoverOf(ctx, e.db, names...); c == nil && err == nil {
			c, err = record.ReleasedOf(ctx, e.db, names...)
		}
		return err
	})
	switch {
	case err != nil:
	case c == nil:
		err = failure.Usagef("the last cutover of %s was not released, or had other collections, or there was none", strings.Join(names, ", "))
	case !sameNames(c.Names(), names):
		err = failure.Usagef("the cutover has other collections: %s; they are undone together", strings.Join(c.Names(), ", "))
	case !slices.Contains([]string{record.Released, record.Undoing, record.RollingBack}, c.State):
		err = failure.Usagef("the cutover of %s is in the state %q: it was not released", strings.Join(names, ", "), c.State)
	}
	return c, err
}

// Undo puts the old collections of a cutover back that was released.
func (e *Exchange) Undo(ctx context.Context, names []string) (r Result, err error) {
	c, err := e.releasedOf(ctx, names)
	if err != nil {
		return r, err
	}
	r.Cutover = report.Cutover{Database: e.Database, Cutover: c, Undo: true}
	if r.Conversions, err = e.conversions(ctx, c); err != nil {
		return r, err
	}
	if c.State == record.Released {
		there, err := e.collections(ctx)
		if err != nil {
			return r, err
		}
		if err := e.Do(ctx, func() error { return e.mayUndo(ctx, c, there) }); err != nil {
			return r, err
		}
		// What cannot be restored is found before anything is changed.
		stuck, err := e.compareBack(ctx, r.Cutover)
		if err != nil {
			return r, err
		}
		if stuck > 0 {
			return r, failure.Usagef("the old values of %d documents cannot be known, see the warnings: change these documents, or delete them; nothing was changed", stuck)
		}
	}
	if r.Begun = !e.Write; r.Begun {
		return r, nil
	}
	l, err := e.lock(ctx, c, record.SwitchBack)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	now, err := e.releasedOf(ctx, names)
	if err != nil {
		return r, err
	}
	if now.ID != c.ID {
		return r, failure.Usagef("another cutover of the same collections has begun in the meantime; see bsonids status")
	}
	*c = *now
	x, end := e.steps(c, l, r.Conversions)
	defer end()
	r.Begun, r.Written = true, true
	err = x.Undo(ctx)
	r.Failed = err != nil
	return r, err
}

// mayUndo returns a usage error if an old collection was dropped, or a new one is guarded.
func (e *Exchange) mayUndo(ctx context.Context, c *record.Cutover, there map[string]*mongo.CollectionSpecification) error {
	for _, x := range c.Collections {
		if there[x.Kept] == nil {
			return failure.Usagef("%s.%s, the old collection of %s, was dropped: what it had cannot be restored", e.Database, x.Kept, x.Name)
		}
		if there[x.Name] == nil {
			return failure.Usagef("collection %s.%s does not exist", e.Database, x.Name)
		}
		if there[x.New] != nil {
			return failure.Usagef("a collection %s.%s exists, the name that the new collection of %s gets; rename it", e.Database, x.New, x.Name)
		}
		g, err := record.FindGuard(ctx, e.db, x.Name, there[x.Name].UUID)
		if err != nil {
			return err
		}
		if g != nil && !g.Stale(there[x.Name].UUID) && len(guard.SettingsOf(there[x.Name]).Validator) > 0 {
			return failure.Usagef("%s.%s is guarded; let the guard go first with bsonids release --guards --write", e.Database, x.Name)
		}
	}
	return nil
}

// compareBack compares the new collections with the kept ones, and lists the documents whose old
// values cannot be known.
func (e *Exchange) compareBack(ctx context.Context, r report.Cutover) (stuck int64, err error) {
	for i := range r.Collections {
		x := &r.Collections[i]
		left, err := e.compare(ctx, cutover.Way{Exchange: x, Back: true}, r.Conversions[x.Name])
		for _, s := range left {
			e.Warn("%s: _id %s: %s", x.Name, s.ID, s.Reason)
		}
		if err != nil {
			return 0, err
		}
		stuck += x.Compared.Stuck
	}
	return stuck, nil
}
