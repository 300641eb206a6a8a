package migration

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// GuardedError is the error of work whose values the guard of a collection would refuse.
type GuardedError struct {
	Database, Collection string
	Text                 string
}

func (e *GuardedError) Error() string { return e.Text }

// NotGuarded returns a [GuardedError] if the collection is guarded and the conversion, or its undo, would
// write values that the guard refuses. Into a new collection, it would copy the guard with the validator. uuid is
// that of the collection.
func NotGuarded(ctx context.Context, coll *mongo.Collection, uuid *bson.Binary, c rule.Conversion, undo, into bool) error {
	db, name := coll.Database(), coll.Name()
	if err := NotFenced(ctx, db, name); err != nil {
		return err
	}
	g, err := record.FindGuard(ctx, db, name, uuid)
	if Denied(err) {
		return nil // without the record, the server refuses the values
	}
	if err != nil || g == nil || g.Stale(uuid) {
		return err
	}
	refuses := slices.ContainsFunc(g.Refuses, func(r record.Refused) bool {
		return slices.ContainsFunc(c, func(p rule.Pair) bool {
			writes := p.To
			if undo {
				writes = p.From
			}
			return r.Subtype == writes.Subtype && (len(p.Fields) == 0 || slices.ContainsFunc(p.Fields, func(p walk.Pattern) bool { return p.MatchField(r.Path) }))
		})
	})
	if !into && !refuses {
		return nil
	}
	why := "the server would refuse the values to write"
	if into {
		why = "the new collection would have the guard of the old one"
	}
	return &GuardedError{db.Name(), name, db.Name() + "." + name + " is guarded against " + g.Against() + ": " + why}
}

// NotFenced returns a usage error if a cutover that has not ended uses one of the collections.
func NotFenced(ctx context.Context, db *mongo.Database, names ...string) error {
	c, err := record.CutoverOf(ctx, db, names...)
	if Denied(err) {
		return nil // without the record, the server refuses the writes
	}
	if err != nil || c == nil {
		return err
	}
	switch {
	case c.Untouched() && c.State == record.Undoing:
		return failure.Usagef("%s.%s is compared by the undo of a cutover of %s; finish it with bsonids undo, or give it up with bsonids release", db.Name(), names[0], strings.Join(c.Names(), ", "))
	case c.Untouched():
		return failure.Usagef("%s.%s is compared by a cutover of %s; finish it with bsonids cutover, or give it up with bsonids cutover --roll-back", db.Name(), names[0], strings.Join(c.Names(), ", "))
	}
	return failure.Usagef("%s.%s is fenced by a cutover of %s, in the state %q; finish it with bsonids cutover and bsonids release first",
		db.Name(), names[0], strings.Join(c.Names(), ", "), c.State)
}
