// Package guard protects a collection against values of the old subtype while it is converted in
// place: by a validator that refuses them, besides the validator that the collection has.
package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// The reasons for which a guard cannot be set or removed. An [*Error] wraps one of them.
var (
	ErrUnfit   = errors.New("the collection cannot be guarded")
	ErrServer  = errors.New("the server has no validators")
	ErrOther   = errors.New("there is another guard")
	ErrBusy    = errors.New("another command changes the guard")
	ErrNone    = errors.New("there is no guard")
	ErrChanged = errors.New("another program changed the settings")
)

// Error explains in one sentence why a guard cannot be set or removed.
type Error struct {
	Text   string
	Reason error
	// Restore, if set, has the settings that the collection had before the guard.
	Restore *Settings
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

func fail(reason error, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Reason: reason}
}

// Guard is the guard of one collection. It is not safe for concurrent use.
type Guard struct {
	coll    *mongo.Collection
	version string // of this program
	uuid    *bson.Binary
	spec    *mongo.CollectionSpecification
	saved   *record.Guard // nil if the record has none

	// Begun is called before the first change of the collection or of the record. It may be nil.
	Begun func()
	// Notice is called with what the user should know and need not do anything about. It may be nil.
	Notice func(text string)
}

// Open reads the settings of the collection, and the guard that the record has of it. The error is an
// [*Error] if the collection or the server cannot have one.
func Open(ctx context.Context, coll *mongo.Collection, version string) (*Guard, error) {
	g := &Guard{coll: coll, version: version}
	if err := g.read(ctx); err != nil {
		return nil, err
	}
	if err := g.fits(); err != nil {
		return nil, err
	}
	return g, g.supported(ctx)
}

func (g *Guard) namespace() string { return g.coll.Database().Name() + "." + g.coll.Name() }

func (g *Guard) read(ctx context.Context) (err error) {
	if g.spec, err = server.FindCollection(ctx, g.coll); err != nil {
		return err
	}
	g.uuid = g.spec.UUID
	g.saved, err = record.FindGuard(ctx, g.coll.Database(), g.coll.Name(), g.uuid)
	return err
}

// fits returns an error if the collection cannot have a validator, or not one more.
func (g *Guard) fits() error {
	s := settings(g.spec)
	switch {
	case g.spec.Type == "view" || g.spec.Type == "timeseries":
		return fail(ErrUnfit, "cannot guard %s, because it is a %s", g.namespace(), g.spec.Type)
	case slices.Contains([]string{"admin", "config", "local"}, g.coll.Database().Name()):
		return fail(ErrUnfit, "cannot guard %s, because MongoDB allows no validators in the database %s", g.namespace(), g.coll.Database().Name())
	case g.spec.Options.Lookup("encryptedFields").Type == bson.TypeEmbeddedDocument:
		return fail(ErrUnfit, "cannot guard %s, because it has encrypted fields (encryptedFields), whose values a validator cannot test", g.namespace())
	case encrypts(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: s.Validator}):
		return fail(ErrUnfit, "cannot guard %s, because its validator is a schema with encrypt or encryptMetadata: clients look for it at the top level of the "+
			"validator and would write unencrypted values, and MongoDB refuses it at level moderate", g.namespace())
	case s.Level == levelConstraint:
		return fail(ErrUnfit, "cannot guard %s, because MongoDB does not change a validator at level constraint; change the level to strict first", g.namespace())
	}
	return nil
}

// encrypts reports whether a validator has the keywords of client-side encryption.
func encrypts(v bson.RawValue) bool {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray || len(v.Value) == 0 {
		return false
	}
	elems, err := bson.Raw(v.Value).Elements()
	return err == nil && slices.ContainsFunc(elems, func(e bson.RawElement) bool {
		return e.Key() == "encrypt" || e.Key() == "encryptMetadata" || encrypts(e.Value())
	})
}

// supported returns an error if the server lacks the command that sets validators.
func (g *Guard) supported(ctx context.Context) error {
	known, err := Known(ctx, g.coll.Database())
	if err == nil && !known {
		err = fail(ErrServer, "cannot guard %s, because the server does not know the command collMod, which sets validators; FerretDB 1 does not", g.namespace())
	}
	return err
}

// Known reports whether the server knows the command that sets validators. The command that is sent
// changes nothing: it names a collection that does not exist. A user who may not send it may still
// see the validator.
func Known(ctx context.Context, db *mongo.Database) (bool, error) {
	err := db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "bsonids.absent"}}).Err()
	var se mongo.ServerError
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &se):
		return false, err
	case failure.Means(err, failure.Unknown):
		return false, nil
	case failure.Means(err, failure.Missing|failure.Unauthorized|failure.Atlas):
		return true, nil
	}
	return false, err
}

// isSet reports whether the record has a guard of the collection.
func (g *Guard) isSet() bool { return g.saved != nil && !g.saved.Stale(g.uuid) }

// Before returns the settings that the collection had before the guard, or has if there is none.
func (g *Guard) Before() Settings {
	if g.isSet() {
		return g.saved.Before
	}
	return settings(g.spec)
}

// Proposed returns the settings that Set would set.
func (g *Guard) Proposed(values []Values) Settings {
	if g.isSet() && slices.Equal(g.saved.Refuses, recorded(values)) {
		return g.saved.Now
	}
	return guarded(g.Before(), document(Clause(values)))
}

