package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// switchVerb is cutover and release, and undo with a database.
type switchVerb struct {
	*console
	state         *plan.State // of the migration; nil with the names of collections
	groups        []exchange.Group
	release, undo bool // what is done, if not the cutover
	done          bool // a group was carried out
	work          exchange.Options
}

func (o *switchVerb) define() *cobra.Command {
	cmd, write := o.cutoverCommand(), "exchange the collections"
	if o.release {
		cmd, write = o.releaseCommand(), "restore the validators"
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON)
	o.retryFlag(cmd)
	cmd.Flags().StringVar(&o.work.Database, "db", "", "database; that of the plan with DIR")
	cmd.Flags().BoolVar(&o.work.Write, "write", false, write)
	return cmd
}

func (o *switchVerb) cutoverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cutover {DIR | COLLECTION...}",
		Short: "Put the converted copies of collections in their place, while services run",
		Long: `cutover puts the copies that apply made of collections in their
place. Without --write it changes nothing, compares the collections, and prints
what it would do. Name collections that refer to each other in one command:
either all of them are exchanged, or none. With the directory of a migration, cutover
exchanges the collections that have into, one group of collections that refer to
each other after the other: either all of a group, or none. After a group that
fails, no other is begun.

It compares the old and the new collections while services write. Then it sets a
validator that refuses everything on all of them, and compares what has changed
meanwhile, which a change stream tells. Without change streams, it compares
everything behind the validator, and says so. Then, for each collection, it renames
the old one away, applies what was deleted or written in spite of the validator,
and renames the new one in. The old one is kept until you drop it, with
_before_cutover added to its name. bsonids release then lets the services write
again.

From the validator until the release, the server refuses inserts and updates, with
code 121; cutover and release print for how long. Between the two renames, which take some milliseconds, there is no
collection of the name: reads find nothing, and updates and deletes match nothing,
without an error. Pause the services that update or delete, or let them repeat an
operation that matched nothing.

cutover can be stopped at any moment, also by SIGKILL, and the same command goes
on. --roll-back puts the old collections back, as long as not all new ones are in
place. A cutover that cannot go on does so by itself.`,
		Example: `  bsonids cutover shop.d --write
  bsonids cutover --db shop orders customers
  bsonids cutover --db shop orders customers --write
  bsonids cutover --db shop orders customers --roll-back --write
  bsonids release --db shop orders customers --write`,
		Args: o.namesOrDirectory,
	}
	f := cmd.Flags()
	f.BoolVar(&o.work.RollBack, "roll-back", false, "put the old collections back, and restore their validators")
	f.StringSliceVar(&o.work.Skipped, "with-skipped", nil, "name of a collection whose copy is put in place although it has values that the conversion skipped")
	o.timeoutFlag(cmd, exchange.Timeout, "time limit for a command; a run that goes on after another one waits as long for the last commands of that")
	cmd.MarkFlagsMutuallyExclusive("roll-back", "with-skipped")
	return cmd
}

// complete finds the groups of collections: the one that the arguments name, or with a directory, those that its plan
// copies.
func (o *switchVerb) complete() error {
	if o.work.Database != "" {
		o.groups = []exchange.Group{{Names: o.args}}
		return o.check()
	}
	if len(o.args) != 1 {
		return failure.Usagef("--db is required, or one directory instead of the names of collections")
	}
	dir := o.args[0]
	d, err := plan.Look(dir)
	o.state = d
	switch {
	case err != nil && !strings.ContainsAny(dir, "./"):
		return failure.Usagef("%v; to name a collection, give --db", err)
	case err != nil:
		return failure.Usagef("%v", err)
	}
	if d.Plan.Dump != nil {
		return failure.Usagef("%s: the plan is about a dump, and no server has copies of it", dir)
	}
	if err := migration.MayApply(dir, d.Plan); err != nil {
		return err
	}
	o.work.Database = d.Plan.Database
	o.work.Conversions = d.Conversions()
	if o.groups = exchange.Groups(d.Groups(), d.Plan.Accepted()); len(o.groups) == 0 {
		return failure.Usagef("%s converts no collection into a new one that a cutover can exchange: no collection of it has into, without accepted: true", dir)
	}
	return o.check()
}

// check returns a usage error if flags are wrong.
func (o *switchVerb) check() error {
	var all []string
	for _, g := range o.groups {
		all = append(all, g.Names...)
	}
	for _, name := range o.work.Skipped {
		if !slices.Contains(all, name) {
			return failure.Usagef("--with-skipped %s: it is not one of the collections", name)
		}
	}
	return o.work.Check(all)
}

