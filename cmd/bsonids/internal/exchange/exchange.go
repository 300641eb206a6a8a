// Package exchange puts the converted copies of collections in their place, releases them, and puts the
// old collections back: it finds the copies, takes the locks, and checks what would make a cutover fail.
// Package cutover carries it out.
package exchange

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Timeout is the time limit of a command of a cutover, if none is given. A run that rolls back another
// one waits as long for its last command.
const Timeout = 20 * time.Second

// batch is the number of documents that are read at a time; less if they are large.
const batch = 1000

// Options describe an exchange.
type Options struct {
	Database string
	Write    bool
	RollBack bool     // put the old collections back
	Copies   []string // that a plan names, one of each collection
	// Conversions are those of the directory of a migration, whose copies are meant. If there are none, any copies are.
	Conversions []string
	Skipped     []string // collections whose copies may have skipped values
}

// Exchange exchanges collections of a database.
type Exchange struct {
	*migration.Session
	Options
	db     *mongo.Database
	denied error // in a rehearsal, what the command would end with, because the user lacks privileges
}

// New returns what exchanges collections.
func New(s *migration.Session, o Options) *Exchange {
	if s.BatchTimeout == 0 {
		s.BatchTimeout = Timeout
	}
	s.About(o.Database)
	return &Exchange{Session: s, Options: o, db: s.Client.Database(o.Database)}
}

// Check returns a usage error if the database has no collections of these names to exchange.
func (o *Options) Check(names []string) error {
	if !migration.ValidDatabase(o.Database) || migration.ServerDatabase(o.Database) {
		return failure.Usagef("--db: invalid database name %q", o.Database)
	}
	for i, name := range names {
		switch {
		case !migration.ValidCollection(name) || name == record.Name:
			return failure.Usagef("invalid collection name %q", name)
		case slices.Contains(names[:i], name):
			return failure.Usagef("the collection %q is named twice", name)
		}
	}
	return nil
}

// Result is how a cutover ended. Begun is false if nothing was changed and there is nothing to report but
// the error.
//
// Denied is the error with which the command would end that writes, because the user lacks privileges. It is nil if there
// is none, or if this one wrote.
type Result struct {
	report.Cutover
	Begun  bool
	Denied error
}

// find returns the cutover of the collections that has not ended, or else, unless open is set, the last one
// of one of them. It is nil if there is none. The error is a usage error if the cutover has other collections, too.
func (e *Exchange) find(ctx context.Context, names []string, open bool) (c *record.Cutover, err error) {
	err = e.Do(ctx, func() (err error) {
		if c, err = record.CutoverOf(ctx, e.db, names...); err != nil || c != nil || open {
			return err
		}
		all, err := record.Cutovers(ctx, e.db, false)
		c = record.Last(all, names, nil, nil)
		return err
	})
	if err == nil && c != nil && !slices.Equal(slices.Sorted(slices.Values(c.Names())), slices.Sorted(slices.Values(names))) {
		err = failure.Usagef("a cutover of %s is in the state %q; name exactly its collections, which stay together", strings.Join(c.Names(), ", "), c.State)
	}
	return c, err
}

