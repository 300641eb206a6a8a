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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// switchVerb is cutover and release, and undo with a database.
type switchVerb struct {
	*console
	state         *plan.State // of the migration; nil with the id of a cutover
	groups        []cutover.Group
	release, undo bool // what is done, if not the cutover
	done          bool // a group was carried out
	work          cutover.Options
	asides        cutover.Asides
}

func (o *switchVerb) define() *cobra.Command {
	cmd, write := o.cutoverCommand(), "exchange the collections"
	if o.release {
		cmd, write = o.releaseCommand(), "restore the validators"
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON)
	o.retryFlag(cmd)
	cmd.Flags().StringVar(&o.work.Database, "db", "", "database of a cutover, whose id as bsonids status prints it is then given instead of DIR")
	cmd.Flags().BoolVar(&o.work.Write, "write", false, write)
	return cmd
}

func (o *switchVerb) cutoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cutover DIR | cutover --db DATABASE ID",
		Short: "Put the converted copies of collections in their place, while services run",
		Long: `cutover puts the copies that apply made of the collections of a plan in their
place. Without --write it changes nothing, compares the collections, and prints
what it would do. It exchanges one group of collections that refer to
each other after the other: either all of a group, or none. After a group that
fails, no other is begun.

It compares the old and the new collections while services write. Then it sets a
validator that refuses everything on all of them, and compares what has changed
meanwhile, which a change stream tells. Without change streams, it compares
everything behind the validator, and says so. Then, for each collection, it renames
the old one away, applies what was deleted or written in spite of the validator,
and renames the new one in. The old one is kept until you drop it, with
_before_cutover added to its name. bsonids release then lets the services write
again. That is the point of no return.

From the validator until the release, the server refuses inserts and updates, with
code 121; cutover and release print for how long. Between the two renames, which take some milliseconds, there is no
collection of the name: reads find nothing, and updates and deletes match nothing,
without an error. Pause the services that update or delete, or let them repeat an
operation that matched nothing. What was written to a new collection in spite of
the validator is counted, and the exit code is then 3.

cutover can be stopped at any moment, also by SIGKILL, and the same command goes
on. --roll-back puts the old collections back until the release, without what was
deleted from the new ones meanwhile. If documents were inserted or changed there in
spite of the validator, it writes them to a file, COLLECTION.written.jsonl in DIR,
and changes nothing without --allow-changed. A cutover that cannot go on rolls back
by itself.

If the directory is lost, --db and the id that bsonids status --db prints go on with a
cutover that has begun. The file is then in the working directory.`,
		Example: `  bsonids cutover shop.d
  bsonids cutover shop.d --write
  bsonids cutover shop.d --roll-back --write
  bsonids cutover --db shop 7f3b0a5c12de --roll-back --write`,
		Args: arguments(1),
	}
	f := cmd.Flags()
	f.BoolVar(&o.work.RollBack, "roll-back", false, "put the old collections back, and restore their validators")
	f.BoolVar(&o.work.Accept, "allow-changed", false, "with --roll-back: accept that the old collections lack documents that were inserted or changed in the new ones in spite of the fence")
	f.StringSliceVar(&o.work.Skipped, "with-skipped", nil, "name of a collection whose copy is put in place although it has values that the conversion skipped")
	o.timeoutFlag(cmd, cutover.Timeout, "time limit for a command; a run that goes on after another one waits as long for the last commands of that")
	cmd.MarkFlagsMutuallyExclusive("roll-back", "with-skipped")
	return cmd
}

// complete finds the groups of collections: those that the plan copies, or the one of a cutover.
func (o *switchVerb) complete() error {
	if o.work.Accept && !o.work.RollBack && !o.release {
		return failure.Usagef("--allow-changed is for --roll-back")
	}
	if o.work.Database != "" && len(o.work.Skipped) > 0 {
		return failure.Usagef("--with-skipped is for the directory of a migration: with --db, a cutover has begun")
	}
	if o.work.Database != "" {
		if !server.ValidDatabase(o.work.Database) || server.ServerDatabase(o.work.Database) {
			return failure.Usagef("--db: invalid database name %q", o.work.Database)
		}
		o.groups = []cutover.Group{{ID: o.args[0]}}
		return nil
	}
	dir := o.args[0]
	d, err := plan.Look(dir)
	o.state, o.asides.Dir = d, dir
	if err != nil {
		return failure.Usagef("%v", err)
	}
	if d.Plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump, and no server has copies of it", dir)
	}
	if err := migrate.MayApply(dir, d.Plan); err != nil {
		return err
	}
	o.work.Database = d.Plan.Database
	o.work.Conversions = d.Conversions()
	if o.groups = cutover.Groups(d.Groups(), d.Plan.Accepted()); len(o.groups) == 0 {
		return failure.Usagef("%s converts no collection into a new one that a cutover can exchange: no collection of it has into, without accepted: true", dir)
	}
	var all []string
	for _, g := range o.groups {
		all = append(all, g.Names...)
	}
	for _, name := range o.work.Skipped {
		if !slices.Contains(all, name) {
			return failure.Usagef("--with-skipped %s: it is not one of the collections", name)
		}
	}
	return nil
}

