package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

type undoVerb struct {
	*console
	database string
	work     migrate.UndoOptions
}

func (o *undoVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo DIR | undo --db DATABASE ID",
		Short: "Restore what the conversions of a plan have changed, and put back what its cutovers exchanged",
		Long: `undo rolls the cutovers of the migration in DIR back, as bsonids cutover --roll-back
does. Then it restores every value that the conversions in place have changed,
if the document still has the converted value. It does not change values that other
programs changed since, and lists them. Without --write it changes nothing and
prints what it would change. --allow-changed accepts what cannot be restored, and
the undo is then complete.

The release of a cutover is the point of no return: after bsonids release, undo
says when that was, names the old collections if they still stand, and changes nothing.
If other collections of the plan were not released, --without-released undoes these.
Between the exchange and the release, documents that were inserted or changed in a
new collection in spite of its validator are written to a file in DIR and named, and
undo changes nothing without --allow-changed. Copies stay until you drop them.

undo goes by the undo logs in DIR. If one that the record names is missing or has lost
its end, undo names it and changes nothing; --without-lost-logs restores the rest. If
the record lacks the run of a log, nothing tells whether that log has lost its end:
--without-record goes by what it has.

undo can be stopped at any moment and run again. The next bsonids apply converts
again. undo waits for the last writes of a conversion that was killed. The files pause
and rate in DIR steer undo as they steer apply.

With --db and the id that bsonids status --db prints, undo puts the old collections of
one cutover back, for example if the directory is lost.`,
		Example: `  bsonids undo shop.d
  bsonids undo shop.d --write
  bsonids undo --db shop 7f3b0a5c12de --write`,
		Args: arguments(1),
	}
	o.changeFlags(cmd, &o.work.Batch, &o.work.Write)
	cmd.Flags().StringVar(&o.database, "db", "", "database of a cutover, whose id as bsonids status prints it is then given instead of DIR")
	cmd.Flags().BoolVar(&o.work.AllowChanged, "allow-changed", false, "accept what cannot be restored, because it was changed since, and end the undo")
	cmd.Flags().BoolVar(&o.work.WithoutLost, "without-lost-logs", false, "restore the rest if undo logs are missing, cut off or damaged")
	cmd.Flags().BoolVar(&o.work.WithoutRecord, "without-record", false, "go by the undo logs whose runs the record lacks, although nothing tells whether they are whole")
	cmd.Flags().BoolVar(&o.work.WithoutReleased, "without-released", false, "restore the rest if collections were released: these, and those that refer to them, stay converted")
	for _, flag := range []string{"without-lost-logs", "without-record", "without-released"} {
		cmd.MarkFlagsMutuallyExclusive("db", flag)
	}
	return cmd
}

func (o *undoVerb) complete() error {
	if o.database != "" && (!server.ValidDatabase(o.database) || server.ServerDatabase(o.database)) {
		return failure.Usagef("--db: invalid database name %q", o.database)
	}
	return nil
}

func (o *undoVerb) run(ctx context.Context) (err error) {
	if o.database == "" {
		return o.plan(ctx)
	}
	w := &switchVerb{console: o.console, undo: true, groups: []cutover.Group{{ID: o.args[0]}}}
	w.work = cutover.Options{Database: o.database, Write: o.work.Write, RollBack: true, Accept: o.work.AllowChanged}
	return w.run(ctx)
}

// putBack puts the old collections of the cutovers of a plan back, all or none: what forbids it for one of them is found before
// the first, except for what is known only when the collections are locked.
func (o *undoVerb) putBack(ctx context.Context, s *session.Session, state *plan.State) (found int, err error) {
	w := &switchVerb{console: o.console, state: state, undo: true, asides: cutover.Asides{Dir: state.Dir()}}
	w.work = cutover.Options{Database: state.Plan.Database, Write: o.work.Write, Accept: o.work.AllowChanged, WithoutReleased: o.work.WithoutReleased, Conversions: state.Conversions(), Aside: w.asides.Keep}
	defer func() { err = errors.Join(err, w.asides.Close()) }()
	e := cutover.New(s.Child(w.work.Database), w.work)
	cutovers, err := e.ToPutBack(ctx, cutover.Groups(state.Groups(), nil))
	if err != nil {
		return 0, err
	}
	var groups []cutover.Group
	for _, c := range cutovers {
		if _, err := e.MayPutBack(ctx, c); err != nil {
			return 0, err
		}
		groups = append(groups, cutover.Group{Names: c.Names(), ID: c.Conversion()})
	}
	return len(groups), w.each(ctx, e, groups, func(ctx context.Context, e *cutover.Cutovers, g cutover.Group) error {
		i := slices.IndexFunc(cutovers, func(c *record.Cutover) bool { return c.Conversion() == g.ID })
		r, err := e.PutBack(ctx, cutovers[i])
		return w.ended(r, err)
	})
}

// plan undoes all conversions of a plan.
func (o *undoVerb) plan(ctx context.Context) (err error) {
	open, mode := plan.Look, server.Read
	if o.work.Write {
		open, mode = plan.Lock, server.Write
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
	steps, failed := migrate.Undo(ctx, s, o.work, state, func() error {
		found, err := o.putBack(ctx, s, state)
		err = o.explainSwitch(err)
		if incomplete = errors.Is(err, failure.ErrIncomplete); err != nil && !incomplete || found == 0 {
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