// carryOut locks the collections of a cutover, and calls do with its steps.
func (e *Exchange) carryOut(ctx context.Context, r *Result, kind string, do func(*cutover.Cutover) error) (err error) {
	c := r.Cutover.Cutover
	l, err := e.lock(ctx, c, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	// Another run may have gone on until this one began.
	now, err := e.find(ctx, c.Names(), c.Token == "")
	switch {
	case err != nil:
		return err
	case c.Token == "" && now != nil, c.Token != "" && (now == nil || now.ID != c.ID):
		return failure.Usagef("another run of the same cutover has begun or ended in the meantime; see bsonids status")
	case now != nil:
		*c = *now
	}
	on := e.server(r)
	on.ID, on.Check = c.ID, l.check
	defer on.Close()
	router, err := patience.Ask(ctx, e.Patience, func() (*server.Router, error) { return server.RouterOf(ctx, e.db) })
	if err != nil {
		return err
	}
	on.Router = router != nil
	err = do(&cutover.Cutover{Cutover: c, DB: on, Notice: on.Notice})
	r.Begun = c.Token != ""
	return err
}

// server returns what carries out the steps of a cutover.
func (e *Exchange) server(r *Result) *cutover.Server {
	return &cutover.Server{DB: e.db, Conversions: r.Conversions, Batch: batch, Patience: e.Patience, Timeout: e.BatchTimeout, Halves: e.Halves,
		Notice: func(text string) { e.Warn("%s", text) },
		Progress: func(doing, name string, total int64) (func(int), func()) {
			bar := e.Progress(total, doing, e.Database+"."+name)
			return bar.Add, bar.Done
		}}
}

// compare compares the collections, and changes nothing. It warns of the documents that cannot be brought to
// agree, and returns their number.
func (e *Exchange) compare(ctx context.Context, r *Result, back bool) (stuck int64, err error) {
	on := e.server(r)
	on.Dry = true
	for i := range r.Collections {
		x := &r.Collections[i]
		a, err := on.Compare(ctx, cutover.Way{Exchange: x, Back: back})
		for _, s := range a.Stuck {
			e.Warn("%s: _id %s: %s", x.Name, s.ID, s.Reason)
		}
		if err != nil {
			return 0, err
		}
		x.Compared = record.Compared{Documents: a.Documents, Inserted: a.Inserted, Replaced: a.Replaced, Deleted: a.Deleted, Stuck: a.Stays}
		stuck += a.Stays
	}
	return stuck, nil
}

// CutOver exchanges the collections, or rolls the cutover of them back, or compares them.
func (e *Exchange) CutOver(ctx context.Context, names []string) (r Result, err error) {
	known, err := patience.Ask(ctx, e.Patience, func() (bool, error) { return server.Validates(ctx, e.db) })
	if err != nil {
		return r, err
	}
	c, err := e.find(ctx, names, true)
	switch {
	case err != nil:
		return r, err
	case !known:
		return r, failure.Usagef("the server does not know the command collMod, with which a cutover fences collections; FerretDB 1 does not")
	case c != nil && c.State == record.Undoing:
		return r, failure.Usagef("the cutover of %s is being undone; continue with bsonids undo, or give the undo up with bsonids release", strings.Join(c.Names(), ", "))
	case c == nil && e.RollBack:
		return r, failure.Usagef("no cutover of %s is under way", strings.Join(names, ", "))
	}
	r.Cutover = report.Cutover{Database: e.Database, Cutover: c, Written: e.Write}
	if c == nil {
		c = record.NewCutover(nil, e.Version)
		r.Cutover.Cutover = c
		c.Collections, r.Conversions, err = e.exchanges(ctx, names)
	} else {
		if r.Conversions, err = e.conversions(ctx, c); err == nil {
			err = e.allowed(ctx, c.Collections, privilege.Cutover, privilege.Release)
		}
	}
	if err != nil {
		return r, err
	}
	r.Denied = e.denied
	back := e.RollBack || c.State == record.RollingBack
	switch inPlace := c.State == record.Switched || c.State == record.Releasing; {
	case e.Write && inPlace && back:
		return r, failure.Usagef("every new collection of the cutover of %s is in place: it cannot be rolled back, but undone with bsonids undo", strings.Join(names, ", "))
	case e.Write && !inPlace && back:
		return r, e.carryOut(ctx, &r, record.SwitchBack, func(x *cutover.Cutover) error { return x.RollBack(ctx, "on request") })
	case e.Write && !inPlace:
		return r, e.carryOut(ctx, &r, record.Switch, func(x *cutover.Cutover) error { return e.forward(ctx, x) })
	}
	r.RollBack = back
	if c.Token == "" {
		stuck, err := e.compare(ctx, &r, false)
		if err != nil {
			return r, err
		}
		if stuck > 0 {
			return r, failure.Usagef("%d documents and their copies cannot be brought to agree, so that the cutover would fail: see the warnings", stuck)
		}
	}
	r.Begun = true
	return r, nil
}

// forward carries the cutover out. The error says whether it was rolled back.
func (e *Exchange) forward(ctx context.Context, x *cutover.Cutover) error {
	x.BeforeFence = func(ctx context.Context) error { return e.mayFence(ctx, x.Cutover) }
	err := x.Run(ctx)
	if err != nil && x.State == record.RolledBack {
		of := e.Explain(err)
		err = &failure.Error{Kind: max(of.Kind, failure.Failed), Err: err, Text: of.Text + "; the cutover was rolled back, and the old collections are in place"}
	}
	return err
}

// Release releases the fence of the collections.
func (e *Exchange) Release(ctx context.Context, names []string) (r Result, err error) {
	c, err := e.find(ctx, names, true)
	switch r.Cutover = (report.Cutover{Database: e.Database, Cutover: c, Written: e.Write}); {
	case err != nil:
		return r, err
	case c == nil:
		return r, failure.Usagef("no cutover of %s waits for its release", strings.Join(names, ", "))
	case c.State != record.Switched && c.State != record.Releasing && c.State != record.Undoing:
		return r, failure.Usagef("the cutover of %s is in the state %q; finish it with bsonids cutover", strings.Join(names, ", "), c.State)
	}
	if err := e.allowed(ctx, c.Collections, privilege.Release); err != nil || !e.Write {
		r.Denied = e.denied
		return r, err
	}
	return r, e.carryOut(ctx, &r, record.Switch, func(x *cutover.Cutover) (err error) {
		r.Left, err = x.Release(ctx)
		return err
	})
}

// locks are the runs of a command in the record, one for each collection.
type locks []*migration.Claim

func (l locks) check(ctx context.Context) error {
	for _, c := range l {
		if err := c.Check(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l locks) end(failed error) error {
	var errs []error
	for _, c := range l {
		errs = append(errs, c.End(failed))
	}
	return errors.Join(errs...)
}

// lock begins a run for each collection of the cutover.
func (e *Exchange) lock(ctx context.Context, c *record.Cutover, kind string) (l locks, err error) {
	for _, x := range c.Collections {
		run := record.Run{Kind: kind, Task: kinds.Task{Collection: x.Name, Into: x.New}, UUID: x.OldID, Conversion: c.Conversion()}
		one, err := patience.Ask(ctx, e.Patience, func() (*migration.Claim, error) { return e.Claim(ctx, e.db, record.Request{Run: run}) })
		if err != nil {
			return nil, errors.Join(err, l.end(err))
		}
		l = append(l, one)
	}
	return l, nil
}