// Differs returns an error if the record has a guard against values that are not among these.
func (g *Guard) Differs(values []Values) error {
	among := recorded(values)
	if !g.isSet() || !slices.ContainsFunc(g.saved.Refuses, func(r record.Refused) bool { return !slices.Contains(among, r) }) {
		return nil
	}
	return fail(ErrOther, "%s is guarded already, against %s", g.namespace(), g.saved.Against())
}

// Set sets a validator that refuses the values, at level moderate, unless it is set already. One that refuses
// some of them is removed before. Set can be called again after an error.
func (g *Guard) Set(ctx context.Context, values []Values) error {
	clause := document(Clause(values))
	db := g.coll.Database()
	for {
		if err := g.read(ctx); err != nil {
			return err
		}
		now, saved := settings(g.spec), g.saved
		switch {
		case saved == nil:
			if bytes.Contains(now.Validator, clause) {
				return fail(ErrOther, "%s has this guard already, but the record does not, so that the settings before it are not known; "+
					"remove it from the validator by hand: %s", g.namespace(), Describe(now))
			}
			guard := &record.Guard{Collection: g.coll.Name(), UUID: g.uuid, Refuses: recorded(values),
				Before: now, Now: guarded(now, clause)}
			g.begin()
			if _, err := guard.Insert(ctx, db, g.version); err != nil {
				return err
			}
			continue // with the document of whoever inserted it
		case saved.Stale(g.uuid):
			g.begin()
			g.notice("the record has a guard of another collection of this name, which was dropped; it is replaced")
			if _, err := saved.Delete(ctx, db); err != nil {
				return err
			}
			continue
		case saved.State == record.Removing:
			return fail(ErrBusy, "the guard of %s is being removed, by %s on %s since %s", g.namespace(), saved.By.User, saved.By.Host, at(saved.Updated))
		}
		if err := g.Differs(values); err != nil {
			return err
		}
		if !slices.Equal(saved.Refuses, recorded(values)) {
			if _, err := g.Remove(ctx); err != nil {
				return err
			}
			continue
		}
		switch {
		case bytes.Equal(now.Validator, saved.Now.Validator) && now.Action == saved.Now.Action && (now.Level == Moderate || now.Level == Strict):
			if saved.State != record.Set || saved.Now.Level != now.Level {
				g.begin()
				if ok, err := saved.Advance(ctx, db, record.Set, now.Level); err != nil {
					return err
				} else if !ok {
					continue
				}
			}
			return nil
		case !now.Equal(saved.Before):
			return g.changed(now)
		}
		if saved.State == record.Set {
			g.notice("another program removed the guard since " + at(saved.Updated) + "; it is set again")
		}
		want := saved.Now
		want.Level = Moderate
		g.begin()
		if err := modify(ctx, g.coll, command(g.coll.Name(), want), want); err != nil {
			return err
		}
		ok, err := saved.Advance(ctx, db, record.Set, Moderate)
		if err != nil || ok {
			return err
		}
		// Another command has set or removed the guard in the meantime.
		if err := g.read(ctx); err != nil {
			return err
		}
		if g.saved == nil { // removed, before this command set it
			again := *saved
			if _, err := again.Insert(ctx, db, g.version); err != nil {
				return err
			}
		}
	}
}

// SetLevel changes the level of the guard, which must be set.
func (g *Guard) SetLevel(ctx context.Context, level string) error {
	if err := g.read(ctx); err != nil {
		return err
	}
	now := settings(g.spec)
	switch {
	case g.saved == nil || g.saved.Stale(g.uuid):
		return fail(ErrNone, "the guard of %s was removed in the meantime", g.namespace())
	case g.saved.State != record.Set:
		return fail(ErrBusy, "another command changes the guard of %s, since %s", g.namespace(), at(g.saved.Updated))
	case !bytes.Equal(now.Validator, g.saved.Now.Validator) || now.Action != g.saved.Now.Action:
		return g.changed(now)
	}
	if now.Level != level {
		g.begin()
		want := now
		want.Level = level
		// Without the validator in the command, one that another program sets meanwhile stays.
		if err := modify(ctx, g.coll, bson.D{{Key: "collMod", Value: g.coll.Name()}, {Key: "validationLevel", Value: level}}, want); err != nil {
			return err
		}
	}
	if g.saved.Now.Level == level {
		return nil
	}
	g.begin()
	ok, err := g.saved.Advance(ctx, g.coll.Database(), record.Set, level)
	if err == nil && !ok {
		err = fail(ErrBusy, "another command changed the guard of %s at the same time", g.namespace())
	}
	return err
}

func (g *Guard) changed(now Settings) error {
	return &Error{Reason: ErrChanged, Restore: &g.saved.Before, Text: fmt.Sprintf("another program changed the settings of %s since they were guarded on %s: it now has %s",
		g.namespace(), at(g.saved.Updated), Describe(now))}
}

func (g *Guard) begin() {
	if g.Begun != nil {
		g.Begun()
	}
}

func (g *Guard) notice(text string) {
	if g.Notice != nil {
		g.Notice(text)
	}
}

func at(t time.Time) string { return t.UTC().Format(time.DateTime) }
