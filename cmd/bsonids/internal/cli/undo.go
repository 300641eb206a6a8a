package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undo"
)

type undoVerb struct {
	*console
	dir      string   // of the migration
	names    []string // the collections, with a database
	database string
	work     undo.Options
}

func (o *undoVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo DIR | undo --db DATABASE COLLECTION...",
		Short: "Restore what the conversions of a plan have changed, or undo a cutover that was released",
		Long: `undo restores every value that the conversions of the migration in DIR have changed,
if the document still has the converted value. It does not change values that other
programs changed since, and lists them. Without --write it changes nothing and
prints what it would change. --allow-changed accepts what cannot be restored, and
the undo is then complete.

undo can be stopped at any moment and run again. The conversions do not go on
after it: the next bsonids apply begins them with new files. undo waits for the last
writes of a conversion that was killed. The files pause and rate in DIR steer undo
as they steer apply.

With --db, undo puts the old collections of a cutover back that was released, if
they were not dropped. It fences the new collections, compares them with the old
ones, and brings to the old ones what was changed since: values that did not
change are restored as they were, and new ones are converted back. Documents whose
old values cannot be known are listed, and nothing is changed.`,
		Example: `  bsonids undo shop.d
  bsonids undo shop.d --write
  bsonids undo --db shop orders customers --write`,
		Args: cobra.MinimumNArgs(1),
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON)
	o.retryFlag(cmd)
	o.recordFlags(cmd)
	batchFlag(cmd, &o.work.Batch)
	cmd.Flags().BoolVar(&o.work.Write, "write", false, "change the documents")
	cmd.Flags().StringVar(&o.database, "db", "", "database of a cutover that was released; its collections are then named instead of DIR")
	cmd.Flags().BoolVar(&o.work.AllowChanged, "allow-changed", false, "accept values that cannot be restored, because other programs changed them since, and end the undo")
	cmd.MarkFlagsMutuallyExclusive("db", "allow-changed")
	return cmd
}

func (o *undoVerb) complete(args []string) error {
	switch {
	case o.database != "":
		o.names = args
		return (&exchange.Options{Database: o.database}).Check(args)
	case len(args) != 1:
		return failure.Usagef("name one directory, or give --db")
	}
	o.dir = args[0]
	return nil
}

func (o *undoVerb) run(ctx context.Context) (err error) {
	if o.database != "" {
		w := &switchVerb{console: o.console, undo: true, groups: []exchange.Group{{Names: o.names}}, work: exchange.Options{Database: o.database, Write: o.work.Write}}
		return w.run(ctx)
	}
	open, mode := plan.ReadState, server.Read
	if o.work.Write {
		open, mode = plan.LockState, server.Write
	}
	state, err := open(o.dir)
	if err != nil {
		return failure.Usagef("%v", err)
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if state.Plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump, which was not changed: delete the converted dump", o.dir)
	}
	s, err := o.session(ctx, mode)
	if err != nil {
		return err
	}
	defer server.Disconnect(s.Client)
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
		o.wayOn = &wayOn{changed: fmt.Sprintf("%d documents, and possibly documents of the batch in progress; no others", restored), again: curable(o.explain(failed))}
	}
	err = o.print(o.out, report.Undone{Database: state.Plan.Database, Written: o.work.Write, Steps: steps}, !incomplete)
	return cmp.Or(failed, err)
}
