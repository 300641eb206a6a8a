package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/apply"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type applyOptions struct {
	*console
	recordFlags
	load    loadFlags
	output  *enum
	workers count
	atOnce  count
	batch   *count

	file string // the plan
	work apply.PlanOptions
}

func newApplyCommand(c *console, run func(*applyOptions, context.Context) error) *cobra.Command {
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
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.batch = batchFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.work.Write, "write", false, "change the documents")
	f.StringVar(&o.work.Dir, "state-dir", "", "directory for the files of the conversions, created if it does not exist; required with --write")
	f.Var(&o.workers, "workers", "number of batches of a collection to write at the same time")
	f.Var(&o.atOnce, "collections-at-once", "number of collections to convert at the same time")
	o.load.add(cmd, true)
	o.recordFlags.add(cmd)
	f.BoolVar(&o.Unrecorded, "confirm-unrecorded", false, "with --no-record: confirm that no other conversion of these values runs, ran or will run")
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

// planToApply reads a plan that may be applied. The error is a usage error.
func planToApply(path string) (*plan.Plan, error) {
	p, err := readPlan(path)
	if err == nil {
		if bad := p.MayApply(); bad != nil {
			err = failure.Usagef("%s %v", path, bad)
		}
	}
	return p, err
}

func (o *applyOptions) complete(args []string) (err error) {
	o.file = args[0]
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	w := &o.work
	if w.Write && w.Dir == "" {
		return failure.Usagef("--write requires --state-dir, for the files from which the conversions continue and are undone")
	}
	w.Workers, w.AtOnce, w.Batch, w.FullLoad = o.workers.value, o.atOnce.value, o.batch.value, o.load.fullLoad
	w.Plan, err = planToApply(o.file)
	return err
}

func (o *applyOptions) run(ctx context.Context) (err error) {
	p, err := apply.NewPlan(o.work, o.Recording)
	if err != nil {
		return o.named(o.file+": ", err)
	}
	if err := p.Open(); err != nil {
		return o.named("--state-dir: ", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s, end, err := o.session(ctx, server.Write, o.load, o.Recording)
	if err != nil {
		return err
	}
	defer end()
	r, failed := p.Apply(ctx, s)
	if failed != nil && r.Wrote {
		o.wayOn = &wayOn{changed: fmt.Sprintf("%d values in %d documents in this run, and possibly documents of the batches in progress; no others", r.Values, r.Documents),
			again: curable(o.explain(failed)), back: o.command("undo", o.file, "--state-dir", o.work.Dir, "--write")}
	}
	if r.Steps != nil {
		if o.output.value == formatJSON {
			err = report.AppliedJSON(o.out, r.Applied)
		} else {
			report.Apply(o.out, r.Applied, o.file, o.work.Dir)
		}
	}
	switch {
	case failed != nil:
		return failed
	case err == nil && r.Incomplete:
		return failure.ErrIncomplete
	}
	return err
}
