package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// released undoes a cutover that was released.
func (o *undoOptions) released(ctx context.Context, names []string) error {
	if o.noRecord {
		return failure.Usagef("--no-record cannot be used with --db: the cutover is in the record")
	}
	s := &cutoverOptions{switchFlags: switchFlags{console: o.console, recordFlags: o.recordFlags, load: o.load, output: o.output, database: o.database, write: o.write}, batch: o.batch}
	if err := s.check(names); err != nil {
		return err
	}
	s.about(s.database)
	client, err := s.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	s.load.begin(s.console)
	return explainSwitch(s.undoReleased(ctx, client.Database(s.database), names), s.connectionString())
}

// releasedOf returns the cutover to undo. The error is a usage error if there is none.
func (o *cutoverOptions) releasedOf(ctx context.Context, db *mongo.Database, names []string) (c *record.Cutover, err error) {
	err = o.load.patience.Do(ctx, func() (err error) {
		if c, err = record.CutoverOf(ctx, db, names...); c == nil && err == nil {
			c, err = record.ReleasedOf(ctx, db, names...)
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

func (o *cutoverOptions) undoReleased(ctx context.Context, db *mongo.Database, names []string) (err error) {
	again := func(f func() error) error { return o.load.patience.Do(ctx, f) }
	c, err := o.releasedOf(ctx, db, names)
	if err != nil {
		return err
	}
	conversions, err := o.conversions(ctx, db, c)
	if err != nil {
		return err
	}
	r := report.Cutover{Database: o.database, Cutover: c, Conversions: conversions, Undo: true}
	if c.State == record.Released {
		if err := again(func() error { return o.mayUndo(ctx, db, c) }); err != nil {
			return err
		}
		// What cannot be restored is found before anything is changed.
		stuck, err := o.compareBack(ctx, db, r)
		if err != nil {
			return err
		}
		if stuck > 0 {
			return failure.Usagef("the old values of %d documents cannot be known, see the warnings: change these documents, or delete them; nothing was changed", stuck)
		}
	}
	if !o.write {
		return o.print(r)
	}
	l, err := o.lock(ctx, db, c, record.SwitchBack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	now, err := o.releasedOf(ctx, db, names)
	if err != nil {
		return err
	}
	if now.ID != c.ID {
		return failure.Usagef("another cutover of the same collections has begun in the meantime; see bsonids status")
	}
	*c = *now
	on := o.server(db, l, conversions, o.batch.value)
	defer on.Close()
	x := &cutover.Cutover{Cutover: c, DB: on, Notice: func(text string) { o.warn("%s", text) }}
	r.Written = true
	if err := x.Undo(ctx); err != nil {
		if c.State != record.Released {
			o.wayOn = &wayOn{changed: "the validators of the collections, and possibly their names; see bsonids status", again: true}
			if c.Untouched {
				o.wayOn.changed = "the old collections were brought up to date; nothing is fenced"
			}
			if c.State == record.Undoing {
				o.wayOn.back = o.command("release", x.Names())
			}
		}
		r.Failed = true
		return errors.Join(err, o.print(r))
	}
	return o.print(r)
}

// mayUndo returns a usage error if an old collection was dropped, or a new one is guarded.
func (o *cutoverOptions) mayUndo(ctx context.Context, db *mongo.Database, c *record.Cutover) error {
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{})
	if err != nil {
		return err
	}
	there := make(map[string]*mongo.CollectionSpecification)
	for i := range specs {
		there[specs[i].Name] = &specs[i]
	}
	for _, x := range c.Collections {
		if there[x.Kept] == nil {
			return failure.Usagef("%s.%s, the old collection of %s, was dropped: what it had cannot be restored", db.Name(), x.Kept, x.Name)
		}
		if there[x.Name] == nil {
			return failure.Usagef("collection %s.%s does not exist", db.Name(), x.Name)
		}
		if there[x.New] != nil {
			return failure.Usagef("a collection %s.%s exists, the name that the new collection of %s gets; rename it", db.Name(), x.New, x.Name)
		}
		g, err := record.FindGuard(ctx, db, x.Name, there[x.Name].UUID)
		if err != nil {
			return err
		}
		if g != nil && !g.Stale(there[x.Name].UUID) && len(guard.SettingsOf(there[x.Name]).Validator) > 0 {
			return failure.Usagef("%s.%s is guarded; remove the guard first with bsonids guard --remove", db.Name(), x.Name)
		}
	}
	return nil
}

// compareBack compares the new collections with the kept ones, and lists the documents whose old
// values cannot be known.
func (o *cutoverOptions) compareBack(ctx context.Context, db *mongo.Database, r report.Cutover) (stuck int64, err error) {
	for i := range r.Collections {
		x := &r.Collections[i]
		p := &convert.Pair{Conversion: r.Conversions[x.Name], Old: db.Collection(x.Kept), New: db.Collection(x.Name), Back: true, Batch: o.batch.value}
		left, err := o.compare(ctx, p, p.New, x)
		for _, s := range left {
			o.warn("%s: _id %s: %s", x.Name, s.ID, s.Reason)
		}
		if err != nil {
			return 0, err
		}
		stuck += x.Compared.Stuck
	}
	return stuck, nil
}
