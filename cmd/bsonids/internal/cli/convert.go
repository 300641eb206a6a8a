package cli

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/apply"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type convertOptions struct {
	*console
	conversionFlags
	recordFlags
	output     *enum
	load       loadFlags
	workers    count
	batch      *count
	examples   count
	references count

	work apply.Options // what the flags describe
}

func newConvertCommand(c *console, run func(*convertOptions, context.Context) error) *cobra.Command {
	o := &convertOptions{console: c, workers: count{1, 1, 256}, examples: count{3, -1, math.MaxInt32}, references: count{10_000, 0, math.MaxInt32}}
	cmd := &cobra.Command{
		Use:   "convert",
		Short: "Convert the UUIDs of a collection from one representation to another",
		Long: `convert changes the UUIDs of one collection, at every depth and in arrays.
Without --write it changes nothing and prints what it would change.

Only binary values of 16 bytes with the subtype of --from are changed, or with
--from text and --from goStruct, the text and the documents {uuid: …, valid: …} at
the paths that --field names. Before the first write, convert reads every value. It converts a field if more of its
values than chance explains have the variant and a version of RFC 9562 when they
are read in the order of --from. Of such a field, it converts the values that
fit. It lists all other values with the reason in a file (--skip-list), and the
exit code is 3. --trust FIELD converts a field whose values do not determine the
byte order.

Each update matches the values that were read. If another program changed a
document first, convert reads the document again and never overwrites it.

_id cannot be changed in place. --into creates a new collection with the options
and indexes of the old one, copies the documents, and compares both collections.

With --state, the conversion can be stopped at any moment, also by SIGKILL, and
the same command continues it. With --undo-log, convert saves every value before
it changes it, for bsonids undo and bsonids verify; without --state, the state is
then beside it, in a file whose name ends in .ledger. It is required with --write,
except with --into, which leaves the old values where they are.`,
		Example: `  bsonids convert --db shop --collection orders --from javaLegacy --to standard
  bsonids convert --db shop --collection orders --from javaLegacy --to standard \
      --state orders.state --undo-log orders.undo --write
  bsonids convert --db shop --collection users --from csharpLegacy --to standard \
      --into users_standard --state users.state --write`,
		Args: cobra.NoArgs,
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	c.completeNames(cmd, func() []string { return []string{o.database} })
	o.batch = batchFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "write converted copies of all documents, _id included, into this new collection of the database")
	f.BoolVar(&o.work.Write, "write", false, "change the documents")
	f.StringSliceVar(&o.work.Trust, "trust", nil, "path of a field whose values are in the order of --from, although they do not determine it")
	f.Var(&o.references, "references", "number of documents to read, at random, of each other collection of the database, to find values that equal converted ones; 0 for none")
	f.StringVar(&o.query, "query", "", "filter, in extended JSON, for the documents to convert; the byte order is decided from these documents")
	f.StringVar(&o.work.Retry, "retry", "", "skip list of an earlier run; convert only the values on the list that have not changed since")
	f.BoolVar(&o.work.DecideAnew, "decide-anew", false, "make a new decision from all values, even if the record has the decision of an earlier run")
	f.StringVar(&o.work.SkipList, "skip-list", "", "file for the list of values that are left unchanged; by default, a new file with \"skipped\" in its name")
	f.StringVar(&o.work.State, "state", "", "file for the progress of the conversion, from which the same command continues")
	f.StringVar(&o.work.UndoLog, "undo-log", "", "file for the values before they are changed")
	o.load.add(cmd, true)
	f.Var(&o.workers, "workers", "number of batches to write at the same time")
	f.StringVar(&o.part, "part", "", "part to convert, such as 2/8, one part for each machine; a hash of _id assigns the documents")
	f.Var(&o.examples, "examples", "number of documents to print as examples; -1 for all")
	o.recordFlags.add(cmd)
	_ = errors.Join(cmd.MarkFlagRequired("db"), cmd.MarkFlagRequired("collection")) // the flags exist
	return cmd
}