func (o *switchVerb) run(ctx context.Context) error {
	s, err := o.session(ctx, server.Write)
	if err != nil {
		return err
	}
	if o.state != nil && !o.release && !o.work.RollBack { // these two have all that they need in the record
		if err := s.Fits(ctx, o.work.Database, o.state); err != nil {
			return err
		}
	}
	e := exchange.New(s, o.work)
	do, verb := o.cutOver, exchange.Forward
	switch {
	case o.release:
		do, verb = o.releaseGroup, exchange.Release
	case o.work.RollBack:
		verb = exchange.RollBack
	}
	groups := o.groups
	if o.state != nil && verb == exchange.Forward {
		for _, name := range o.state.Plan.Accepted() {
			o.Warn("%s is left out, which the plan accepts: put its copy in its place yourself", name)
		}
	}
	if o.state != nil { // what is wrong with the only group of a command line is an error
		groups, err = e.Waiting(ctx, groups, verb)
	}
	if err == nil {
		err = o.each(ctx, e, groups, do)
	}
	return o.explainSwitch(err)
}

// each calls do for one group after the other.
func (o *switchVerb) each(ctx context.Context, e *exchange.Exchange, groups []exchange.Group, do func(context.Context, *exchange.Exchange, []string) error) error {
	first := true
	return e.Each(groups, func(g exchange.Group) error {
		if !first && o.output != formatJSON {
			fmt.Fprintln(o.out)
		}
		first = false
		e.Copies = g.Copies
		return do(ctx, e, g.Names)
	})
}

// cutOver exchanges a group of collections, or puts the old ones back, and prints how it ended.
func (o *switchVerb) cutOver(ctx context.Context, e *exchange.Exchange, names []string) error {
	r, err := e.CutOver(ctx, names)
	return o.ended(r, err)
}

// ended prints how a cutover or its undo ended.
func (o *switchVerb) ended(r exchange.Result, err error) error {
	if err != nil && o.work.Write {
		if o.wayOn = o.switchWay(r); o.wayOn == nil && o.done {
			o.wayOn = &wayOn{changed: "the collections above, and no others", again: true}
		}
	}
	if !r.Begun {
		return err
	}
	o.done = true
	r.Release = o.switching("release", o.work.Database, r.Names())
	if o.state != nil {
		r.Release = o.command("release", o.state.Dir(), "--write")
	}
	return cmp.Or(err, o.print(r.Cutover, r.Conflicts() == 0), r.Denied)
}

// switchWay describes how to proceed after an error in a cutover or its undo.
func (o *switchVerb) switchWay(r exchange.Result) *wayOn {
	if r.Begun && r.State == record.RolledBack {
		return &wayOn{changed: "nothing that is left: the old collections are in place with their validators; the new collections are as compared"}
	}
	if !r.Begun || o.undo && r.State == record.Released {
		return nil
	}
	w := &wayOn{changed: "the validators of the collections, and possibly their names; see bsonids status", again: true}
	if r.Untouched() {
		w.changed = "the copies were brought up to date; nothing is fenced"
	}
	switch {
	case !o.undo && (r.Untouched() || r.State != record.RollingBack && !o.work.RollBack):
		w.back = o.switching("cutover", o.work.Database, r.Names(), "--roll-back")
	case o.undo && r.Untouched():
		w.changed = "the old collections were brought up to date; nothing is fenced"
	}
	if o.undo && r.State == record.Undoing {
		w.back = o.switching("release", o.work.Database, r.Names())
	}
	return w
}

// switching returns a command line for collections that are exchanged together.
func (c *console) switching(name, database string, collections []string, flags ...string) string {
	if slices.ContainsFunc(collections, func(c string) bool { return strings.HasPrefix(c, "-") }) {
		collections = append([]string{"--"}, collections...)
	}
	return terminal.Command(slices.Concat([]string{"bsonids", name, "--db", database}, flags, []string{"--write"}, c.serverArgs(), collections)...)
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

// namesOrDirectory checks the arguments of cutover and release.
func (o *switchVerb) namesOrDirectory(cmd *cobra.Command, args []string) error {
	if err := cobra.MinimumNArgs(1)(cmd, args); err != nil {
		return errors.New("name the collections, with --db, or give a directory")
	}
	return nil
}
