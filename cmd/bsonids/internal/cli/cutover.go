package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// switchFlags holds what cutover and release share.
type switchFlags struct {
	*console
	recordFlags
	load     loadFlags
	output   *enum
	database string
	file     string // the plan, if one is given instead of collections
	write    bool
}

// commandTimeout is the time limit of a command of a cutover. A run that rolls back another one waits
// as long for its last command.
const commandTimeout = 20 * time.Second

func (o *switchFlags) add(cmd *cobra.Command, write string) {
	serverFlags(cmd, o.console)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.completeNames(cmd, func() []string { return []string{o.database} })
	f := cmd.Flags()
	f.StringVar(&o.database, "db", "", "database; that of the plan with a plan")
	f.BoolVar(&o.write, "write", false, write)
	f.BoolVar(&o.takeOver, "take-over", false, "take over from a run that has not ended, after its last commands have ended")
	f.DurationVar(&o.batchTimeout, "batch-timeout", commandTimeout, "time limit for a command; a run that takes over waits as long for the last commands of the other run")
	o.load.add(cmd, false)
}

// check returns a usage error if flags are wrong.
func (o *switchFlags) check(names []string) error {
	if !validDatabase(o.database) || slices.Contains([]string{"admin", "config", "local"}, o.database) {
		return failure.Usagef("--db: invalid database name %q", o.database)
	}
	for i, name := range names {
		switch {
		case !validCollection(name) || name == record.Name:
			return failure.Usagef("invalid collection name %q", name)
		case slices.Contains(names[:i], name):
			return failure.Usagef("the collection %q is named twice", name)
		}
	}
	if o.batchTimeout == 0 {
		o.batchTimeout = commandTimeout
	}
	return errors.Join(o.recordFlags.check(), o.load.check())
}

// command returns a command line for the collections.
func (o *switchFlags) command(name string, collections []string, flags ...string) string {
	words := append([]string{"bsonids", name, "--db", o.database}, flags...)
	if slices.ContainsFunc(collections, func(c string) bool { return strings.HasPrefix(c, "-") }) {
		collections = append([]string{"--"}, collections...)
	}
	return commandLine(slices.Concat(words, []string{"--write"}, o.serverArgs(), collections))
}

type cutoverOptions struct {
	switchFlags
	rollBack bool
	copies   []string // to choose among several copies of a collection
	skipped  []string // collections whose copies may have skipped values
	suffix   string
	batch    *count
}

func newCutoverCommand(c *console) *cobra.Command {
	o := &cutoverOptions{switchFlags: switchFlags{console: c}}
	cmd := &cobra.Command{
		Use:   "cutover {PLAN | COLLECTION...}",
		Short: "Put the converted copies of collections in their place, while services run",
		Long: `cutover puts the copies that convert --into or apply made of collections in their
place. Without --write it changes nothing, compares the collections, and prints
what it would do. Name collections that refer to each other in one command:
either all of them are exchanged, or none. With a plan of bsonids plan, cutover
exchanges the collections that have into, one group of collections that refer to
each other after the other: either all of a group, or none. After a group that
fails, no other is begun.

It compares the old and the new collections while services write. Then it sets a
validator that refuses everything on all of them, and compares what has changed
meanwhile, which a change stream tells. Without change streams, it compares
everything behind the validator, and says so. Then, for each collection, it renames
the old one away, applies what was deleted or written in spite of the validator,
and renames the new one in. The old one is kept until you drop it. bsonids release
then lets the services write again.

From the validator until the release, the server refuses inserts and updates, with
code 121; cutover and release print for how long. Between the two renames, which take some milliseconds, there is no
collection of the name: reads find nothing, and updates and deletes match nothing,
without an error. Pause the services that update or delete, or let them repeat an
operation that matched nothing.

cutover can be stopped at any moment, also by SIGKILL, and the same command goes
on. --roll-back puts the old collections back, as long as not all new ones are in
place. A cutover that cannot go on does so by itself.`,
		Example: `  bsonids cutover plan.yaml --write
  bsonids cutover --db shop orders customers
  bsonids cutover --db shop orders customers --write
  bsonids cutover --db shop orders customers --roll-back --write
  bsonids release --db shop orders customers --write`,
		Args: o.namesOrPlan,
		RunE: runE(o.run),
	}
	o.add(cmd, "exchange the collections")
	f := cmd.Flags()
	f.BoolVar(&o.rollBack, "roll-back", false, "put the old collections back, and restore their validators")
	f.StringSliceVar(&o.copies, "copy", nil, "name of the copy to put in place, if a collection has several")
	f.StringSliceVar(&o.skipped, "with-skipped", nil, "name of a collection whose copy is put in place although it has values that the conversion skipped")
	f.StringVar(&o.suffix, "suffix", "_before_cutover", "what is added to the name of a collection that was put away")
	o.batch = batchFlag(cmd)
	for _, other := range []string{"copy", "with-skipped", "suffix"} {
		cmd.MarkFlagsMutuallyExclusive("roll-back", other)
	}
	return cmd
}

