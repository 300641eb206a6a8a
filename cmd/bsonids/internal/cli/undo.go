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
	database string
	work     undo.Options
}

func (o *undoVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo DIR | undo --db DATABASE COLLECTION...",
		Short: "Restore what the conversions of a plan have changed, and undo its cutovers",
		Long: `undo puts the old collections of the cutovers of the migration in DIR back. Then it
restores every value that the conversions in place have changed,
if the document still has the converted value. It does not change values that other
programs changed since, and lists them. Without --write it changes nothing and
prints what it would change. --allow-changed accepts what cannot be restored, and
the undo is then complete.

A cutover that has not put every new collection in place is rolled back. One that
was not released is undone behind its fence. After the release, undo compares the new
collections with the old ones, fences them, and brings to the old ones what was
changed since: values that did not change are restored as they were, and new ones
are converted back. Documents whose old values cannot be known are listed, and
nothing is changed. Copies stay until you drop them.

undo can be stopped at any moment and run again. The conversions do not go on
after it: the next bsonids apply begins them with new files. undo waits for the last
writes of a conversion that was killed. The files pause and rate in DIR steer undo
as they steer apply.

With --db, undo puts the old collections of one cutover back, for example if the
directory is lost.`,
		Example: `  bsonids undo shop.d
  bsonids undo shop.d --write
  bsonids undo --db shop orders customers --write`,
		Args: cobra.MinimumNArgs(1),
	}
	o.changeFlags(cmd, &o.work.Batch, &o.work.Write)
	cmd.Flags().StringVar(&o.database, "db", "", "database of a cutover; its collections are then named instead of DIR")
	cmd.Flags().BoolVar(&o.work.AllowChanged, "allow-changed", false, "accept values that cannot be restored, because other programs changed them since, and end the undo")
	cmd.MarkFlagsMutuallyExclusive("db", "allow-changed")
	return cmd
}

func (o *undoVerb) complete() error {
	switch {
	case o.database != "":
		return (&exchange.Options{Database: o.database}).Check(o.args)
	case len(o.args) != 1:
		return failure.Usagef("name one directory, or give --db")
	}
	return nil
}

func (o *undoVerb) run(ctx context.Context) error {
	if o.database == "" {
		return o.plan(ctx)
	}
	s, err := o.session(ctx, server.Write)
	if err != nil {
		return err
	}
	e := exchange.New(s.Child(o.database), exchange.Options{Database: o.database, Write: o.work.Write})
	return o.explainSwitch(o.putBack(ctx, e, []exchange.Group{{Names: o.args}}))
}

// putBack puts the old collections of cutovers back, all or none: what forbids it for one of them is found before the first.
func (o *undoVerb) putBack(ctx context.Context, e *exchange.Exchange, groups []exchange.Group) error {
	w := &switchVerb{console: o.console, undo: true, work: e.Options}
	var found []exchange.Result
	for _, g := range groups {
		r, err := e.MayUndo(ctx, g.Names)
		if err != nil {
			return err
		}
		found = append(found, r)
	}
	return w.each(ctx, e, groups, func(ctx context.Context, e *exchange.Exchange, _ []string) (err error) {
		r := found[0]
		found = found[1:]
		if e.Write {
			err = e.Undo(ctx, &r)
		}
		return w.ended(r, err)
	})
}

// plan undoes all conversions of a plan.
func (o *undoVerb) plan(ctx context.Context) (err error) {
	open, mode := plan.ReadState, server.Read
	if o.work.Write {
		open, mode = plan.LockState, server.Write
	}
	state, err := open(o.args[0])
	if err != nil {
		return failure.Usagef("%v", err)
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if state.Plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump, which was not changed: delete the converted dump", state.Dir())
	}
	s, err := o.session(ctx, mode)
	if err != nil {
		return err
	}
	incomplete := false
	steps, failed := undo.Plan(ctx, s, o.work, state, func() error {
		of := exchange.Options{Database: state.Plan.Database, Write: o.work.Write}
		of.Conversions = state.Conversions()
		e := exchange.New(s.Child(of.Database), of)
		groups, err := e.InPlace(ctx, exchange.Groups(state.Groups(), nil))
		if err == nil {
			err = o.putBack(ctx, e, groups)
		}
		err = o.explainSwitch(err)
		if incomplete = errors.Is(err, failure.ErrIncomplete); err != nil && !incomplete || len(groups) == 0 {
			return err
		}
		if o.work.Write {
			o.wayOn = &wayOn{changed: "the old collections of the cutovers are in place again", again: true}
		}
		if o.output != formatJSON {
			fmt.Fprintln(o.out)
		}
		return nil
	})
	if steps == nil {
		return failed
	}
	var restored int64
	for _, u := range steps {
		restored += u.Result.Restored
		incomplete = incomplete || u.Result.Left > 0 && !o.work.AllowChanged
	}
	if failed != nil && o.work.Write {
		o.wayOn = &wayOn{changed: fmt.Sprintf("%d documents, and possibly documents of the batch in progress; no others", restored), again: curable(o.explain(failed))}
	}
	err = o.print(report.Undone{Database: state.Plan.Database, Written: o.work.Write, Steps: steps}, !incomplete)
	return cmp.Or(failed, err)
}
