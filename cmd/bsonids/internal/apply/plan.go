package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/protect"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// PlanOptions describe the application of a plan.
type PlanOptions struct {
	Dir            string // of the migration
	Write          bool
	Workers, Batch int // of a collection
	AtOnce         int // collections
	// Follow makes the copies follow their collections until the context ends, or UntilCaughtUp.
	Follow, UntilCaughtUp bool
}

// Planned is a plan that may be applied.
type Planned struct {
	PlanOptions
	plan   *plan.Plan // as a person has edited it
	state  *plan.State
	edited plan.Edited
	works  []work
}

// work is the conversions of one collection.
type work struct {
	collection string
	steps      []*step
}

// step is one conversion.
type step struct {
	plan.Step
	fresh     bool // nothing is decided about it
	options   Options
	documents int64 // about how many there are to read
	// shared are the decisions of another part of the division. It is nil if there is none.
	shared []decide.Decision
}

// Open opens the directory of a migration, and locks it to write. It then reads the plan in it, and finds what
// was edited since the plan was applied. The error is a usage error. The caller must close the Planned.
func Open(o PlanOptions) (_ *Planned, err error) {
	p := &Planned{PlanOptions: o}
	open := plan.Look
	if o.Write {
		open = plan.Lock
	}
	if p.state, p.plan, err = open(o.Dir); err != nil {
		return nil, migration.FileError(err)
	}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Planned) open() (err error) {
	if p.plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump", p.Dir)
	}
	if err := migration.MayApply(p.Dir, p.plan); err != nil {
		return err
	}
	if p.Follow && p.plan.Part != "" {
		return failure.Usagef("--follow cannot be used with the plan of a part: bsonids cutover brings the copy up to date when all parts are done")
	}
	p.edited, err = p.state.Edit(p.plan)
	var lost *plan.LostError
	if errors.As(err, &lost) {
		return &failure.Error{Kind: failure.Failed, Text: err.Error(), Err: err}
	}
	if err != nil {
		return migration.FileError(err)
	}
	for _, g := range p.edited.Groups(p.plan) {
		for _, w := range g {
			work := work{collection: w.Collection}
			for _, s := range w.Steps {
				c, err := p.step(s)
				if err != nil {
					return &migration.CollectionError{Collection: s.Collection, Err: err}
				}
				work.steps = append(work.steps, c)
			}
			p.works = append(p.works, work)
		}
	}
	if len(p.works) == 0 {
		return failure.Usagef("every field is left: there is nothing to convert")
	}
	if p.Follow {
		slices.SortStableFunc(p.works, func(a, b work) int { return cmp.Compare(a.copies(), b.copies()) }) // these never end
		if p.works[len(p.works)-1].copies() == 0 {
			return failure.Usagef("--follow: no collection of the plan has into: only a copy follows its collection")
		}
	}
	return nil
}

// step returns the conversion of a step.
func (p *Planned) step(s plan.Step) (*step, error) {
	d, err := migration.Describe(migration.IdentityOf(p.plan.Database, s))
	if err != nil {
		return nil, err
	}
	if s.Again && s.Part != "" {
		return nil, failure.Usagef("parts have begun to copy it into %q by other decisions: put these back, or make new plans and another copy", s.Into)
	}
	o := Options{Conversion: d.Conversion, ID: d.ID, Part: d.Part, Division: p.plan.Division(s.Collection), Query: d.Query, Again: s.Again, Workers: p.Workers, Batch: p.Batch}
	o.Files = s.Files(p.Dir)
	if s.Listed {
		o.Listed = p.state.Before(s).Files(p.Dir)
	}
	for _, other := range p.edited.Steps {
		if s.Beside(other) {
			o.Others = append(o.Others, other.Files(p.Dir))
		}
	}
	if p.Follow && s.Into != "" && d.Conversion.MergesIDs() {
		return nil, failure.Usagef("--follow cannot be used if text in _id is converted: a copy does not show which spelling its source has")
	}
	return &step{Step: s, fresh: p.edited.IsNew(s), options: o}, o.Check()
}

// Close closes the directory, if it is open.
func (p *Planned) Close() error { return p.state.Close() }

// Result is how a plan was applied.
type Result struct {
	report.Applied
	Values, Documents int64 // changed in this run
	Wrote             bool  // something was changed, or may have been
	Incomplete        bool  // values were skipped, or a copy differs
}

