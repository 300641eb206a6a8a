package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

type applyOptions struct {
	*console
	recordFlags
	load     loadFlags
	output   *enum
	write    bool
	stateDir string
	workers  count
	atOnce   count
	batch    *count

	file string // the plan
}

func newApplyCommand(c *console) *cobra.Command {
	o := &applyOptions{console: c, workers: count{1, 1, 256}, atOnce: count{4, 1, 256}}
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "Convert all collections of a plan",
		Long: `apply converts the collections of a plan of bsonids plan, several at once. Without
--write it changes nothing and prints what it would change.

Before the first write, it reads every document of the database once more and
makes all decisions. If a field or a collection appeared, or if the evidence of a
field has changed since the plan was made, it changes nothing.

The state directory has the progress, the undo log and the skip list of each
conversion. apply can be stopped at any moment, also by SIGKILL, and the same
command continues. An edited plan is rejected while the first one is under way.

Collections that refer to each other are converted one after the other, and no
other collection is begun between them. bsonids status shows the progress.`,
		Example: `  bsonids apply plan.yaml --state-dir shop.state
  bsonids apply plan.yaml --state-dir shop.state --write`,
		Args: cobra.ExactArgs(1),
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.batch = batchFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.write, "write", false, "change the documents")
	f.StringVar(&o.stateDir, "state-dir", "", "directory for the files of the conversions, created if it does not exist; required with --write")
	f.Var(&o.workers, "workers", "number of batches of a collection to write at the same time")
	f.Var(&o.atOnce, "collections-at-once", "number of collections to convert at the same time")
	o.load.add(cmd, true)
	o.recordFlags.add(cmd)
	f.BoolVar(&o.unrecorded, "confirm-unrecorded", false, "with --no-record: confirm that no other conversion of these values runs, ran or will run")
	return cmd
}

// readPlan reads a plan. The error is a usage error.
func readPlan(path string) (*plan.Plan, error) {
	p, err := plan.Read(path)
	if err != nil {
		return nil, failure.Usagef("%s: %v", path, err)
	}
	return p, nil
}

// mayApply returns a usage error that names everything that is wrong with the plan.
func mayApply(path string, p *plan.Plan) error {
	var texts []string
	for _, problem := range p.Check() {
		texts = append(texts, problem.String())
	}
	if len(texts) > 0 {
		return failure.Usagef("%s cannot be applied: %s", path, strings.Join(texts, "; "))
	}
	return nil
}

func (o *applyOptions) run(ctx context.Context, args []string) (err error) {
	o.file = args[0]
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	if o.write && o.stateDir == "" {
		return failure.Usagef("--write requires --state-dir, for the files from which the conversions continue and are undone")
	}
	p, err := readPlan(o.file)
	if err != nil {
		return err
	}
	if err := mayApply(o.file, p); err != nil {
		return err
	}
	works, err := o.works(p)
	if err != nil {
		return err
	}
	if len(works) == 0 {
		return failure.Usagef("%s: every field is left: there is nothing to convert", o.file)
	}
	state, err := o.openState(p)
	if err != nil {
		return err
	}
	if state != nil && o.write {
		defer func() { err = errors.Join(err, state.Close()) }()
	}
	client, err := o.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.gentle(ctx, client, min(o.atOnce.value, len(works)), o.batch, &o.workers)
	o.load.begin(o.console)
	db := client.Database(p.Database)
	o.about(p.Database)
	var s *survey.Survey
	if state == nil || !state.Decided {
		if s, err = o.decide(ctx, db, p, works); err != nil {
			return err
		}
	}
	if !o.write {
		steps, err := o.expected(works, s, state)
		if err != nil {
			return err
		}
		return o.print(report.Applied{Database: p.Database, Steps: steps})
	}
	if !state.Decided {
		if err := o.save(works, s, state); err != nil {
			return err
		}
	}
	return o.convert(ctx, client, p, works)
}

