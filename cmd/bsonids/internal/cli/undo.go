package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undo"
)

type undoOptions struct {
	*console
	recordFlags
	load   loadFlags
	output *enum
	batch  *count

	log      string   // or the directory of a migration
	names    []string // the collections, with a database
	database string
	work     undo.Options
}

func newUndoCommand(c *console, run func(*undoOptions, context.Context) error) *cobra.Command {
	o := &undoOptions{console: c}
	cmd := &cobra.Command{
		Use:   "undo {DIR | FILE} | undo --db DATABASE COLLECTION...",
		Short: "Restore the values in an undo log of convert, or undo a cutover that was released",
		Long: `undo restores every value that bsonids convert --undo-log FILE saved, if the
document still has the converted value, or with the directory of a migration, every
value that its conversions changed. It does not change values that other
programs changed since, and lists them. Without --write it changes nothing and
prints what it would change. --allow-changed accepts what cannot be restored, and
the undo is then complete.

undo can be stopped at any moment and run again. It marks the log and the state
file, and the conversion cannot continue with them. Start it again with new files.

undo waits for the last writes of a conversion that was killed. With a directory, the
files pause and rate in it steer undo as they steer apply.

With --db, undo puts the old collections of a cutover back that was released, if
they were not dropped. It fences the new collections, compares them with the old
ones, and brings to the old ones what was changed since: values that did not
change are restored as they were, and new ones are converted back. Documents whose
old values cannot be known are listed, and nothing is changed.`,
		Example: `  bsonids undo orders.undo
  bsonids undo orders.undo --write
  bsonids undo shop.d --write
  bsonids undo --db shop orders customers --write`,
		Args: cobra.MinimumNArgs(1),
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.batch = batchFlag(cmd)
	cmd.Flags().BoolVar(&o.work.Write, "write", false, "change the documents")
	cmd.Flags().StringVar(&o.database, "db", "", "database of a cutover that was released; its collections are then named instead of DIR or FILE")
	c.completeNames(cmd, func() []string { return []string{o.database} })
	cmd.Flags().BoolVar(&o.work.AllowChanged, "allow-changed", false, "accept values that cannot be restored, because other programs changed them since, and end the undo")
	cmd.MarkFlagsMutuallyExclusive("db", "allow-changed")
	o.load.add(cmd, false)
	o.recordFlags.add(cmd)
	return cmd
}

func (o *undoOptions) complete(args []string) error {
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	o.work.Batch = o.batch.value
	switch {
	case o.database != "":
		o.names = args
		return (&exchange.Options{Database: o.database}).Check(args)
	case len(args) != 1:
		return failure.Usagef("name one directory or undo log, or give --db")
	}
	o.log = args[0]
	return nil
}

func (o *undoOptions) run(ctx context.Context) error {
	switch {
	case o.database != "":
		w := &switchOptions{console: o.console, recordFlags: o.recordFlags, load: o.load, output: o.output, undo: true, groups: []exchange.Group{{Names: o.names}},
			work: exchange.Options{Database: o.database, Write: o.work.Write, Batch: o.work.Batch}}
		return w.run(ctx)
	case isDirectory(o.log):
		return o.plan(ctx)
	}
	// A file that is none is found before the password is asked for.
	if log, err := convert.ReadUndoLog(o.log); err != nil {
		return failure.Usagef("%v", err)
	} else if err := log.Close(); err != nil {
		return err
	}
	s, end, err := o.session(ctx, o.mode(), o.load, o.Recording)
	if err != nil {
		return err
	}
	defer end()
	o.work.Batch, _ = s.Gentle(ctx, 1, o.work.Batch, 1)
	u, err := undo.Log(ctx, s, o.work, o.log)
	if !u.Begun {
		return err
	}
	if err != nil && o.work.Write {
		o.wayOn = undoneWay(u.Result.Restored, err)
	}
	if o.output.value == formatJSON {
		err = errors.Join(err, report.UndoneJSON(o.out, u.ID, o.work.Write, u.Result))
	} else {
		report.Undone(o.out, u.ID, o.work.Write, u.Result)
	}
	if err == nil && u.Result.Left > 0 && !o.work.AllowChanged {
		err = failure.ErrIncomplete
	}
	return err
}

func (o *undoOptions) mode() server.Mode {
	if o.work.Write {
		return server.Write
	}
	return server.Read
}

// plan undoes all conversions of a plan.
func (o *undoOptions) plan(ctx context.Context) (err error) {
	open := plan.ReadState
	if o.work.Write {
		open = plan.LockState
	}
	state, err := open(o.log)
	if err != nil {
		return failure.Usagef("%v", err)
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if state.Plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump, which was not changed: delete the converted dump", o.log)
	}
	s, end, err := o.session(ctx, o.mode(), o.load, o.Recording)
	if err != nil {
		return err
	}
	defer end()
	steps, failed := undo.Plan(ctx, s, o.work, state)
	if steps == nil {
		return failed
	}
	var restored int64
	incomplete := false
	for _, u := range steps {
		restored += u.Result.Restored
		incomplete = incomplete || u.Result.Left > 0 && !o.work.AllowChanged
	}
	if failed != nil && o.work.Write {
		o.wayOn = undoneWay(restored, o.explain(failed))
	}
	if o.output.value == formatJSON {
		err = report.PlanUndoneJSON(o.out, state.Plan.Database, o.work.Write, steps)
	} else {
		report.PlanUndone(o.out, state.Plan.Database, o.work.Write, steps)
	}
	switch {
	case failed != nil:
		return failed
	case err == nil && incomplete:
		return failure.ErrIncomplete
	}
	return err
}
