package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// PlanOptions describe the application of a plan.
type PlanOptions struct {
	Plan           *plan.Plan
	Dir            string // of the migration
	Write          bool
	Workers, Batch int // of a collection
	AtOnce         int // collections
	FullLoad       bool
}

// Planned is a plan that may be applied.
type Planned struct {
	PlanOptions
	state *plan.State // nil if there is none
	works []work
}

// work is the conversions of one collection.
type work struct {
	collection string
	steps      []*step
}

// step is one conversion.
type step struct {
	plan.Step
	options   Options
	documents int64 // about how many there are to read
}

// NewPlan returns a plan that may be applied. The error is a usage error.
func NewPlan(o PlanOptions, r migration.Recording) (*Planned, error) {
	p := &Planned{PlanOptions: o}
	for _, g := range p.Plan.Groups() {
		for _, w := range g {
			work := work{collection: w.Collection}
			for _, s := range w.Steps {
				c, err := p.step(s, r)
				if err != nil {
					return nil, &migration.CollectionError{Collection: s.Collection, Err: err}
				}
				work.steps = append(work.steps, c)
			}
			p.works = append(p.works, work)
		}
	}
	if len(p.works) == 0 {
		return nil, failure.Usagef("every field is left: there is nothing to convert")
	}
	return p, nil
}

// step returns the conversion of a step.
func (p *Planned) step(s plan.Step, r migration.Recording) (*step, error) {
	d, err := migration.Describe(migration.IdentityOf(p.Plan.Database, s))
	if err != nil {
		return nil, err
	}
	o := Options{Conversion: d.Conversion, ID: d.ID, Write: p.Write, Trust: slices.Clone(s.Trust), Workers: p.Workers, Batch: p.Batch}
	f := s.Files(p.Dir)
	o.State, o.SkipList, o.UndoLog = f.State, f.SkipList, f.UndoLog
	return &step{Step: s, options: o}, o.Check(r)
}

// Open opens the state of the plan. There is none if nothing is written, or was.
func (p *Planned) Open() (err error) {
	if p.Write {
		p.state, err = plan.OpenState(p.Dir, p.Plan)
	} else {
		p.state, err = plan.ReadState(p.Dir)
		if errors.Is(err, plan.ErrNoState) {
			p.state = nil
			return nil
		}
		if err == nil && p.state.Decided && plan.Difference(p.state.Plan, p.Plan) != "" {
			err = fmt.Errorf("%s: the plan was edited after it was begun: %s", p.Dir, plan.Difference(p.state.Plan, p.Plan))
		}
	}
	if err == nil && p.state.Undone != "" {
		err = errors.Join(fmt.Errorf("%s: the plan was undone on %s; make a new plan and use another directory", p.Dir, p.state.Undone), p.state.Close())
	}
	if err != nil {
		return migration.FileError(err)
	}
	return nil
}

// Close closes the directory, if it is open.
func (p *Planned) Close() error {
	if p.state == nil {
		return nil
	}
	return p.state.Close()
}

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
	p.Batch, p.Workers = s.Gentle(ctx, min(p.AtOnce, len(p.works)), p.Batch, p.Workers)
	db := s.Client.Database(p.Plan.Database)
	r.Applied = report.Applied{Database: p.Plan.Database, Written: p.Write}
	s.About(p.Plan.Database)
	var sv *survey.Survey
	if p.state == nil || !p.state.Decided {
		if sv, err = p.decide(ctx, s, db); err != nil {
			return r, err
		}
	}
	if !p.Write {
		r.Steps, err = p.expected(sv)
		return r, err
	}
	if !p.state.Decided {
		if err := p.save(sv); err != nil {
			return r, err
		}
	}
	return p.convert(ctx, s, db, r)
}