// openState opens the state directory. It returns nil if there is none, and nothing is written.
func (o *applyOptions) openState(p *plan.Plan) (*plan.State, error) {
	if o.stateDir == "" {
		return nil, nil
	}
	var s *plan.State
	var err error
	if o.write {
		s, err = plan.OpenState(o.stateDir, p)
	} else {
		s, err = plan.ReadState(o.stateDir)
		if errors.Is(err, plan.ErrNoState) || errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err == nil && s.Decided && plan.Difference(s.Plan, p) != "" {
			err = fmt.Errorf("%s: another plan, or this one before it was edited, is under way with it: %s", o.stateDir, plan.Difference(s.Plan, p))
		}
	}
	if err == nil && s.Undone != "" {
		err = fmt.Errorf("%s: the plan was undone on %s; make a new plan and use another directory", o.stateDir, s.Undone)
		if o.write {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, fileError(err, "--state-dir: %v", err)
	}
	return s, nil
}

// work is the conversions of one collection.
type work struct {
	collection string
	steps      []*step
}

// step is one conversion, with the options of its command.
type step struct {
	plan.Step
	options   *convertOptions
	job       job
	documents int64 // about how many there are to read
}

// works returns the conversions of the plan in the order of the work. The error is a usage error.
func (o *applyOptions) works(p *plan.Plan) ([]work, error) {
	var out []work
	for _, g := range p.Groups() {
		for _, w := range g {
			work := work{collection: w.Collection}
			for _, s := range w.Steps {
				c, err := o.step(p, s)
				if err != nil {
					return nil, failure.Usagef("%s: %s: %v", o.file, quoted(s.Collection), err)
				}
				work.steps = append(work.steps, c)
			}
			out = append(out, work)
		}
	}
	return out, nil
}

func quoted(name string) string { return fmt.Sprintf("%q", name) }

// step returns the conversion of a step, as a command line of bsonids convert describes it.
func (o *applyOptions) step(p *plan.Plan, s plan.Step) (*step, error) {
	c := &convertOptions{console: o.child(p.Database + "." + s.Collection), recordFlags: o.recordFlags, load: o.load,
		output: &enum{value: formatTable}, write: o.write, trust: slices.Clone(s.Trust), workers: o.workers, batch: o.batch}
	c.database, c.collection, c.into, c.fields = p.Database, s.Collection, s.Into, s.Fields
	var err error
	if c.from.Kind, err = kinds.Parse(s.From); err != nil {
		return nil, err
	}
	if c.to.Kind, err = kinds.Parse(s.To); err != nil {
		return nil, err
	}
	if o.stateDir != "" {
		c.state, c.skipList = o.path(s.State()), o.path(s.SkipList())
		if s.UndoLog() != "" {
			c.undoLog = o.path(s.UndoLog())
		}
	}
	j, err := c.job()
	return &step{Step: s, options: c, job: j}, err
}

func (o *applyOptions) path(name string) string { return o.stateDir + string(os.PathSeparator) + name }

// decide reads everything and compares it with the plan. The error is a usage error if the plan no
// longer applies.
func (o *applyOptions) decide(ctx context.Context, db *mongo.Database, p *plan.Plan, works []work) (*survey.Survey, error) {
	s, err := o.survey(ctx, db, &o.load)
	if err != nil {
		return nil, err
	}
	problems, warnings := plan.Compare(p, s)
	for _, into := range p.Targets() {
		if i := slices.IndexFunc(s.Collections, func(c survey.Collection) bool { return c.Name == into && c.Documents > 0 }); i >= 0 {
			problems = append(problems, fmt.Sprintf("the new collection %q has documents already", into))
		}
	}
	for _, w := range warnings {
		o.warn("%s", w)
	}
	if len(problems) > 0 {
		return nil, failure.Usagef("the data have changed since %s was made: %s; make a new plan with bsonids plan", o.file, strings.Join(problems, "; "))
	}
	for _, w := range works {
		for _, st := range w.steps {
			err := o.load.patience.Do(ctx, func() error { return matching(ctx, db.Collection(w.collection), st.job.conversion) })
			if err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// decision returns the decision of the survey about the fields of the step.
func (s *step) decision(sv *survey.Survey) decide.Decision {
	conv := s.job.conversion
	if conv.From.BySubtype() {
		return decide.Decision{Subtype: conv.From.Subtype, From: s.From, Made: sv.Made, BySubtype: true, Fields: []decide.Field{}}
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
func (o *applyOptions) save(works []work, sv *survey.Survey, state *plan.State) error {
	for _, w := range works {
		for _, st := range w.steps {
			d := st.decision(sv)
			if err := mayWrite(&d); err != nil {
				return err
			}
			f, err := convert.OpenState(st.options.state, st.job.id)
			if err != nil {
				return fileError(err, "--state-dir: %v", err)
			}
			if begun(f) || f.Done {
				return errors.Join(failure.Usagef("--state-dir: %s is the state of a conversion that has begun: use another directory", st.options.state), f.Close())
			}
			f.Decision = &d
			if f.Conversion == "" {
				f.Conversion = record.NewConversion()
			}
			if err := errors.Join(f.Save(), f.Close()); err != nil {
				return err
			}
		}
	}
	state.Decided = true
	return state.Save()
}

// expected returns what the steps would change, from the survey, or from the state files if the plan
// is under way.
func (o *applyOptions) expected(works []work, sv *survey.Survey, state *plan.State) ([]report.AppliedStep, error) {
	var out []report.AppliedStep
	for _, w := range works {
		for _, st := range w.steps {
			a := report.AppliedStep{Collection: w.collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields, Status: report.NotBegun}
			if sv == nil {
				var err error
				if a, err = fromFiles(state, st.Step); err != nil {
					return nil, err
				}
			} else {
				d := st.decision(sv)
				for _, f := range d.Fields {
					a.Values += f.Values
				}
			}
			out = append(out, a)
		}
	}
	return out, nil
}

// fromFiles returns how far a step has come, by its state file. The error names a file that is missing or
// damaged, or that is of another conversion, after the plan was begun.
func fromFiles(state *plan.State, st plan.Step) (report.AppliedStep, error) {
	a := report.AppliedStep{Collection: st.Collection, From: st.From, To: st.To, Into: st.Into, Fields: st.Fields, Status: report.NotBegun}
	f, err := stateOf(state, st)
	switch {
	case err != nil && state.Decided:
		return a, &failure.Error{Kind: failure.Failed, Text: nameless(err) + ": what the conversion has done is unknown without it; put the file back", Err: err}
	case err != nil:
	case f.Undone != "":
		a.Status = report.WasUndone
	case f.Done:
		a.Status = report.DoneStep
	case f.Position != nil || f.UndoID != "" || f.Created:
		a.Status = report.Stopped
	}
	a.Values, a.Documents, a.Skipped = f.Values, f.Changed, f.Skipped
	return a, nil
}

// stateOf returns the state of a step. The error names a file of another conversion, too.
func stateOf(state *plan.State, st plan.Step) (convert.State, error) {
	path := state.Path(st.State())
	s, err := convert.ReadState(path)
	if err == nil {
		err = isOf("the state file "+path, s.Identity, identityOf(state.Plan.Database, st))
	}
	return s, err
}
