package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

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

	work apply.PlanOptions
}

func newApplyCommand(c *console, run func(*applyOptions, context.Context) error) *cobra.Command {
	o := &applyOptions{console: c, workers: count{1, 1, 256}, atOnce: count{4, 1, 256}}
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Convert all collections of a plan",
		Long: `apply converts the collections of the plan in DIR, several at once. DIR is a directory
that bsonids plan has made. Without --write, apply changes nothing and prints what it
would change.

Before the first write, it reads every document of the database once more and
makes all decisions. If a field or a collection appeared, or if the evidence of a
field has changed since the plan was made, it changes nothing.

DIR then has the progress, the undo log and the skip list of each conversion. apply
can be stopped at any moment, also by SIGKILL, and the same command continues. It
works from a copy of the plan in the ledger of DIR, and rejects an edit that was made
after it began to write.

Collections that refer to each other are converted one after the other, and no
other collection is begun between them. bsonids status shows the progress.`,
		Example: `  bsonids apply shop.d
  bsonids apply shop.d --write`,
		Args: cobra.ExactArgs(1),
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.batch = batchFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.work.Write, "write", false, "change the documents")
	f.Var(&o.workers, "workers", "number of batches of a collection to write at the same time")
	f.Var(&o.atOnce, "collections-at-once", "number of collections to convert at the same time")
	o.load.add(cmd, true)
	o.recordFlags.add(cmd)
	f.BoolVar(&o.Unrecorded, "confirm-unrecorded", false, "with --no-record: confirm that no other conversion of these values runs, ran or will run")
	return cmd
}

// mayApply returns a usage error if the plan of a directory may not be applied.
func mayApply(dir string, p *plan.Plan) error {
	if bad := p.MayApply(); bad != nil {
		return failure.Usagef("%s %v", filepath.Join(dir, plan.PlanFile), bad)
	}
	return nil
}

func (o *applyOptions) complete(args []string) (err error) {
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	w := &o.work
	w.Dir = args[0]
	w.Workers, w.AtOnce, w.Batch, w.FullLoad = o.workers.value, o.atOnce.value, o.batch.value, o.load.fullLoad
	if w.Plan, err = plan.ReadFile(w.Dir); err != nil {
		return failure.Usagef("%v", err)
	}
	return mayApply(w.Dir, w.Plan)
}

func (o *applyOptions) run(ctx context.Context) (err error) {
	p, err := apply.NewPlan(o.work, o.Recording)
	if err != nil {
		return o.named(o.work.Dir+": ", err)
	}
	if err := p.Open(); err != nil {
		return o.named("", err)
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
			again: curable(o.explain(failed)), back: o.command("undo", o.work.Dir, "--write")}
	}
	if r.Steps != nil {
		if o.output.value == formatJSON {
			err = report.AppliedJSON(o.out, r.Applied)
		} else {
			report.Apply(o.out, r.Applied, o.work.Dir)
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
