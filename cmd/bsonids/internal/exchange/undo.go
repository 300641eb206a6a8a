package exchange

import (
	"context"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// MayUndo returns the cutover of the collections, whatever its state, and a usage error if the old
// collections cannot be put back. What cannot be restored is found before anything is changed.
func (e *Exchange) MayUndo(ctx context.Context, names []string) (r Result, err error) {
	c, err := e.find(ctx, names, false)
	switch {
	case err != nil:
		return r, err
	case c == nil || c.State == record.RolledBack:
		return r, failure.Usagef("there was no cutover of %s, or it was rolled back", strings.Join(names, ", "))
	}
	r = Result{Cutover: report.Cutover{Database: e.Database, Cutover: c, Written: e.Write, Undo: true}, Begun: !e.Write}
	if r.Conversions, err = e.conversions(ctx, c); err != nil {
		return r, err
	}
	if err := e.allowed(ctx, c.Collections, privilege.PutBack); err != nil {
		return r, err
	}
	r.Denied = e.denied
	switch c.State {
	case record.Switched, record.Releasing, record.Released:
		err = e.mayReturn(ctx, &r)
	case record.Comparing, record.Fencing, record.Switching:
		r.Undo, r.RollBack = false, !e.Write
	}
	return r, err
}

// Undo puts the old collections of a cutover back.
func (e *Exchange) Undo(ctx context.Context, r *Result) error {
	return e.carryOut(ctx, r, record.SwitchBack, func(x *cutover.Cutover) error { return x.Undo(ctx) })
}

// mayReturn returns a usage error if old collections cannot be put back that a cutover has put away.
func (e *Exchange) mayReturn(ctx context.Context, r *Result) error {
	there, err := e.collections(ctx)
	if err != nil {
		return err
	}
	for _, x := range r.Collections {
		switch {
		case there[x.Kept] == nil:
			return failure.Usagef("%s.%s, the old collection of %s, was dropped: what it had cannot be restored", e.Database, x.Kept, x.Name)
		case there[x.Name] == nil:
			return failure.Usagef("collection %s.%s does not exist", e.Database, x.Name)
		case there[x.New] != nil:
			return failure.Usagef("a collection %s.%s exists, the name that the new collection of %s gets; rename it", e.Database, x.New, x.Name)
		}
	}
	stuck, err := e.compare(ctx, r, true)
	if err == nil && stuck > 0 {
		err = failure.Usagef("the old values of %d documents cannot be known, see the warnings: change these documents, or delete them; nothing was changed", stuck)
	}
	return err
}