// decide reads everything and compares it with the plan. The error is a usage error if the plan no
// longer applies.
func (p *Planned) decide(ctx context.Context, s *migration.Session, db *mongo.Database) (*survey.Survey, error) {
	sv, err := s.SurveyAll(ctx, db)
	if err != nil {
		return nil, err
	}
	problems, warnings := plan.Compare(p.Plan, sv)
	for _, into := range p.Plan.Targets() {
		if i := slices.IndexFunc(sv.Collections, func(c survey.Collection) bool { return c.Name == into && c.Documents > 0 }); i >= 0 {
			problems = append(problems, fmt.Sprintf("the new collection %q has documents already", into))
		}
	}
	for _, w := range warnings {
		s.Warn("%s", w)
	}
	if len(problems) > 0 {
		return nil, failure.Usagef("the data have changed since the plan was made: %s; make a new plan with bsonids plan", strings.Join(problems, "; "))
	}
	for _, st := range p.steps() {
		err := s.Do(ctx, func() error { return migration.Matching(ctx, db.Collection(st.Collection), st.options.Conversion) })
		if err != nil {
			return nil, err
		}
	}
	return sv, nil
}

// steps returns all steps in the order of the work.
func (p *Planned) steps() (all []*step) {
	for _, w := range p.works {
		all = append(all, w.steps...)
	}
	return all
}

// decision returns the decision of the survey about the fields of the step.
func (s *step) decision(sv *survey.Survey) decide.Decision {
	from := s.options.Conversion.From
	if from.BySubtype() {
		return decide.Decision{Subtype: from.Subtype, From: s.From, Made: sv.Made, BySubtype: true, Fields: []decide.Field{}}
	}
	var d decide.Decision
	for _, c := range sv.Collections {
		if c.Name == s.Collection {
			d = c.Decisions[s.From]
		}
	}
	d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f decide.Field) bool { return !slices.Contains(s.Fields, plan.Plain(f.Path)) })
	d.Trusted = nil
	d.Trust(s.Trust)
	return d
}

// save writes the decision of each step to its state file.
func (p *Planned) save(sv *survey.Survey) error {
	for _, st := range p.steps() {
		d := st.decision(sv)
		if err := MayWrite(&d); err != nil {
			return err
		}
		f, err := convert.OpenState(st.options.State, st.options.ID)
		if err != nil {
			return migration.FileError(err)
		}
		if f.Begun() || f.Done {
			return errors.Join(failure.Usagef("%s is the state of a conversion that has begun: use another directory", st.options.State), f.Close())
		}
		f.Decision = &d
		if f.Conversion == "" {
			f.Conversion = record.NewConversion()
		}
		if err := errors.Join(f.Save(), f.Close()); err != nil {
			return err
		}
	}
	p.state.Decided = true
	return p.state.Save()
}

