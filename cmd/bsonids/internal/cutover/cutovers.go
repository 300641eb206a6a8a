package cutover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Timeout is the time limit of a command of a cutover, if none is given. A run that rolls back another
// one waits as long for its last command.
const Timeout = 20 * time.Second

// batch is the number of documents that are read at a time; less if they are large.
const batch = 1000

// Options describe an exchange.
type Options struct {
	Database        string
	Write           bool
	RollBack        bool // put the old collections back
	Accept          bool // what was written to new collections in spite of the fence forbids nothing
	WithoutReleased bool // an undo leaves collections that were released
	// Conversions are those of the directory of a migration, whose copies are meant. If there are none, any copies are.
	Conversions []string
	Skipped     []string // collections whose copies may have skipped values
	// Aside keeps a document that was inserted or changed in the new collection of a name. It may be nil.
	Aside func(collection string, doc bson.Raw) error
}

// Exchange exchanges collections of a database.
type Cutovers struct {
	*session.Session
	Options
	db     *mongo.Database
	denied error // in a rehearsal, what the command would end with, because the user lacks privileges
}

// New returns what exchanges collections.
func New(s *session.Session, o Options) *Cutovers {
	if s.BatchTimeout == 0 {
		s.BatchTimeout = Timeout
	}
	s.About(o.Database)
	return &Cutovers{Session: s, Options: o, db: s.Client.Database(o.Database)}
}

// Result is what a command about a cutover did, or would do. Begun is false if nothing was changed and there is nothing to report
// but the error.
//
// Denied is the error with which the command would end that writes, because the user lacks privileges. It is nil if there
// is none, or if this one wrote.
type Result struct {
	*record.Cutover
	Database    string
	Conversions map[string]rule.Conversion // by the name of the collection
	Written     bool
	RollBack    bool     // the old collections are put back, or would be
	Files       []string // with the documents that were inserted or changed in new collections in spite of the fence
	Again       bool     // it was released before
	Release     string   // the command that releases the fence
	Left        []string // collections whose validator is not restored, because another program changed it
	Begun       bool
	Denied      error
}

// find returns the cutover that has not ended and that uses a collection of the group if open is set, and otherwise the last one
// of its copies. It is nil if there is none. The error is a usage error if the cutover has other collections, too.
func (e *Cutovers) find(ctx context.Context, g Group, open bool) (c *record.Cutover, err error) {
	err = e.Do(ctx, func() (err error) {
		if g.ID != "" {
			c, err = record.CutoverByID(ctx, e.db, g.ID)
			return err
		}
		if open {
			c, err = record.CutoverOf(ctx, e.db, g.Names...)
			return err
		}
		all, err := record.Cutovers(ctx, e.db)
		c = record.Last(all, g.Names, g.Copies, e.Conversions)
		return err
	})
	switch {
	case err != nil:
	case c == nil && g.ID != "":
		err = failure.Usagef("%s has no cutover %s; bsonids status --db %s prints those that have not ended", e.Database, g.ID, e.Database)
	case c != nil && g.ID == "" && !slices.Equal(slices.Sorted(slices.Values(c.Names())), slices.Sorted(slices.Values(g.Names))):
		err = failure.Usagef("a cutover of %s is in the state %q, and its collections stay together: go on with bsonids cutover --db %s %s", strings.Join(c.Names(), ", "), c.State, e.Database, c.Conversion())
	}
	return c, err
}

// released returns a usage error if the cutover was released: the new collections stay in place. It names the old ones that
// are kept.
func (e *Cutovers) released(ctx context.Context, c *record.Cutover) error {
	if c.State != record.Releasing && c.State != record.Released {
		return nil
	}
	there, err := e.collections(ctx)
	if err != nil {
		return err
	}
	var kept []string
	for _, x := range c.Collections {
		if there[x.Kept] != nil {
			kept = append(kept, x.Kept)
		}
	}
	old := "the old collections were dropped"
	if len(kept) > 0 {
		old = "as they were at the cutover, the old collections are kept: " + strings.Join(kept, ", ")
	}
	return failure.Usagef("%s was released %s, which is the point of no return: the new collections stay in place; %s", strings.Join(c.Names(), ", "), releasedAt(c), old)
}

// releasedAt describes when the collections of a cutover were released.
func releasedAt(c *record.Cutover) string {
	if c.FreedAt == nil {
		return "in part"
	}
	return "at " + c.FreedAt.UTC().Format(time.DateTime) + " UTC"
}

