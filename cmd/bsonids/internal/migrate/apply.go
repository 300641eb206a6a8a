// Package migrate carries out the plan of a database or a dump: it converts the collections, proves that nothing is lost, restores
// the old values, and tells how far the work is.
package migrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// ApplyOptions describe the application of a plan.
type ApplyOptions struct {
	Dir            string // of the migration
	Write          bool
	Workers, Batch int // of a collection
	AtOnce         int // collections
}

// Application is a plan that may be applied.
type Application struct {
	ApplyOptions
	*session.Session // set by Apply, with db
	db               *mongo.Database

	plan     *plan.Plan
	state    *plan.State
	recorded *Recorded
	// unanswered are the collections of which the record has no run, and the directory a log, with the limit of a batch.
	unanswered map[string]time.Duration
	works      []work
	// definitions are those of the database with values that are converted.
	definitions []plan.Rewritten
}

// work is the conversions of one collection.
type work struct {
	collection string
	steps      []*step
}

// Prepare opens the directory of a migration, and locks it to write. The error is a usage error. The caller must close the
// Application.
func Prepare(o ApplyOptions) (_ *Application, err error) {
	p := &Application{ApplyOptions: o}
	open := plan.Look
	if o.Write {
		open = plan.Lock
	}
	if p.state, err = open(o.Dir); err != nil {
		return nil, files.FileError(err)
	}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Application) open() error {
	if p.plan = p.state.Plan; p.plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump", p.Dir)
	}
	if err := MayApply(p.Dir, p.plan); err != nil {
		return err
	}
	for _, g := range p.plan.Groups() {
		for i, s := range g {
			st := &step{Step: s, of: p, conversion: p.plan.Conversion(s.Task), result: Fresh(s)}
			var err error
			if st.what, err = Describe(p.plan.Database, s.Task); err != nil {
				return &failure.CollectionError{Collection: s.Collection, Err: err}
			}
			if i == 0 || g[i-1].Collection != s.Collection {
				p.works = append(p.works, work{collection: s.Collection})
			}
			w := &p.works[len(p.works)-1]
			w.steps = append(w.steps, st)
		}
	}
	if len(p.works) == 0 {
		return failure.Usagef("every field is left: there is nothing to convert")
	}
	return nil
}

// Close closes the directory, if it is open.
func (p *Application) Close() error { return p.state.Close() }

// Changed is what all runs of a conversion have changed, or would change.
type Changed struct {
	Values    int64 `json:"values"`
	Documents int64 `json:"documents"`
	Skipped   int64 `json:"documentsSkipped"`
}

// AppliedStep is what bsonids apply did, or would do, for one conversion.
type AppliedStep struct {
	Step
	Changed
	SkipList string `json:"skipList,omitempty"` // path of the file
	// Leaves says which values a run that writes would leave, in a rehearsal of what is not decided yet.
	Leaves []string `json:"leaves,omitempty"`
	// Late is the number of documents in which the last pass has found old values that it has not left, if services write
	// them all the time.
	Late int64 `json:"documentsLate,omitempty"`
	// Findings are documents of a copy that differ from their sources.
	Findings []convert.Skip `json:"findings,omitempty"`
	// SkippedFor counts, by reason, the values that this run left as they are.
	SkippedFor rule.Tally `json:"skippedFor,omitempty"`
}