func (o *cutoverOptions) run(ctx context.Context, args []string) error {
	groups, err := o.groups(args)
	if err != nil {
		return err
	}
	if o.file != "" && len(o.copies) > 0 {
		return failure.Usagef("--copy cannot be used with a plan, which names the copies")
	}
	for _, name := range o.skipped {
		if !slices.ContainsFunc(groups, func(g exchanged) bool { return slices.Contains(g.names, name) }) {
			return failure.Usagef("--with-skipped %s: it is not one of the collections", name)
		}
	}
	o.about(o.database)
	client, err := o.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.load.begin(o.console)
	return explainSwitch(o.all(ctx, client.Database(o.database), groups), o.connectionString())
}

// all carries out the cutover of each group.
func (o *cutoverOptions) all(ctx context.Context, db *mongo.Database, groups []exchanged) (err error) {
	if o.rollBack {
		groups, err = o.waiting(ctx, db, groups, false, record.Comparing, record.Fencing, record.Switching, record.RollingBack)
	} else {
		groups, err = o.waiting(ctx, db, groups, true, record.Comparing, record.Fencing, record.Switching, record.Switched, record.Releasing, record.RollingBack, record.RolledBack)
	}
	if err != nil {
		return err
	}
	return o.each(groups, func(g exchanged) error {
		if o.file != "" {
			o.copies = g.copies
		}
		return o.cutOver(ctx, db, g.names)
	})
}

func (o *cutoverOptions) cutOver(ctx context.Context, db *mongo.Database, names []string) (err error) {
	again := func(f func() error) error { return o.load.patience.Do(ctx, f) }
	var known bool
	var c *record.Cutover
	err = again(func() (err error) {
		if known, err = guard.Known(ctx, db); err != nil {
			return err
		}
		c, err = record.CutoverOf(ctx, db, names...)
		return err
	})
	switch {
	case err != nil:
		return err
	case !known:
		return failure.Usagef("the server does not know the command collMod, with which a cutover fences collections; FerretDB 1 does not")
	case c != nil && !sameNames(c.Names(), names):
		return failure.Usagef("a cutover of %s is in the state %q; name exactly its collections to continue it", strings.Join(c.Names(), ", "), c.State)
	case c != nil && c.State == record.Undoing:
		return failure.Usagef("the cutover of %s is being undone; continue with bsonids undo, or give the undo up with bsonids release", strings.Join(c.Names(), ", "))
	case c == nil && o.rollBack:
		return failure.Usagef("no cutover of %s is under way", strings.Join(names, ", "))
	}
	var conversions map[string]convert.Conversion
	if c == nil {
		c = record.NewCutover(nil, versionOf())
		if c.Collections, conversions, err = o.exchanges(ctx, db, names); err != nil {
			return err
		}
	} else if conversions, err = o.conversions(ctx, db, c); err != nil {
		return err
	}
	r := report.Cutover{Database: o.database, Cutover: c, Conversions: conversions}
	if !o.write {
		return o.dryRun(ctx, db, r)
	}
	if c.State == record.Switched || c.State == record.Releasing {
		if o.rollBack {
			return failure.Usagef("every new collection of the cutover of %s is in place: it cannot be rolled back", strings.Join(c.Names(), ", "))
		}
		r.Written = true
		return o.print(r)
	}
	kind := record.Switch
	if o.rollBack || c.State == record.RollingBack {
		kind = record.SwitchBack
	}
	l, err := o.lock(ctx, db, c, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end(err)) }()
	// Another run may have gone on until this one began.
	token, id := c.Token, c.ID
	var now *record.Cutover
	err = again(func() (err error) {
		now, err = record.CutoverOf(ctx, db, names...)
		return err
	})
	switch {
	case err != nil:
		return err
	case token == "" && now != nil, token != "" && (now == nil || now.ID != id):
		return failure.Usagef("another run of the same cutover has begun or ended in the meantime; see bsonids status")
	case now != nil:
		*c = *now
	}
	on := o.server(db, l, conversions, o.batch.value)
	defer on.Close()
	x := &cutover.Cutover{Cutover: c, DB: on, Notice: func(text string) { o.warn("%s", text) }}
	x.BeforeFence = func(ctx context.Context) error { return o.mayFence(ctx, db, c) }
	return o.carryOut(ctx, x, r, kind)
}