// carryOut locks the collections of a cutover, and calls do with its steps.
func (e *Cutovers) carryOut(ctx context.Context, r *Result, kind string, do func(*Cutover) error) (err error) {
	c := r.Cutover
	l, err := e.lock(ctx, c, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	// Another run may have gone on until this one began.
	now, err := e.find(ctx, Group{Names: c.Names(), ID: id(c)}, true)
	switch {
	case err != nil:
		return err
	case (c.Token == "") != (now == nil):
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
	err = do(&Cutover{Cutover: c, DB: on, Notice: on.Notice, Accept: e.Accept})
	r.Begun = c.Token != ""
	return err
}

// id returns the name of a cutover in the record, or "" if it is not there.
func id(c *record.Cutover) string {
	if c.Token == "" {
		return ""
	}
	return c.Conversion()
}

// server returns what carries out the steps of a cutover.
func (e *Cutovers) server(r *Result) *Server {
	return &Server{DB: e.db, Conversions: r.Conversions, Batch: batch, Patience: e.Patience, Timeout: e.BatchTimeout, Halves: e.Halves, Aside: e.Aside,
		Notice: func(text string) { e.Warn("%s", text) },
		Progress: func(doing, name string, total int64) (func(int), func()) {
			bar := e.Progress(total, doing, e.Database+"."+name)
			return bar.Add, bar.Done
		}}
}

// compare compares the collections, and changes nothing. It warns of the documents that cannot be brought to
// agree, or on the way back, that are in the new collections only, and returns their number.
func (e *Cutovers) compare(ctx context.Context, r *Result, back bool) (stuck int64, err error) {
	on := e.server(r)
	on.Aside = nil
	defer on.Close()
	for i := range r.Collections {
		x := &r.Collections[i]
		a, err := on.Compare(ctx, Way{Exchange: x, Back: back, Dry: true})
		for _, s := range a.Stuck[:min(len(a.Stuck), listed)] {
			e.Warn("%s: _id %s: %s", x.Name, s.ID, s.Reason)
		}
		if err != nil {
			return 0, err
		}
		x.Compared = record.Compared{Documents: a.Documents, Inserted: a.Inserted, Replaced: a.Replaced, Deleted: a.Deleted}
		if stuck += a.Stays; back {
			x.Compared.Written = a.Stays
		}
	}
	return stuck, nil
}

// listed is the number of documents of a collection that are named in warnings.
const listed = 20

// CutOver exchanges the collections, or rolls the cutover of them back, or compares them.
func (e *Cutovers) CutOver(ctx context.Context, g Group) (r Result, err error) {
	known, err := patience.Ask(ctx, e.Patience, func() (bool, error) { return server.Validates(ctx, e.db) })
	if err != nil {
		return r, err
	}
	c, err := e.find(ctx, g, true)
	switch {
	case err != nil:
		return r, err
	case !known:
		return r, failure.Usagef("the server does not know the command collMod, with which a cutover fences collections; FerretDB 1 does not")
	case c == nil && e.RollBack:
		return r, failure.Usagef("no cutover of %s is under way", strings.Join(g.Names, ", "))
	case e.RollBack:
		return e.PutBack(ctx, c)
	}
	r = Result{Database: e.Database, Cutover: c, Written: e.Write}
	if c == nil {
		c = record.NewCutover(nil, e.Version)
		r.Cutover = c
		c.Collections, r.Conversions, err = e.exchanges(ctx, g)
	} else {
		if r.Conversions, err = e.conversions(ctx, c); err == nil {
			err = e.allowed(ctx, c.Collections, privilege.Cutover, privilege.Release)
		}
	}
	if err != nil {
		return r, err
	}
	r.Denied = e.denied
	switch {
	case c.State == record.RollingBack:
		return e.PutBack(ctx, c)
	case e.Write && slices.Contains([]string{record.Comparing, record.Fencing, record.Switching}, c.State):
		return r, e.carryOut(ctx, &r, record.Switch, func(x *Cutover) error { return e.forward(ctx, x) })
	}
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

// PutBack puts the old collections of a cutover back, or says what that would do. The error is a usage error if it was
// released.
func (e *Cutovers) PutBack(ctx context.Context, c *record.Cutover) (r Result, err error) {
	if r, err = e.MayPutBack(ctx, c); err != nil || !e.Write {
		return r, err
	}
	err = e.carryOut(ctx, &r, record.SwitchBack, func(x *Cutover) error { return x.PutBack(ctx, "on request") })
	if errors.Is(err, ErrWritten) {
		r.Begun = false
	}
	return r, err
}

// MayPutBack returns what [Cutovers.PutBack] would do, with its error, unless that is found only when the collections are locked.
func (e *Cutovers) MayPutBack(ctx context.Context, c *record.Cutover) (r Result, err error) {
	r = Result{Database: e.Database, Cutover: c, Written: e.Write, RollBack: true}
	if err := e.released(ctx, c); err != nil {
		return r, err
	}
	if r.Conversions, err = e.conversions(ctx, c); err != nil {
		return r, err
	}
	if err := e.allowed(ctx, c.Collections, privilege.PutBack); err != nil {
		return r, err
	}
	r.Denied = e.denied
	if e.Write || c.State != record.Switched {
		r.Begun = !e.Write
		return r, nil
	}
	there, err := e.collections(ctx)
	if err != nil {
		return r, err
	}
	for _, x := range c.Collections {
		switch {
		case there[x.Kept] == nil:
			return r, failure.Usagef("%s.%s, the old collection of %s, was dropped", e.Database, x.Kept, x.Name)
		case there[x.Name] == nil:
			return r, failure.Usagef("collection %s.%s does not exist", e.Database, x.Name)
		case there[x.New] != nil:
			return r, failure.Usagef("a collection %s.%s exists, the name that the new collection of %s gets; rename it", e.Database, x.New, x.Name)
		}
	}
	stuck, err := e.compare(ctx, &r, true)
	if err == nil && stuck > 0 && !e.Accept {
		err = failure.Usagef("%d documents were inserted or changed in the new collections in spite of the fence, and the old ones do not have them: see the warnings; "+
			"--allow-changed puts the old collections back without them", stuck)
	}
	r.Begun = err == nil
	return r, err
}

// forward carries the cutover out. The error says whether it was rolled back.
func (e *Cutovers) forward(ctx context.Context, x *Cutover) error {
	x.BeforeFence = func(ctx context.Context) error { return e.mayFence(ctx, x.Cutover) }
	err := x.Run(ctx)
	if err != nil && x.State == record.RolledBack {
		of := e.Explain(err)
		err = &failure.Error{Kind: max(of.Kind, failure.Failed), Err: err, Text: of.Text + "; the cutover was rolled back, and the old collections are in place"}
	}
	return err
}

// Release releases the fence of the collections, or says when it was released.
func (e *Cutovers) Release(ctx context.Context, g Group) (r Result, err error) {
	c, err := e.find(ctx, g, false)
	switch r = (Result{Database: e.Database, Cutover: c, Written: e.Write}); {
	case err != nil:
		return r, err
	case c == nil:
		return r, failure.Usagef("no cutover of %s waits for its release", strings.Join(g.Names, ", "))
	case c.State == record.Released:
		r.Again = true
		return r, nil
	case c.State != record.Switched && c.State != record.Releasing:
		return r, failure.Usagef("the cutover of %s is in the state %q; finish it with bsonids cutover", strings.Join(c.Names(), ", "), c.State)
	}
	if err := e.allowed(ctx, c.Collections, privilege.Release); err != nil {
		return r, err
	}
	r.Denied = e.denied
	if !e.Write {
		return r, (&Cutover{Cutover: c, Accept: e.Accept}).MayRelease()
	}
	return r, e.carryOut(ctx, &r, record.Switch, func(x *Cutover) (err error) {
		r.Left, err = x.Release(ctx)
		return err
	})
}

// locks are the runs of a command in the record, one for each collection.
type locks []*session.Claim

func (l locks) check(ctx context.Context) error {
	for _, c := range l {
		if err := c.CheckNow(ctx); err != nil {
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
func (e *Cutovers) lock(ctx context.Context, c *record.Cutover, kind string) (l locks, err error) {
	for _, x := range c.Collections {
		run := record.Run{Kind: kind, Task: kinds.Task{Collection: x.Name, Into: x.New}, UUID: x.OldID, Conversion: c.Conversion()}
		one, err := patience.Ask(ctx, e.Patience, func() (*session.Claim, error) {
			if err := e.Limit(ctx, e.db, x.Name); err != nil {
				return nil, err
			}
			return e.Claim(ctx, e.db, record.Request{Run: run})
		})
		if err != nil {
			return nil, errors.Join(err, l.end(err))
		}
		l = append(l, one)
	}
	return l, nil
}
