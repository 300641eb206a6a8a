package cli

import (
	"context"
	"errors"
	"math"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type convertOptions struct {
	*console
	conversionFlags
	recordFlags
	dumpFlags
	output         *enum
	write          bool
	state, undoLog string
	skipList       string
	trust          []string
	retry          string
	decideAnew     bool
	part           string
	follow         bool
	untilCaughtUp  bool
	load           loadFlags
	workers        count
	batch          *count
	examples       count
	references     count

	advance func(documents int) // called with the progress instead of showing it, if it is not nil
}

func newConvertCommand(c *console) *cobra.Command {
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

With --follow, the new collection then follows the old one by a change stream of
the server: every change is applied to the copy, until the command is
interrupted. After an interrupt, the same command continues. The exit code is 0
if the copy had caught up, and 130 otherwise. --until-caught-up ends the command
when the copy has caught up.

With --state, the conversion can be stopped at any moment, also by SIGKILL, and
the same command continues it. With --undo-log, convert saves every value before
it changes it, for bsonids undo and bsonids verify. Both are required from one
legacy representation to another, because a converted value looks like one that
is not converted.

With --dump, convert reads a dump of mongodump instead of a server, and writes
the converted dump to --out, _id included. Without --out it writes nothing. The
input is never changed. --db and --collection select what is converted; the rest
is copied. It reads the dump twice, or once with the --decision of a scan.`,
		Example: `  bsonids convert --db shop --collection orders --from javaLegacy --to standard
  bsonids convert --db shop --collection orders --from javaLegacy --to standard \
      --state orders.state --undo-log orders.undo --write
  bsonids convert --db shop --collection users --from csharpLegacy --to standard \
      --into users_standard --state users.state --write
  bsonids convert --db shop --collection users --from csharpLegacy --to standard \
      --into users_standard --state users.state --follow --write
  bsonids convert --dump dump/ --out dump-standard/ --from javaLegacy --to standard`,
		Args: cobra.NoArgs,
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	c.completeNames(cmd, func() []string { return []string{o.database} })
	o.batch = batchFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.into, "into", "", "write converted copies of all documents, _id included, into this new collection of the database")
	f.BoolVar(&o.write, "write", false, "change the documents")
	f.StringSliceVar(&o.trust, "trust", nil, "path of a field whose values are in the order of --from, although they do not determine it")
	f.Var(&o.references, "references", "number of documents to read, at random, of each other collection of the database, to find values that equal converted ones; 0 for none")
	f.StringVar(&o.query, "query", "", "filter, in extended JSON, for the documents to convert; the byte order is decided from these documents")
	f.StringVar(&o.retry, "retry", "", "skip list of an earlier run; convert only the values on the list that have not changed since")
	f.BoolVar(&o.decideAnew, "decide-anew", false, "make a new decision from all values, even if the record has the decision of an earlier run")
	f.StringVar(&o.skipList, "skip-list", "", "file for the list of values that are left unchanged; by default, a new file with \"skipped\" in its name")
	f.StringVar(&o.state, "state", "", "file for the progress of the conversion, from which the same command continues")
	f.StringVar(&o.undoLog, "undo-log", "", "file for the values before they are changed")
	o.load.add(cmd, true)
	f.Var(&o.workers, "workers", "number of batches to write at the same time")
	f.StringVar(&o.part, "part", "", "part to convert, such as 2/8, one part for each machine; a hash of _id assigns the documents")
	f.BoolVar(&o.follow, "follow", false, "with --into: apply to the new collection what changes in the old one, until the command is interrupted")
	f.BoolVar(&o.untilCaughtUp, "until-caught-up", false, "with --follow: end when the new collection has caught up with the old one")
	f.Var(&o.examples, "examples", "number of documents to print as examples; -1 for all")
	o.recordFlags.add(cmd)
	o.dumpFlags.add(cmd, []string{"db", "collection", "from", "to", "field", "trust", "skip-list", "output", "examples"}, []string{"out", "decision"})
	f.StringVar(&o.decisionFile, "decision", "", "with --dump: file with the decision that bsonids scan --decision made")
	o.optional(cmd, "db", "collection")
	f.BoolVar(&o.unrecorded, "confirm-unrecorded", false, "with --no-record: confirm that no other conversion of these values runs, ran or will run")
	return cmd
}

// check returns a usage error if flags do not go together.
func (o *convertOptions) check(conv convert.Conversion) error {
	switch {
	case o.into == o.collection:
		return failure.Usagef("--into must be another collection than --collection")
	case o.into != "" && o.undoLog != "":
		return failure.Usagef("--undo-log cannot be used with --into, which does not change the collection")
	case o.untilCaughtUp && !o.follow:
		return failure.Usagef("--until-caught-up requires --follow")
	case o.follow && o.into == "":
		return failure.Usagef("--follow requires --into: the copy follows the collection")
	case o.follow && o.write && o.state == "":
		return failure.Usagef("--follow requires --state, the file for the position in the change stream")
	case o.follow && o.noRecord:
		return failure.Usagef("--follow cannot be used with --no-record: its writes to the record show how far the change stream has come")
	case o.follow && conv.MergesIDs():
		return failure.Usagef("--follow cannot be used if text in _id is converted: a copy does not show which spelling its source has")
	case o.follow && o.part != "":
		return failure.Usagef("--follow cannot be used with --part: one run follows the whole collection")
	case o.retry != "" && (o.into != "" || o.part != "" || o.query != ""):
		return failure.Usagef("--retry cannot be used with --into, --part or --query")
	case o.query != "" && o.into != "":
		return failure.Usagef("--query cannot be used with --into, which copies the whole collection")
	case o.retry != "" && o.write && conv.SameSubtype() && o.undoLog == "":
		return failure.Usagef("from %s to %s, the old and the new values have subtype %d: --undo-log is required", conv.From.Name, conv.To.Name, conv.To.Subtype)
	case o.write && o.noRecord && conv.SameSubtype() && o.into == "" && !o.unrecorded:
		return failure.Usagef("from %s to %s, a converted value looks like one that is not converted, and without a record a second conversion would convert it again: "+
			"make sure that there is and was no other conversion, and also give --confirm-unrecorded", conv.From.Name, conv.To.Name)
	case o.collection == record.Name || o.into == record.Name:
		return failure.Usagef("cannot convert %s, the record of conversions", record.Name)
	case o.into != "" && o.part != "" && conv.MergesIDs():
		return failure.Usagef("--part cannot be used with --into and --from %s if _id is converted: two parts may have documents that get the same _id", conv.From.Name)
	case o.write && conv.SameSubtype() && o.into == "" && o.retry == "" && (o.state == "" || o.undoLog == ""):
		return failure.Usagef("from %s to %s, the old and the new values have subtype 3: --state and --undo-log are required", conv.From.Name, conv.To.Name)
	}
	if err := o.distinctFiles(o.skipList); err != nil {
		return err
	}
	return errors.Join(o.recordFlags.check(), o.load.check())
}

func (o *convertOptions) run(ctx context.Context, _ []string) error {
	if err := o.dumpFlags.check(); err != nil {
		return err
	}
	if o.dump != "" {
		return o.convertDump(ctx)
	}
	j, err := o.job()
	if err != nil {
		return err
	}
	o.about(o.database + "." + o.collection)
	mode := server.Read
	if o.write {
		mode = server.Write
	}
	client, err := o.connect(ctx, mode)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	if o.write {
		o.gentle(ctx, client, 1, o.batch, &o.workers)
	}
	o.load.begin(o.console)
	out, err := o.convert(ctx, client, j)
	switch {
	case out.inPlace != nil:
		return o.inPlace(out, err)
	case out.copied != nil:
		return o.copied(out, err)
	case err == nil && out.finished:
		return o.finished(out.about, out.all)
	}
	return err
}

// inPlace reports the result of a conversion in place. failed is the error that stopped it, or nil.
func (o *convertOptions) inPlace(out outcome, failed error) error {
	about, res := out.about, *out.inPlace
	about.Failed = failed != nil
	if failed != nil && o.write {
		o.wayOn = o.inPlaceWay(res, failed)
		if file := (*convert.RecordError)(nil); o.wayOn == nil && errors.As(failed, &file) {
			failed = fileError(failed, "%v", nameFlag(failed))
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
	if out.all.Skipped > 0 {
		return failure.ErrIncomplete
	}
	return nil
}

// copied reports the result of a conversion into a new collection. failed is the error that stopped
// it, or nil.
func (o *convertOptions) copied(out outcome, failed error) error {
	about, res := out.about, *out.copied
	about.Failed = failed != nil
	if failed != nil && o.write {
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
	if o.write && !res.Verified || out.all.Skipped > 0 {
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
		report.Finished(o.out, about, o.state, all)
	}
	if all.Skipped > 0 {
		return failure.ErrIncomplete
	}
	return nil
}

// stopped explains what to do after a run that stopped before its end.
func (o *convertOptions) stopped(err error) error {
	if !o.write {
		return err
	}
	e := failure.Explain(nameFlag(err), o.connectionString())
	var what string
	switch {
	case o.wayOn == nil:
		return e
	case !curable(err):
		what = "converted values stay converted"
	case o.state != "":
		what = "converted values stay converted, and the same command continues from here"
	default:
		what = "converted values stay converted, and the same command converts the rest"
	}
	return &failure.Error{Kind: e.Kind, Text: e.Text + "; " + what}
}