// carryOut carries out the cutover, and prints how it ended.
func (o *cutoverOptions) carryOut(ctx context.Context, x *cutover.Cutover, r report.Cutover, kind string) error {
	r.Written = true
	var err error
	if kind == record.SwitchBack {
		err = x.RollBack(ctx, "on request")
	} else {
		err = x.Run(ctx)
	}
	var failed *cutover.FailedError
	switch {
	case errors.As(err, &failed):
		e := failure.Explain(failed.Err, o.connectionString())
		err = &failure.Error{Kind: max(e.Kind, failure.Failed), Err: err, Text: e.Text + "; the cutover was rolled back, and the old collections are in place"}
		o.wayOn = &wayOn{changed: "nothing that is left: the old collections are in place with their validators; the new collections are as compared"}
	case err != nil && x.Token != "" && x.Untouched:
		o.wayOn = &wayOn{changed: "the copies were brought up to date; nothing is fenced", again: true}
		o.wayOn.back = o.command("cutover", x.Names(), "--roll-back")
	case err != nil && x.Token != "":
		o.wayOn = &wayOn{changed: "the validators of the collections, and possibly their names; see bsonids status", again: true}
		if kind == record.Switch {
			o.wayOn.back = o.command("cutover", x.Names(), "--roll-back")
		}
	}
	if x.Token == "" {
		return err
	}
	r.Failed = err != nil
	return errors.Join(err, o.print(r))
}

// print prints how the cutover ended. The error is failure.ErrIncomplete if documents conflict.
func (o *cutoverOptions) print(r report.Cutover) error {
	r.Release = o.command("release", r.Names())
	if o.file != "" {
		r.Release = commandLine(append([]string{"bsonids", "release", o.file, "--write"}, o.serverArgs()...))
	}
	var err error
	if o.output.value == formatJSON {
		err = report.CutoverJSON(o.out, r)
	} else {
		report.WriteCutover(o.out, r)
	}
	if err == nil && r.Conflicts() > 0 {
		err = failure.ErrIncomplete
	}
	return err
}

// dryRun compares the collections, unless a cutover is under way, and prints what it would do.
func (o *cutoverOptions) dryRun(ctx context.Context, db *mongo.Database, r report.Cutover) error {
	if r.Token == "" {
		for i := range r.Collections {
			x := &r.Collections[i]
			p := &convert.Pair{Conversion: r.Conversions[x.Name], Old: db.Collection(x.Name), New: db.Collection(x.New), Batch: o.batch.value}
			stuck, err := o.compare(ctx, p, p.Old, x)
			if err != nil {
				return err
			}
			if len(stuck) > 0 {
				return failure.Usagef("%d documents of %s and %s cannot be brought to agree, so that the cutover would fail: _id %s: %s", len(stuck), x.Name, x.New, stuck[0].ID, stuck[0].Reason)
			}
		}
	}
	r.RollBack = o.rollBack || r.State == record.RollingBack
	return o.print(r)
}

// compare compares the pair of x, whose leading collection is given, and sets x.Compared. It returns the
// documents that cannot be brought to agree.
func (o *cutoverOptions) compare(ctx context.Context, p *convert.Pair, leading *mongo.Collection, x *record.Exchange) (stuck []convert.Skip, err error) {
	var total int64
	err = o.load.patience.Do(ctx, func() (err error) {
		total, err = leading.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	bar := o.progress(total, "comparing", o.database+"."+x.Name)
	defer bar.Done()
	p.Progress, p.Patience = bar.Add, o.load.patience
	a, err := p.All(ctx)
	x.Compared = record.Compared{Documents: a.Documents, Inserted: a.Inserted, Replaced: a.Replaced, Deleted: a.Deleted, Stuck: int64(len(a.Stuck))}
	return a.Stuck, err
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func versionOf() string {
	v, _ := build()
	return v
}

// fenced returns a usage error if a cutover that has not ended uses one of the collections.
func fenced(ctx context.Context, db *mongo.Database, names ...string) error {
	c, err := record.CutoverOf(ctx, db, names...)
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return nil // without the record, the server refuses the writes
	}
	if err != nil || c == nil {
		return err
	}
	switch {
	case c.Untouched && c.State == record.Undoing:
		return failure.Usagef("%s.%s is compared by the undo of a cutover of %s; finish it with bsonids undo, or give it up with bsonids release", db.Name(), names[0], strings.Join(c.Names(), ", "))
	case c.Untouched:
		return failure.Usagef("%s.%s is compared by a cutover of %s; finish it with bsonids cutover, or give it up with bsonids cutover --roll-back", db.Name(), names[0], strings.Join(c.Names(), ", "))
	}
	return failure.Usagef("%s.%s is fenced by a cutover of %s, in the state %q; finish it with bsonids cutover and bsonids release first",
		db.Name(), names[0], strings.Join(c.Names(), ", "), c.State)
}