// expected returns what the steps would change, from the survey, or from the state files if the plan
// is under way.
func (p *Planned) expected(sv *survey.Survey) (out []report.AppliedStep, err error) {
	for _, st := range p.steps() {
		a := migration.Fresh(st.Step)
		if sv == nil {
			if a, err = migration.StepOf(p.state, st.Step); err != nil {
				return nil, err
			}
		} else {
			for _, f := range st.decision(sv).Fields {
				a.Values += f.Values
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// errStopped is the cause of the end of the conversions that run when another one has failed.
var errStopped = errors.New("another conversion has failed")

// ended is how one step ended.
type ended struct {
	report.AppliedStep
	values, documents int64 // changed in this run
	err               error
}

// convert carries out the plan, several collections at once.
func (p *Planned) convert(ctx context.Context, s *migration.Session, db *mongo.Database, r Result) (Result, error) {
	if err := p.mayOpen(); err != nil {
		return r, err
	}
	total, err := p.count(ctx, s, db)
	if err != nil {
		return r, err
	}
	mark, err := p.begin(ctx, s, db)
	if err != nil {
		return r, err
	}
	// Once for all collections.
	if err := s.Do(ctx, func() error { return s.Limit(ctx, db, p.works[0].collection) }); err != nil {
		return r, err
	}
	bar := s.Progress(total, "converting", p.Plan.Database)
	results := p.each(ctx, func(ctx context.Context, st *step) ended { return p.one(ctx, s, st, bar.Add) })
	bar.Done()
	var failed error
	for _, e := range results {
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
	r.Failed = failed != nil
	return r, errors.Join(failed, mark(failed))
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

// count notes about how many documents each step reads, and returns the sum.
func (p *Planned) count(ctx context.Context, s *migration.Session, db *mongo.Database) (total int64, err error) {
	for _, w := range p.works {
		var n int64
		err := s.Do(ctx, func() (err error) {
			n, err = db.Collection(w.collection).EstimatedDocumentCount(ctx)
			return err
		})
		if err != nil {
			return 0, err
		}
		for _, st := range w.steps {
			st.documents = n
			total += n
		}
	}
	return total, nil
}

// each carries out the steps of several collections at once, in the order of the work. The steps of
// one collection are carried out one after the other. After an error, no step is begun, and those in
// progress are stopped.
func (p *Planned) each(ctx context.Context, carryOut func(context.Context, *step) ended) []ended {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([][]ended, len(p.works))
	next := make(chan int)
	var running sync.WaitGroup
	for range min(p.AtOnce, len(p.works)) {
		running.Go(func() {
			for i := range next {
				for _, st := range p.works[i].steps {
					if ctx.Err() != nil {
						results[i] = append(results[i], ended{AppliedStep: migration.Fresh(st.Step), err: ctx.Err()})
						continue
					}
					r := carryOut(ctx, st)
					results[i] = append(results[i], r)
					if r.err != nil {
						stop(errStopped)
					}
				}
			}
		})
	}
	for i := range p.works {
		next <- i
	}
	close(next)
	running.Wait()
	return slices.Concat(results...)
}

// one carries out one step.
func (p *Planned) one(ctx context.Context, s *migration.Session, st *step, advance func(int)) ended {
	o := st.options
	o.Batch, o.Workers, o.Advance = p.Batch, p.Workers, advance
	if !p.FullLoad {
		o.Latency = patience.NewLatency(patience.System)
	}
	out, err := Collection(ctx, s.Child(p.Plan.Database+"."+st.Collection), o)
	r := ended{AppliedStep: migration.Fresh(st.Step), err: err}
	r.Values, r.Documents, r.Skipped = out.All.Values, out.All.Changed, out.All.Skipped
	switch {
	case out.Finished:
		r.Status = report.DoneStep
	case out.InPlace != nil:
		r.Status, r.values, r.documents = report.DoneStep, out.InPlace.Values, out.InPlace.Documents
	case out.Copied != nil:
		r.Status, r.values, r.documents = report.DoneStep, out.Copied.Values, out.Copied.Documents
		if err == nil && !out.Copied.Verified {
			r.Status = report.Unverified
		}
	}
	if err != nil && (out.InPlace != nil || out.Copied != nil) {
		r.Status = report.Stopped
	}
	if out.About.SkipList.Begun() {
		r.SkipList = out.About.SkipList.Path()
	}
	return r
}

// begin notes in the record that the plan is under way, for bsonids status on other machines. The
// function that it returns notes that the work has ended with the error failed, or nil.
func (p *Planned) begin(ctx context.Context, s *migration.Session, db *mongo.Database) (end func(failed error) error, err error) {
	if s.NoRecord {
		return func(error) error { return nil }, nil
	}
	note := record.Plan{Digest: p.Plan.Digest(), To: p.Plan.To, StateDir: migration.Absolute(p.Dir)}
	for _, st := range p.steps() {
		of := record.PlanStep{Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Documents: st.documents}
		if s, err := convert.ReadState(st.options.State); err == nil {
			of.Conversion = s.Conversion
		}
		note.Steps = append(note.Steps, of)
	}
	var id string
	err = s.Do(ctx, func() (err error) {
		id, err = record.BeginPlan(ctx, db, note, s.Version)
		return err
	})
	return func(failed error) error {
		return s.Do(context.Background(), func() error { return record.EndPlan(db, id, failed) })
	}, migration.OfRecord(err)
}
