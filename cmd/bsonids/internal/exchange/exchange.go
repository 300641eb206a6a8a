// Package exchange puts the converted copies of collections in their place, releases them, and puts the
// old collections back: it finds the copies, takes the locks, and checks what would make a cutover fail.
// Package cutover carries it out.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Timeout is the time limit of a command of a cutover, if none is given. A run that rolls back another
// one waits as long for its last command.
const Timeout = 20 * time.Second

// batch is the number of documents that are read at a time; less if they are large.
const batch = 1000

// kept is added to the name of a collection that is put away.
const kept = "_before_cutover"

// Options describe an exchange.
type Options struct {
	Database string
	Write    bool
	RollBack bool     // put the old collections back
	Copies   []string // that a plan names, one of each collection
	Skipped  []string // collections whose copies may have skipped values
	Planned  bool     // a plan names the copies
}

// Exchange exchanges collections of a database.
type Exchange struct {
	*migration.Session
	Options
	db *mongo.Database
}

// New returns what exchanges collections.
func New(s *migration.Session, o Options) *Exchange {
	if s.BatchTimeout == 0 {
		s.BatchTimeout = Timeout
	}
	s.About(o.Database)
	return &Exchange{s, o, s.Client.Database(o.Database)}
}

// Check returns a usage error if the database has no collections of these names to exchange.
func (o *Options) Check(names []string) error {
	if !migration.ValidDatabase(o.Database) || migration.ServerDatabase(o.Database) {
		return &migration.InvalidError{Name: "db", Err: fmt.Errorf("invalid database name %q", o.Database)}
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

// Result is how a cutover ended. Begun is false if there is nothing to report but the error.
type Result struct {
	report.Cutover
	Begun bool
}

// CutOver exchanges the collections, or rolls the cutover of them back, or compares them.
func (e *Exchange) CutOver(ctx context.Context, names []string) (r Result, err error) {
	var known bool
	err = e.Do(ctx, func() (err error) {
		known, err = guard.Known(ctx, e.db)
		return err
	})
	if err != nil {
		return r, err
	}
	c, err := e.underWay(ctx, names)
	switch {
	case err != nil:
		return r, err
	case !known:
		return r, failure.Usagef("the server does not know the command collMod, with which a cutover fences collections; FerretDB 1 does not")
	case c != nil && !sameNames(c.Names(), names):
		return r, failure.Usagef("a cutover of %s is in the state %q; name exactly its collections to continue it", strings.Join(c.Names(), ", "), c.State)
	case c != nil && c.State == record.Undoing:
		return r, failure.Usagef("the cutover of %s is being undone; continue with bsonids undo, or give the undo up with bsonids release", strings.Join(c.Names(), ", "))
	case c == nil && e.RollBack:
		return r, failure.Usagef("no cutover of %s is under way", strings.Join(names, ", "))
	}
	r.Cutover = report.Cutover{Database: e.Database, Cutover: c, Written: e.Write}
	if c == nil {
		r.Cutover.Cutover = record.NewCutover(nil, e.Version)
		r.Collections, r.Conversions, err = e.exchanges(ctx, names)
	} else {
		r.Conversions, err = e.conversions(ctx, c)
	}
	switch {
	case err != nil:
		return r, err
	case !e.Write:
		return r, e.dryRun(ctx, &r)
	case r.State != record.Switched && r.State != record.Releasing:
		return r, e.switchOver(ctx, names, &r)
	case e.RollBack:
		return r, failure.Usagef("every new collection of the cutover of %s is in place: it cannot be rolled back", strings.Join(c.Names(), ", "))
	}
	r.Begun = true
	return r, nil
}

// underWay returns the cutover of one of the collections that has not ended, or nil if there is none.
func (e *Exchange) underWay(ctx context.Context, names []string) (c *record.Cutover, err error) {
	err = e.Do(ctx, func() (err error) {
		c, err = record.CutoverOf(ctx, e.db, names...)
		return err
	})
	return c, err
}

// switchOver carries the cutover out, or rolls it back.
func (e *Exchange) switchOver(ctx context.Context, names []string, r *Result) (err error) {
	c, kind := r.Cutover.Cutover, record.Switch
	if e.RollBack || c.State == record.RollingBack {
		kind = record.SwitchBack
	}
	l, err := e.lock(ctx, c, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	// Another run may have gone on until this one began.
	now, err := e.underWay(ctx, names)
	switch {
	case err != nil:
		return err
	case c.Token == "" && now != nil, c.Token != "" && (now == nil || now.ID != c.ID):
		return failure.Usagef("another run of the same cutover has begun or ended in the meantime; see bsonids status")
	case now != nil:
		*c = *now
	}
	x, end := e.steps(c, l, r.Conversions)
	defer end()
	x.BeforeFence = func(ctx context.Context) error { return e.mayFence(ctx, c) }
	if kind == record.SwitchBack {
		err = x.RollBack(ctx, "on request")
	} else {
		err = x.Run(ctx)
	}
	var failed *cutover.FailedError
	if errors.As(err, &failed) {
		of := e.Explain(failed.Err)
		err = &failure.Error{Kind: max(of.Kind, failure.Failed), Err: err, Text: of.Text + "; the cutover was rolled back, and the old collections are in place"}
	}
	r.Begun, r.Failed = x.Token != "", err != nil
	return err
}

// dryRun compares the collections, unless a cutover is under way.
func (e *Exchange) dryRun(ctx context.Context, r *Result) error {
	r.Begun, r.RollBack = true, e.RollBack || r.State == record.RollingBack
	if r.Token != "" {
		return nil
	}
	for i := range r.Collections {
		x := &r.Collections[i]
		stuck, err := e.compare(ctx, cutover.Way{Exchange: x}, r.Conversions[x.Name])
		if err == nil && len(stuck) > 0 {
			err = failure.Usagef("%d documents of %s and %s cannot be brought to agree, so that the cutover would fail: _id %s: %s", len(stuck), x.Name, x.New, stuck[0].ID, stuck[0].Reason)
		}
		if err != nil {
			r.Begun = false
			return err
		}
	}
	return nil
}

// compare compares the collection in place with the one that takes its place, and sets w.Compared. It
// returns the documents that cannot be brought to agree.
func (e *Exchange) compare(ctx context.Context, w cutover.Way, c rule.Conversion) (stuck []mirror.Finding, err error) {
	p := &mirror.Mirror{Conversion: c, Old: e.db.Collection(w.Name), New: e.db.Collection(w.Comes()), Back: w.Back, Batch: batch, Patience: e.Patience}
	if w.Back {
		p.Old, p.New = p.New, p.Old
	}
	var total int64
	err = e.Do(ctx, func() (err error) {
		total, err = e.db.Collection(w.Name).EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	bar := e.Progress(total, "comparing", e.Database+"."+w.Name)
	defer bar.Done()
	p.Progress = bar.Add
	a, err := p.All(ctx)
	w.Compared = record.Compared{Documents: a.Documents, Inserted: a.Inserted, Replaced: a.Replaced, Deleted: a.Deleted, Stuck: a.Stays}
	return a.Stuck, err
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Release releases the fence of the collections.
func (e *Exchange) Release(ctx context.Context, names []string) (r report.Release, err error) {
	r = report.Release{Database: e.Database, Written: e.Write}
	if r.Cutover, err = e.toRelease(ctx, names); err != nil || !e.Write {
		return r, err
	}
	l, err := e.lock(ctx, r.Cutover, record.Switch)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	if r.Cutover, err = e.toRelease(ctx, names); err != nil {
		return r, err
	}
	x, end := e.steps(r.Cutover, l, nil)
	defer end()
	if r.Left, err = x.Release(ctx); err != nil {
		err = &BegunError{err}
	}
	return r, err
}

// BegunError is the error of a release that may have changed something.
type BegunError struct{ Err error }

func (e *BegunError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *BegunError) Unwrap() error { return e.Err }

// toRelease returns the cutover to release. The error is a usage error if there is none.
func (e *Exchange) toRelease(ctx context.Context, names []string) (c *record.Cutover, err error) {
	c, err = e.underWay(ctx, names)
	switch {
	case err != nil:
	case c == nil:
		err = failure.Usagef("no cutover of %s waits for its release", strings.Join(names, ", "))
	case !sameNames(c.Names(), names):
		err = failure.Usagef("the cutover has other collections: %s; they are released together", strings.Join(c.Names(), ", "))
	case c.State != record.Switched && c.State != record.Releasing && c.State != record.Undoing:
		err = failure.Usagef("the cutover of %s is in the state %q; finish it with bsonids cutover", strings.Join(names, ", "), c.State)
	}
	return c, err
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
		run := record.Run{Kind: kind, Collection: x.Name, UUID: x.OldID, Conversion: c.Conversion(), Into: x.New}
		var one *migration.Claim
		err := e.Do(ctx, func() (err error) {
			one, err = e.Claim(ctx, e.db, record.Request{Run: run})
			return err
		})
		if err != nil {
			return nil, errors.Join(err, l.end(err))
		}
		l = append(l, one)
	}
	return l, nil
}

// steps returns the steps of a cutover, and what to call at their end.
func (e *Exchange) steps(c *record.Cutover, l locks, conversions map[string]rule.Conversion) (*cutover.Cutover, func()) {
	notice := func(text string) { e.Warn("%s", text) }
	on := &cutover.Server{DB: e.db, ID: c.ID, Conversions: conversions, Batch: batch, Patience: e.Patience, Timeout: e.BatchTimeout, Halves: e.Halves, Check: l.check,
		Notice: notice,
		Progress: func(doing, name string, total int64) (func(int), func()) {
			bar := e.Progress(total, doing, e.Database+"."+name)
			return bar.Add, bar.Done
		}}
	return &cutover.Cutover{Cutover: c, DB: on, Notice: notice}, on.Close
}