// Applied is what bsonids apply did, or would do.
type Applied struct {
	Database string        `json:"database"`
	Dir      string        `json:"-"`              // of the migration
	Dump     *AppliedDump  `json:"dump,omitempty"` // nil for a database of a server
	Written  bool          `json:"written"`
	Finished bool          `json:"finished"` // all conversions have come to their ends
	Steps    []AppliedStep `json:"steps"`
	// Duplicates are of a dry run on a server; nil if no conversion changes an _id, or values of a unique index.
	Duplicates *duplicates.Report `json:"duplicates,omitempty"`
	// Definitions have UUIDs that are converted. A person changes them.
	Definitions       []plan.Rewritten `json:"definitions,omitempty"`
	Values, Documents int64            `json:"-"` // changed in this run
	Wrote             bool             `json:"-"` // something was changed, or may have been
	Incomplete        bool             `json:"-"` // values were skipped, or would be because another document has them, or a copy differs
	// Denied is the error with which a rehearsal ends after its report: the user lacks privileges, or undo logs have
	// faults. It is nil if there is none, or if this run wrote.
	Denied error `json:"-"`
}

// AppliedDump is the dump that was converted.
type AppliedDump struct {
	Path      string `json:"path"`
	Out       string `json:"out,omitempty"` // empty for a dry run
	SkipList  string `json:"skipList,omitempty"`
	Constants int64  `json:"constantsLeft"` // in options, indexes and views
}

// Apply carries out the plan, or finds what it would change. The result is valid with an error, too, if
// it has steps.
func (p *Application) Apply(ctx context.Context, s *session.Session) (r Applied, err error) {
	p.Session, p.db = s, s.Client.Database(p.plan.Database)
	if p.Write {
		s.Pace = patience.Steered(plan.SteeringOf(p.Dir), s.Warn)
	}
	p.Batch, p.Workers = s.Gentle(ctx, min(p.AtOnce, len(p.works)), p.Batch, p.Workers)
	r = Applied{Database: p.plan.Database, Written: p.Write}
	s.About(p.plan.Database)
	if r.Denied, err = s.Allowed(ctx, WorkOf(p.plan, p.plan.Steps()), p.Write, privilege.Apply, privilege.Verify, privilege.Cutover, privilege.Release, privilege.Undo); err != nil {
		return r, err
	}
	if p.recorded, err = ReadRecord(ctx, s, p.plan.Database); failure.IsDenied(err) && !p.Write {
		p.recorded, err = &Recorded{}, nil
	}
	if err == nil {
		err = p.recorded.Edited(p.Dir, p.plan)
	}
	if err == nil {
		err = p.clash(ctx)
	}
	if err != nil {
		return r, err
	}
	faults, err := p.recorded.Faults(p.state, true)
	if err != nil {
		return r, err
	}
	for _, f := range faults {
		s.Warn("%v; what it had cannot be undone", f)
	}
	if p.unanswered, err = p.recorded.Unanswered(p.state, cmp.Or(p.BatchTimeout, bulk.Timeout)); err != nil {
		return r, err
	}
	sv, err := p.compare(ctx)
	if err != nil {
		return r, err
	}
	if err := p.sharded(ctx); err != nil {
		return r, err
	}
	r.Definitions = p.definitions
	if !p.Write {
		if len(faults) > 0 && r.Denied == nil {
			r.Denied = &failure.Error{Kind: failure.Failed, Text: "undo logs are not whole, or of runs that the record lacks: see the warnings"}
		}
		if r.Steps, err = p.expected(ctx, sv); err == nil {
			r.Duplicates, err = p.duplicates(ctx, sv)
		}
		r.Incomplete = r.Duplicates.Any() || slices.ContainsFunc(r.Steps, func(a AppliedStep) bool { return len(a.Leaves) > 0 })
		return r, err
	}
	err = p.convert(ctx, &r)
	return r, err
}

// sharded returns a usage error if the copy of a sharded collection, which is not complete, is not sharded in the same way.
func (p *Application) sharded(ctx context.Context) error {
	var problems []string
	for _, st := range p.steps() {
		if st.Into == "" || st.done() {
			continue // a cutover may have put the copy in its place
		}
		why, err := p.unsharded(ctx, st.Step)
		if err != nil {
			return &failure.CollectionError{Collection: st.Collection, Err: err}
		}
		if why != "" {
			problems = append(problems, why)
		}
	}
	if len(problems) > 0 {
		return failure.Usagef("copies would not be sharded as their collections: %s; or accept with accepted: true beside into in the plan that bsonids cutover leaves them out", strings.Join(problems, "; "))
	}
	return nil
}

