package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type undoOptions struct {
	*console
	recordFlags
	load   loadFlags
	output *enum
	write  bool
	batch  *count

	stateDir     string
	database     string
	allowChanged bool
}

func newUndoCommand(c *console) *cobra.Command {
	o := &undoOptions{console: c}
	cmd := &cobra.Command{
		Use:   "undo FILE | undo --db DATABASE COLLECTION...",
		Short: "Restore the values in an undo log of convert, or undo a cutover that was released",
		Long: `undo restores every value that bsonids convert --undo-log FILE saved, if the
document still has the converted value. It does not change values that other
programs changed since, and lists them. Without --write it changes nothing and
prints what it would change. --allow-changed accepts what cannot be restored, and
the undo is then complete.

undo can be stopped at any moment and run again. It marks the log and the state
file, and the conversion cannot continue with them. Start it again with new files.

undo waits for the last writes of a conversion that was killed.

With --db, undo puts the old collections of a cutover back that was released, if
they were not dropped. It fences the new collections, compares them with the old
ones, and brings to the old ones what was changed since: values that did not
change are restored as they were, and new ones are converted back. Documents whose
old values cannot be known are listed, and nothing is changed.`,
		Example: `  bsonids undo orders.undo
  bsonids undo orders.undo --write
  bsonids undo plan.yaml --state-dir shop.state --write
  bsonids undo --db shop orders customers --write`,
		Args: cobra.MinimumNArgs(1),
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.batch = batchFlag(cmd)
	cmd.Flags().BoolVar(&o.write, "write", false, "change the documents")
	cmd.Flags().StringVar(&o.stateDir, "state-dir", "", "state directory of a plan; FILE is then the plan, and all its conversions are undone")
	cmd.Flags().StringVar(&o.database, "db", "", "database of a cutover that was released; its collections are then named instead of FILE")
	c.completeNames(cmd, func() []string { return []string{o.database} })
	cmd.MarkFlagsMutuallyExclusive("db", "state-dir")
	cmd.Flags().BoolVar(&o.allowChanged, "allow-changed", false, "accept values that cannot be restored, because other programs changed them since, and end the undo")
	cmd.MarkFlagsMutuallyExclusive("db", "allow-changed")
	o.load.add(cmd, false)
	o.recordFlags.add(cmd)
	return cmd
}

func (o *undoOptions) run(ctx context.Context, args []string) error {
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	if o.database != "" {
		return o.released(ctx, args)
	}
	if len(args) != 1 {
		return failure.Usagef("name one undo log or plan, or give --db")
	}
	if o.stateDir != "" {
		return o.plan(ctx, args[0])
	}
	mode := server.Read
	if o.write {
		mode = server.Write
	}
	// A file that is none is found before the password is asked for.
	if log, err := convert.ReadUndoLog(args[0]); err != nil {
		return failure.Usagef("%v", err)
	} else if err := log.Close(); err != nil {
		return err
	}
	client, err := o.connect(ctx, mode)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.gentle(ctx, client, 1, o.batch, nil)
	o.load.begin(o.console)
	u, err := o.undo(ctx, client, args[0])
	if !u.begun {
		return err
	}
	if err != nil && o.write {
		o.wayOn = undoWay(u.res, err)
	}
	if o.output.value == formatJSON {
		err = errors.Join(err, report.UndoneJSON(o.out, u.id, o.write, u.res))
	} else {
		report.Undone(o.out, u.id, o.write, u.res)
	}
	if err == nil && u.res.Left > 0 && !o.allowChanged {
		err = failure.ErrIncomplete
	}
	return err
}

// undone is how an undo ended.
type undone struct {
	id    convert.Identity
	res   convert.Undone
	begun bool
}

// undo restores the values in the undo log at path, or finds what it would restore. The result is
// valid with an error, too.
func (o *undoOptions) undo(ctx context.Context, client *mongo.Client, path string) (u undone, err error) {
	open := convert.ReadUndoLog
	if o.write {
		open = convert.ReadUndoLogAlone
	}
	log, err := open(path)
	if err != nil {
		return u, failure.Usagef("%v", err)
	}
	defer func() { _ = log.Close() }()
	again := func(f func() error) error { return o.load.patience.Do(ctx, f) }
	u.id = log.Identity
	o.about(u.id.Database + "." + u.id.Collection)
	coll := client.Database(u.id.Database).Collection(u.id.Collection)
	opts, err := optionsOf(u.id)
	if err != nil {
		return u, failure.Usagef("%s: %v", path, err)
	}
	var spec *mongo.CollectionSpecification
	err = again(func() (err error) {
		if spec, err = server.FindCollection(ctx, coll); err != nil || !o.write {
			return err
		}
		return o.notGuarded(ctx, coll, spec.UUID, opts.Conversion.From.Subtype, false)
	})
	if err != nil {
		return u, err
	}
	var expected expectedLog
	err = again(func() (err error) {
		expected, err = o.logWhole(ctx, coll.Database(), log)
		return err
	})
	if err != nil {
		return u, err
	}
	run := &claim{}
	if o.write {
		err := again(func() (err error) {
			run, err = o.begin(ctx, coll.Database(), log, path, spec)
			return err
		})
		if err != nil {
			return u, err
		}
		run.patience = o.load.patience
		defer func() { err = errors.Join(err, run.end(err)) }()
		// Mark the log before the first value is restored, so that the conversion is not resumed,
		// whatever happens next.
		if err := errors.Join(log.Mark(time.Now(), false), log.MarkState(time.Now())); err != nil {
			return u, fileError(err, "%v", err)
		}
	}
	u.begun = true
	bar := o.progress(-1, "restoring", u.id.Database+"."+u.id.Collection)
	opts.UUID = spec.UUID
	opts.Write, opts.Batch, opts.Progress = o.write, o.batch.value, bar.Add
	opts.Check, opts.BatchTimeout, opts.Patience = run.check, o.batchTimeout, o.load.patience
	u.res, err = convert.Undo(ctx, coll, log, opts)
	bar.Done()
	if err == nil && u.res.Gone > 0 && expected.replaced(spec) {
		err = replacedError(u.id.Database + "." + u.id.Collection)
	}
	u.res.Accepted = o.allowChanged
	whole := u.res.Left == 0 || o.allowChanged
	run.totals.Changed, run.totals.Skipped = u.res.Restored, u.res.Unrestored
	if o.write && err == nil {
		err = errors.Join(log.Mark(time.Now(), whole), again(func() error { return run.undone(ctx, whole) }))
	}
	return u, err
}

// optionsOf returns the options of an undo that tell which conversion it undoes.
func optionsOf(id convert.Identity) (opts convert.UndoOptions, err error) {
	f := conversionFlags{database: id.Database, collection: id.Collection, query: id.Query, fields: id.Fields}
	if f.from.Kind, err = kinds.Parse(id.From); err != nil {
		return opts, err
	}
	if f.to.Kind, err = kinds.Parse(id.To); err != nil {
		return opts, err
	}
	if opts.Conversion, _, err = f.conversion(); err != nil {
		return opts, err
	}
	if opts.Part, err = convert.ParsePart(id.Part); err != nil {
		return opts, err
	}
	opts.Query, err = f.filter()
	return opts, err
}

// begin begins the undo in the record, and records there that the conversion is no longer in
// effect.
func (o *undoOptions) begin(ctx context.Context, db *mongo.Database, log *convert.UndoReader, path string, spec *mongo.CollectionSpecification) (*claim, error) {
	if o.noRecord {
		return &claim{}, nil
	}
	id := log.Identity
	from, err := kinds.Parse(id.From)
	if err != nil {
		return nil, failure.Usagef("%s: %v", path, err)
	}
	to, err := kinds.Parse(id.To)
	if err != nil {
		return nil, failure.Usagef("%s: %v", path, err)
	}
	run := record.Run{Kind: record.Undo, Collection: id.Collection, UUID: spec.UUID, Conversion: log.ID, From: id.From, To: id.To,
		FromSubtype: from.Subtype, ToSubtype: to.Subtype, Fields: id.Fields, Part: id.Part, UndoLog: absolute(path), UndoID: log.ID}
	of, err := record.LogOf(ctx, db, id.Collection, "", log.ID)
	if err != nil {
		return nil, nameRecord(err)
	}
	if of.ID != "" {
		run.Conversion = of.Conversion
	}
	c, err := o.claim(ctx, db, &o.recordFlags, run, log.Size(), nil)
	if err != nil {
		return nil, err
	}
	if err := c.undone(ctx, false); err != nil {
		return nil, errors.Join(err, c.end(err))
	}
	return c, nil
}