// Apply carries out the plan, or finds what it would change. The result is valid with an error, too, if
// it has steps.
func (p *Planned) Apply(ctx context.Context, s *migration.Session) (r Result, err error) {
	if p.Write {
		s.Pace = patience.Steered(plan.SteeringOf(p.Dir), s.Warn)
	}
	atOnce := min(p.AtOnce, len(p.works))
	if p.Follow {
		_, copies := p.phases()
		atOnce = max(atOnce, len(copies))
	}
	p.Batch, p.Workers = s.Gentle(ctx, atOnce, p.Batch, p.Workers)
	db := s.Client.Database(p.plan.Database)
	r.Applied = report.Applied{Database: p.plan.Database, Written: p.Write, Changes: p.edited.Changes}
	s.About(p.plan.Database)
	for _, c := range p.edited.Changes {
		s.Warn("the plan was edited: %s", c)
	}
	if err := s.Fits(ctx, p.plan.Database, p.state); err != nil {
		return r, err
	}
	if err := p.mayFollow(ctx, s, db); err != nil {
		return r, err
	}
	sv, err := p.judge(ctx, s, db)
	if err != nil {
		return r, err
	}
	guards, err := p.guards(ctx, s, func() { r.Wrote = true })
	if err != nil {
		return r, err
	}
	if !p.Write {
		for _, g := range guards {
			r.Guards = append(r.Guards, g.Report())
		}
		r.Steps, err = p.expected(ctx, s, sv)
		return r, err
	}
	if err := p.seal(sv); err != nil {
		return r, err
	}
	err = p.convert(ctx, s, db, guards, &r)
	return r, err
}

// steps returns all steps in the order of the work.
func (p *Planned) steps() (all []*step) {
	for _, w := range p.works {
		all = append(all, w.steps...)
	}
	return all
}

// errStopped is the cause of the end of the conversions that run when another one has failed.
var errStopped = errors.New("another conversion has failed")

// ended is how one step ended.
type ended struct {
	report.AppliedStep
	step              plan.Step
	values, documents int64 // changed in this run
	err               error
}

// convert carries out the plan, several collections at once.
func (p *Planned) convert(ctx context.Context, s *migration.Session, db *mongo.Database, guards []*protect.Guard, r *Result) error {
	if err := p.mayOpen(); err != nil {
		return err
	}
	if err := p.count(ctx, s, db); err != nil {
		return err
	}
	mark, err := p.begin(ctx, s)
	if err != nil {
		return err
	}
	// Once for all collections.
	if err := s.Do(ctx, func() error { return s.Limit(ctx, db, p.works[0].collection) }); err != nil {
		return err
	}
	for _, g := range guards {
		if err := g.Set(ctx); err != nil {
			return errors.Join(err, mark(err))
		}
	}
	first, copies := p.phases()
	bar := s.Progress(documents(first), "converting", p.plan.Database)
	failed := p.add(r, p.each(ctx, first, func(ctx context.Context, st *step, _ func()) ended { return p.one(ctx, s, st, bar.Add) }))
	bar.Done()
	if failed == nil {
		failed = r.raise(ctx, guards)
	}
	if len(copies) > 0 {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		if failed != nil {
			stop()
		}
		failed = cmp.Or(failed, p.add(r, p.follow(ctx, s, copies)))
	}
	r.Finished = failed == nil
	return errors.Join(failed, mark(failed))
}

// add adds how steps ended, and returns the error of the first that failed.
func (p *Planned) add(r *Result, results []ended) (failed error) {
	for _, e := range results {
		p.left(&e)
		r.Steps = append(r.Steps, e.AppliedStep)
		r.Values, r.Documents = r.Values+e.values, r.Documents+e.documents
		r.Incomplete = r.Incomplete || e.Skipped > 0 || e.Status == report.Unverified
		r.Wrote = r.Wrote || e.documents > 0 || e.Status == report.Stopped
		if e.err != nil && (failed == nil || errors.Is(failed, context.Canceled) || errors.Is(failed, errStopped)) {
			failed = &migration.CollectionError{Collection: e.Collection, Err: e.err}
			if errors.Is(e.err, context.Canceled) {
				failed = e.err
			}
		}
	}
	return failed
}