func (o *convertOptions) complete([]string) error {
	if err := errors.Join(o.recordFlags.check(), o.load.check()); err != nil {
		return err
	}
	d, err := migration.Describe(o.identity())
	if err != nil {
		return err
	}
	w := &o.work
	w.Conversion, w.ID, w.Part, w.Query = d.Conversion, d.ID, d.Part, d.Query
	w.References, w.Examples, w.Workers, w.Batch = o.references.value, o.examples.value, o.workers.value, o.batch.value
	if err := w.Check(); err != nil {
		return err
	}
	if errors.Join(files.Regular(w.UndoLog), files.Regular(w.State), files.Regular(w.SkipList)) != nil {
		return failure.Usagef("--undo-log, --state and --skip-list must name files")
	}
	if w.Write && w.SkipList == "" {
		w.SkipList = apply.SkipListOf(o.database+"."+o.collection, cmp.Or(w.State, w.UndoLog), w.Retry)
	}
	w.WithLedger()
	return o.distinctFiles()
}

func (o *convertOptions) run(ctx context.Context) error {
	o.About(o.database + "." + o.collection)
	mode := server.Read
	if o.work.Write {
		mode = server.Write
	}
	s, end, err := o.session(ctx, mode, o.load, o.Recording)
	if err != nil {
		return err
	}
	defer end()
	if o.work.Write {
		o.work.Batch, o.work.Workers = s.Gentle(ctx, 1, o.work.Batch, o.work.Workers)
	}
	out, err := apply.Collection(ctx, s, o.work)
	switch {
	case out.InPlace != nil:
		return o.inPlace(out, err)
	case out.Copied != nil:
		return o.copied(out, err)
	case err == nil && out.Finished:
		return o.finished(out.About, out.All)
	}
	return err
}

// inPlace reports the result of a conversion in place. failed is the error that stopped it, or nil.
func (o *convertOptions) inPlace(out apply.Outcome, failed error) error {
	about, res := out.About, *out.InPlace
	about.Failed = failed != nil
	if failed != nil && o.work.Write {
		o.wayOn = o.inPlaceWay(res, failed)
		if file := (*convert.RecordError)(nil); o.wayOn == nil && errors.As(failed, &file) {
			failed = migration.FileError(failed)
		}
	}
	if o.output.value == formatJSON {
		err := report.InPlaceJSON(o.out, about, res)
		if failed != nil || err != nil {
			return errors.Join(failed, err)
		}
	} else {
		report.InPlace(o.out, about, res)
	}
	if failed != nil {
		return o.stopped(failed)
	}
	if out.All.Skipped > 0 {
		return failure.ErrIncomplete
	}
	return nil
}

// copied reports the result of a conversion into a new collection. failed is the error that stopped
// it, or nil.
func (o *convertOptions) copied(out apply.Outcome, failed error) error {
	about, res := out.About, *out.Copied
	about.Failed = failed != nil
	if failed != nil && o.work.Write {
		o.wayOn = o.copyWay(res, failed)
	}
	if o.output.value == formatJSON {
		err := report.CopyJSON(o.out, about, res)
		if failed != nil || err != nil {
			return errors.Join(failed, err)
		}
	} else {
		report.Copy(o.out, about, res)
	}
	if failed != nil {
		return o.stopped(failed)
	}
	if o.work.Write && !res.Verified || out.All.Skipped > 0 {
		return failure.ErrIncomplete
	}
	return nil
}

// finished reports that an earlier run completed the conversion, except for the skipped documents.
func (o *convertOptions) finished(about report.Conversion, all convert.Totals) error {
	if o.output.value == formatJSON {
		if err := report.FinishedJSON(o.out, about, all); err != nil {
			return err
		}
	} else {
		report.Finished(o.out, about, o.work.State, all)
	}
	if all.Skipped > 0 {
		return failure.ErrIncomplete
	}
	return nil
}

// stopped explains what to do after a run that stopped before its end.
func (o *convertOptions) stopped(err error) error {
	if !o.work.Write {
		return err
	}
	e := o.explain(err)
	var what string
	switch {
	case o.wayOn == nil:
		return e
	case !curable(err):
		what = "converted values stay converted"
	case o.work.State != "":
		what = "converted values stay converted, and the same command continues from here"
	default:
		what = "converted values stay converted, and the same command converts the rest"
	}
	return &failure.Error{Kind: e.Kind, Text: e.Text + "; " + what, Err: err}
}
