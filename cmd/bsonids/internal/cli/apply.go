package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

type applyVerb struct {
	*console
	work migrate.ApplyOptions
	out  string     // of a dump
	plan *plan.Plan // tells whether it is about a dump; a database's is read again when the directory is locked
}

func (o *applyVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply DIR",
		Short: "Convert all collections of a plan",
		Long: `apply converts the collections of the plan in DIR, several at once. DIR is a directory
that bsonids plan has made. Without --write, apply changes nothing and prints what it
would change, and the values that it would leave; the exit code is then 3, as that of the
run that writes. It also counts the documents that would get the _id, or the value of a
unique index, that another one has or gets: their pairs are in DIR/duplicates.jsonl, and
the exit code is 3.

Before the first write, it reads every document of the database once more and
makes all decisions. If a field or a collection appeared, or if the evidence of a
field has changed since the plan was made, it changes nothing.

DIR then has an undo log of each run that changed values, and the skip list of each
conversion. apply can be stopped at any moment, also by SIGKILL, and run again, also
with another directory or on another machine: it reads everything and converts
what is left, until a pass finds nothing. If services write old values all the time, it
ends after three passes, with the exit code 3.

An edit of the plan takes effect when apply is run again:

  leave to convert   the field is decided and converted, until a cutover fences it
  trust added        values that were listed as skipped are converted
  other edits        of what has converted values are errors: put them back, or run
                     bsonids undo

A collection with into in the plan is copied. bsonids cutover brings the copy up to date,
and puts it in the place of its collection. While a cutover has not ended, apply changes
nothing. After bsonids release, apply says when that was, and converts the rest of the
plan.

With the plan of a dump, apply reads the dump, and writes nothing without --out. With
it, apply writes the converted dump, which has the form of the dump, and --write is not
needed, because nothing that exists is changed. Collections that the plan does not
convert are copied. If apply is interrupted, there is no output: give --out again. A
dump whose documents are not those of the plan is an error. --out - writes an archive
or a BSON file to standard output, and the report to standard error; after an error,
what was written has no valid end.

Collections that refer to each other are converted one after the other, and no
other collection is begun between them. bsonids status shows the progress.

Two files in DIR steer apply and undo while they run. While there is a file named
pause, they write nothing. A file named rate has the largest number of documents to
write per second, of all collections together; 0, or no file, is no limit.`,
		Example: `  bsonids apply shop.d
  bsonids apply shop.d --write
  bsonids apply dump.d --out dump-standard/`,
		Args: arguments(1),
	}
	o.changeFlags(cmd, &o.work.Batch, &o.work.Write)
	o.work.Workers, o.work.AtOnce = 1, 4
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "", "with the plan of a dump: converted dump to write, or - for standard output")
	f.Var(number(&o.work.Workers, 1, 256), "workers", "number of batches of a collection to write at the same time")
	f.Var(number(&o.work.AtOnce, 1, 256), "collections-at-once", "number of collections to convert at the same time")
	return cmd
}

func (o *applyVerb) complete() (err error) {
	w := &o.work
	w.Dir = o.args[0]
	if o.plan, err = plan.ReadFile(w.Dir); err != nil {
		return failure.Usagef("%v", err)
	}
	switch {
	case o.plan.Dump != nil && w.Write:
		err = failure.Usagef("--write: a dump is never changed; give --out, which names the converted dump")
	case o.plan.Dump != nil:
		err = errors.Join(o.onlyOf("the plan of a dump", "out", "output"), migrate.MayApply(w.Dir, o.plan))
	case o.out != "":
		err = failure.Usagef("--out is for the plan of a dump, and this one is for the database %q: give --write", o.plan.Database)
	}
	return err
}

// applyDump converts a dump.
func (o *applyVerb) applyDump(ctx context.Context) (r migrate.Applied, err error) {
	if o.plan.Dump.Path == "-" && terminal.Is(os.Stdin) {
		return r, failure.Usagef("%s is the plan of a dump from a pipe, and standard input is a terminal", o.work.Dir)
	}
	if o.out == "-" {
		o.console.out = o.console.err
		if terminal.Is(os.Stdout) {
			return r, failure.Usagef("--out -: standard output is a terminal")
		}
	}
	return migrate.ApplyDump(ctx, o.console, migrate.DumpOptions{Plan: o.plan, Dir: o.work.Dir, Out: o.out, Stdin: os.Stdin, Stdout: os.Stdout})
}

// applyPlan converts the collections of a database. The result is valid with an error, too, if it has steps.
func (o *applyVerb) applyPlan(ctx context.Context) (r migrate.Applied, err error) {
	p, err := migrate.Prepare(o.work)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s, err := o.session(ctx, server.Write)
	if err != nil {
		return r, err
	}
	r, err = p.Apply(ctx, s)
	if err != nil && r.Wrote {
		o.wayOn = &wayOn{changed: o.changed(r), again: curable(o.explain(err)), back: o.command("undo", o.work.Dir, "--write")}
	}
	return r, err
}

func (o *applyVerb) run(ctx context.Context) error {
	do := o.applyPlan
	if o.plan.Dump != nil {
		do = o.applyDump
	}
	r, failed := do(ctx)
	if r.Steps == nil || failed != nil && o.plan.Dump != nil {
		return failed
	}
	r.Dir = o.work.Dir
	incomplete := o.print(report.Applied(r), !r.Incomplete)
	if errors.Is(incomplete, failure.ErrIncomplete) && r.Denied != nil {
		incomplete = nil
	}
	return cmp.Or(failed, incomplete, r.Denied)
}

// changed describes what a run that failed has changed.
func (o *applyVerb) changed(r migrate.Applied) string {
	var copies []string
	var all int64
	inPlace := false
	for _, s := range r.Steps {
		all += s.Documents
		switch {
		case s.Documents == 0 && s.Status != migrate.Stopped:
		case s.Into != "":
			copies = append(copies, s.Into)
		default:
			inPlace = true
		}
	}
	if !inPlace && len(copies) > 0 {
		return fmt.Sprintf("only the new collections %s, and not those that they are copies of", strings.Join(copies, ", "))
	}
	what := fmt.Sprintf("%d values in %d documents in this run", r.Values, r.Documents)
	if all > r.Documents {
		what += fmt.Sprintf(", at least %d documents in all runs", all)
	}
	return what + ", and possibly documents of the batches in progress; no others"
}