// left corrects what a step has skipped by what later steps have converted, when all have ended.
func (p *Planned) left(e *ended) {
	st := e.step
	if e.Skipped == 0 || st.Listed {
		return
	}
	if f, err := migration.StateOf(p.state, st); err == nil && f.Done {
		e.Skipped = migration.Left(p.state, st, f)
	}
	if e.Skipped == 0 {
		e.SkipList = ""
	}
}

// mayOpen returns a usage error if a file of a step cannot be written. A file of the last collection that
// cannot is found before the first one is changed.
func (p *Planned) mayOpen() error {
	for _, st := range p.steps() {
		for _, path := range []string{st.options.UndoLog, st.options.SkipList} {
			if path == "" {
				continue
			}
			if err := files.MayWrite(path); err != nil {
				return migration.FileError(err)
			}
		}
	}
	return nil
}

// count notes about how many documents each step reads.
func (p *Planned) count(ctx context.Context, s *migration.Session, db *mongo.Database) error {
	for _, w := range p.works {
		var n int64
		err := s.Do(ctx, func() (err error) {
			n, err = db.Collection(w.collection).EstimatedDocumentCount(ctx)
			return err
		})
		if err != nil {
			return err
		}
		for _, st := range w.steps {
			st.documents = st.options.Part.Count(n)
		}
	}
	return nil
}

// documents returns about how many documents are to read.
func documents(works []work) (n int64) {
	for _, w := range works {
		for _, st := range w.steps {
			n += st.documents
		}
	}
	return n
}

// each carries out the steps of several collections at once, in the order of the work. The steps of
// one collection are carried out one after the other. After an error, no step is begun, and those in
// progress are stopped. A step may let another collection begin before its own end, by free.
func (p *Planned) each(ctx context.Context, works []work, carryOut func(ctx context.Context, st *step, free func()) ended) []ended {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([][]ended, len(works))
	slots := make(chan struct{}, p.AtOnce)
	var running sync.WaitGroup
	for i, w := range works {
		slots <- struct{}{}
		free := sync.OnceFunc(func() { <-slots })
		running.Go(func() {
			defer free()
			for _, st := range w.steps {
				if ctx.Err() != nil {
					results[i] = append(results[i], ended{AppliedStep: migration.Fresh(st.Step), step: st.Step, err: ctx.Err()})
					continue
				}
				r := carryOut(ctx, st, free)
				results[i] = append(results[i], r)
				if r.err != nil {
					stop(errStopped)
				}
			}
		})
	}
	running.Wait()
	return slices.Concat(results...)
}

// one carries out one step.
func (p *Planned) one(ctx context.Context, s *migration.Session, st *step, advance func(int)) ended {
	o := st.options
	o.Batch, o.Workers, o.Advance = p.Batch, p.Workers, advance
	out, err := Collection(ctx, s.Child(p.plan.Database+"."+st.Collection), o)
	r := ended{AppliedStep: migration.Fresh(st.Step), step: st.Step, err: err}
	r.Values, r.Documents, r.Skipped = out.All.Values, out.All.Changed, out.All.Skipped
	switch {
	case out.Finished:
		r.Status = report.DoneStep
	case out.Result != nil:
		res := out.Result
		r.Status, r.values, r.documents = report.DoneStep, res.Values, res.Changed
		r.SkippedFor, r.Stream = res.SkippedFor, res.Stream
		if err == nil && st.Into != "" && !res.Verified {
			r.Status, r.Findings = report.Unverified, append(res.Conflicts, res.Proof.Skips...)
		}
	}
	if err != nil && out.Result != nil {
		r.Status = report.Stopped
	}
	if out.SkipList.Begun() {
		r.SkipList = out.SkipList.Path()
	}
	return r
}

// begin notes in the record that the plan is under way, for bsonids status on other machines. The
// function that it returns notes that the work has ended with the error failed, or nil.
func (p *Planned) begin(ctx context.Context, s *migration.Session) (end func(failed error) error, err error) {
	var steps []record.PlanStep
	for _, st := range p.steps() {
		of := record.PlanStep{Collection: st.Collection, Filter: st.Filter, Pairs: st.Pairs, Into: st.Into, Part: st.Part, Documents: st.documents}
		if s, err := convert.ReadState(st.options.State); err == nil {
			of.Conversion = s.Conversion
		}
		steps = append(steps, of)
	}
	return s.BeginPlan(ctx, p.state, steps)
}