func (o *switchVerb) run(ctx context.Context) (err error) {
	s, err := o.session(ctx, server.Write)
	if err != nil {
		return err
	}
	o.work.Aside = o.asides.Keep
	defer func() { err = errors.Join(err, o.asides.Close()) }()
	e := cutover.New(s, o.work)
	do, verb := o.cutOver, cutover.Forward
	switch {
	case o.release:
		do, verb = o.releaseGroup, cutover.Release
	case o.work.RollBack:
		verb = cutover.RollBack
	}
	groups := o.groups
	if o.state != nil && verb == cutover.Forward {
		recorded, err := migrate.ReadRecord(ctx, s, o.work.Database)
		if err == nil {
			err = recorded.HasCopies(o.state, false)
		}
		if err != nil {
			return o.explainSwitch(err)
		}
		for _, name := range o.state.Plan.Accepted() {
			o.Warn("%s is left out, which the plan accepts: put its copy in its place yourself", name)
		}
	}
	if o.state != nil { // what is wrong with the cutover of a command line is an error
		groups, err = e.Waiting(ctx, groups, verb)
	}
	if err == nil {
		err = o.each(ctx, e, groups, do)
	}
	return o.explainSwitch(err)
}

// each calls do for one group after the other.
func (o *switchVerb) each(ctx context.Context, e *cutover.Cutovers, groups []cutover.Group, do func(context.Context, *cutover.Cutovers, cutover.Group) error) error {
	first := true
	return e.Each(groups, func(g cutover.Group) error {
		if !first && o.output != formatJSON {
			fmt.Fprintln(o.out)
		}
		first = false
		return do(ctx, e, g)
	})
}

// cutOver exchanges a group of collections, or puts the old ones back, and prints how it ended.
func (o *switchVerb) cutOver(ctx context.Context, e *cutover.Cutovers, g cutover.Group) error {
	r, err := e.CutOver(ctx, g)
	return o.ended(r, err)
}

// ended prints how a cutover or its undo ended.
func (o *switchVerb) ended(r cutover.Result, err error) error {
	if err != nil && o.work.Write {
		if o.wayOn = o.switchWay(r); o.wayOn == nil && o.done {
			o.wayOn = &wayOn{changed: "the collections above, and no others", again: true}
		}
	}
	if r.Files = o.asides.Paths; !r.Begun {
		for _, path := range r.Files {
			o.Warn("documents that the old collection lacks are in %s", path)
		}
		return err
	}
	o.done = true
	r.Release = o.switching("release", o.state, r.Database, r.Conversion())
	return cmp.Or(err, o.print(report.Cutover(r), r.Conflicts() == 0 || o.work.Accept), r.Denied)
}

// switchWay describes how to proceed after an error in a cutover or its undo.
func (o *switchVerb) switchWay(r cutover.Result) *wayOn {
	if r.Begun && r.State == record.RolledBack {
		return &wayOn{changed: "nothing that is left: the old collections are in place with their validators; the new collections are as compared"}
	}
	if !r.Begun {
		return nil
	}
	w := &wayOn{changed: "the validators of the collections, and possibly their names; see bsonids status", again: true}
	if r.Untouched() {
		w.changed = "the copies were brought up to date; nothing is fenced"
	}
	if !r.RollBack && r.State != record.RollingBack {
		w.back = o.switching("cutover", o.state, r.Database, r.Conversion(), "--roll-back")
	}
	return w
}

// switching returns a command line for a cutover: with the directory of its migration, or with its id if that is not known.
func (c *console) switching(name string, of *plan.State, database, id string, flags ...string) string {
	flags = append(flags, "--write")
	if of != nil {
		return c.command(slices.Concat([]string{name, of.Dir()}, flags)...)
	}
	return c.command(slices.Concat([]string{name, "--db", database, id}, flags)...)
}

// explainSwitch names the privileges that a cutover needs.
func (c *console) explainSwitch(err error) error {
	if err == nil || errors.Is(err, failure.ErrIncomplete) {
		return err
	}
	if e := c.explain(err); e.Kind == failure.Denied {
		return &failure.Error{Kind: e.Kind, Err: err, Text: e.Text + "; cutover, release and undo of a cutover need the roles readWrite and dbAdmin on the database, or " + privilege.Needs(privilege.Cutover)}
	}
	return err
}