// unsharded returns why the copy that a step makes is not sharded as its collection is, unless the plan accepts it.
func (p *Application) unsharded(ctx context.Context, st plan.Step) (why string, err error) {
	for _, c := range p.plan.Collections {
		if c.Entry() == st.Entry() {
			return Unsharded(ctx, p.Session, p.db, c)
		}
	}
	return "", nil
}

// steps returns all steps in the order of the work.
func (p *Application) steps() (all []*step) {
	for _, w := range p.works {
		all = append(all, w.steps...)
	}
	return all
}

// errStopped is the cause of the end of the conversions that run when another one has failed.
var errStopped = errors.New("another conversion has failed")

// convert carries out the plan, several collections at once.
func (p *Application) convert(ctx context.Context, r *Applied) error {
	if err := p.mayOpen(); err != nil {
		return err
	}
	if err := p.count(ctx); err != nil {
		return err
	}
	begin(p.Session, p.state)
	// Once for all collections.
	if err := p.Do(ctx, func() error { return p.Limit(ctx, p.db, p.works[0].collection) }); err != nil {
		return err
	}
	bar := p.Progress(p.documents(), "converting", p.plan.Database)
	p.each(ctx, func(ctx context.Context, st *step) { st.run(ctx, bar.Add) })
	bar.Done()
	failed := r.add(p.works)
	r.Finished = failed == nil
	return failed
}

// add adds how the steps ended, and returns the error of the first that failed.
func (r *Applied) add(works []work) (failed error) {
	for _, w := range works {
		for _, st := range w.steps {
			a := st.result
			r.Steps = append(r.Steps, a)
			r.Values, r.Documents = r.Values+st.values, r.Documents+st.changed
			r.Incomplete = r.Incomplete || a.Skipped > 0 || a.Late > 0 || a.Status == Unverified
			r.Wrote = r.Wrote || st.changed > 0 || a.Status == Stopped
			if st.err != nil && (failed == nil || errors.Is(failed, context.Canceled) || errors.Is(failed, errStopped)) {
				failed = &failure.CollectionError{Collection: st.Collection, Err: st.err}
				if errors.Is(st.err, context.Canceled) {
					failed = st.err
				}
			}
		}
	}
	return failed
}

// mayOpen returns a usage error if a file of a step cannot be written. A file of the last collection that
// cannot is found before the first one is changed.
func (p *Application) mayOpen() error {
	for _, st := range p.steps() {
		if err := files.MayWrite(st.SkipList(p.Dir)); err != nil {
			return files.FileError(err)
		}
	}
	return nil
}

// count notes about how many documents each step reads.
func (p *Application) count(ctx context.Context) error {
	for _, w := range p.works {
		n, err := patience.Ask(ctx, p.Patience, func() (int64, error) { return p.db.Collection(w.collection).EstimatedDocumentCount(ctx) })
		if err != nil {
			return err
		}
		for _, st := range w.steps {
			st.documents = n
		}
	}
	return nil
}

// documents returns about how many documents are to read.
func (p *Application) documents() (n int64) {
	for _, st := range p.steps() {
		n += st.documents
	}
	return n
}

// each carries out the steps of several collections at once, in the order of the work. The steps of
// one collection are carried out one after the other. After an error, no step is begun, and those in
// progress are stopped.
func (p *Application) each(ctx context.Context, carryOut func(ctx context.Context, st *step)) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, p.AtOnce)
	var running sync.WaitGroup
	for _, w := range p.works {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			for _, st := range w.steps {
				if st.err = ctx.Err(); st.err != nil {
					continue
				}
				if carryOut(ctx, st); st.err != nil {
					stop(errStopped)
				}
			}
		})
	}
	running.Wait()
}
