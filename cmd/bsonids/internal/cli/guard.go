package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/protect"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type guardOptions struct {
	*console
	conversionFlags
	load   loadFlags
	output *enum
	level  enum
	remove bool
	work   protect.Options
}

func newGuardCommand(c *console, run func(*guardOptions, context.Context) error) *cobra.Command {
	o := &guardOptions{console: c, level: enum{words: []string{guard.Moderate, guard.Strict}}}
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Refuse values of the old subtype while a collection is converted in place",
		Long: `guard sets a validator with which the server refuses documents that have a value
of the old subtype, 16 bytes long, in the fields of a conversion, or with --from
text, text that is a UUID. Without --write it changes nothing, and prints the
validator and the command for mongosh.

  1. bsonids guard --write         level moderate: documents that have an old
                                   value can still be updated
  2. bsonids convert --write       in place
  3. bsonids guard --level strict --write
                                   if a pass over all documents finds no old
                                   value, and then a second pass
  4. bsonids guard --remove --write

The fields are those of --field, or else those of the guard that is set, or else
those that the last conversion converts, or else those that convert would convert.
_id, map keys and arrays in arrays cannot be guarded, and a conversion within one
subtype cannot, either.

The validator of the collection stays in force. It, its level and its action are
saved in bsonids.migrations, and --remove restores them. If another program has
changed them since, guard says so and leaves them as they are.

The server must order binary values as MongoDB does. guard asks it. FerretDB 1 has
no validators.

The exit code is 3 if the guard stays at level moderate.`,
		Example: `  bsonids guard --db shop --collection orders --from javaLegacy
  bsonids guard --db shop --collection orders --from javaLegacy --field customer --write
  bsonids guard --db shop --collection orders --from javaLegacy --level strict --write
  bsonids guard --db shop --collection orders --remove --write`,
		Args: cobra.NoArgs,
		RunE: runWith(o, run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	_ = cmd.Flags().SetAnnotation("from", cobra.BashCompOneRequiredFlag, []string{"false"}) // not with --remove
	c.completeNames(cmd, func() []string { return []string{o.database} })
	f := cmd.Flags()
	f.Lookup("field").Usage = "path of a field to guard, as scan prints it; by default, all fields of the conversion"
	f.BoolVar(&o.work.Write, "write", false, "change the validator")
	f.Var(&o.level, "level", "level of the validator: moderate, strict; by default, moderate, or that of the guard that is set")
	completeWords(cmd, "level", false, o.level.words...)
	f.BoolVar(&o.remove, "remove", false, "restore the validator, the level and the action that the collection had before")
	f.BoolVar(&o.work.Unordered, "confirm-unordered", false, "set the validator although the server does not order binary values as MongoDB does")
	o.load.add(cmd, false)
	for _, other := range []string{"level", "from", "to", "field", "confirm-unordered"} {
		cmd.MarkFlagsMutuallyExclusive("remove", other)
	}
	return cmd
}

func (o *guardOptions) complete([]string) (err error) {
	if err := o.load.check(); err != nil {
		return err
	}
	if err := o.collectionNames(); err != nil {
		return err
	}
	if o.collection == record.Name {
		return failure.Usagef("cannot guard %s, the record of conversions", record.Name)
	}
	if !o.remove {
		o.work.Described, err = o.guardedConversion()
		o.work.Level = o.level.value
	}
	return err
}

func (o *guardOptions) run(ctx context.Context) error {
	s, end, err := o.session(ctx, server.Write, o.load, migration.Recording{})
	if err != nil {
		return err
	}
	defer end()
	var begun bool
	if o.remove {
		begun, err = o.removeGuard(ctx, s)
	} else {
		begun, err = o.setGuard(ctx, s)
	}
	if err != nil && !errors.Is(err, failure.ErrIncomplete) && begun {
		o.wayOn = &wayOn{changed: fmt.Sprintf("possibly the validator, the level and the action of %s.%s, and the record; no documents", o.database, o.collection),
			back: o.removal(), again: curable(o.explain(err)) && !errors.Is(err, guard.ErrChanged)}
	}
	return o.explainGuard(err)
}

// collectionNames returns a usage error if --db or --collection is invalid.
func (o *guardOptions) collectionNames() error {
	switch {
	case !migration.ValidDatabase(o.database):
		return failure.Usagef("--db: invalid database name %q", o.database)
	case !migration.ValidCollection(o.collection):
		return failure.Usagef("--collection: invalid collection name %q", o.collection)
	}
	return nil
}

// guardedConversion returns the conversion that the flags describe. The error is a usage error.
func (o *guardOptions) guardedConversion() (d migration.Described, err error) {
	if o.from.Name == "" {
		return d, failure.Usagef("--from is required")
	}
	if o.from.Form == kinds.Struct {
		return d, failure.Usagef("--from goStruct: the values in the documents are guarded, not the documents: give --from generic --field %s.uuid", cmp.Or(strings.Join(o.fields, ".uuid,"), "FIELD"))
	}
	d, err = migration.Describe(o.identity())
	if conv := d.Conversion; err == nil && conv.SameSubtype() {
		err = failure.Usagef("%s: a validator cannot distinguish them", conv.Alike())
	}
	return d, err
}

// removal returns the command that removes the guard.
func (o *guardOptions) removal() string {
	return o.command("guard", "--db", o.database, "--collection", o.collection, "--remove", "--write")
}

// explainGuard adds what to do to an error of the package guard.
func (o *guardOptions) explainGuard(err error) error {
	var e *guard.Error
	if err == nil || errors.Is(err, failure.ErrIncomplete) {
		return err
	}
	if !errors.As(err, &e) {
		if x := failure.Explain(err, o.connectionString()); x.Kind == failure.Denied {
			return &failure.Error{Kind: x.Kind, Text: x.Text + "; a guard needs collMod on the collection, and find, insert, update and remove on " + record.Name, Err: err}
		}
		return err
	}
	text := e.Text
	switch {
	case errors.Is(e, guard.ErrOther):
		text += "; to guard other fields, remove the guard first: " + o.removal()
	case errors.Is(e, guard.ErrBusy):
		text += "; to finish that, run " + o.removal()
	case errors.Is(e, guard.ErrNone):
		text += "; bsonids guard --write sets one"
	}
	if e.Restore != nil {
		text += "; before the guard, it had " + guard.Describe(*e.Restore)
	}
	kind := failure.Usage
	if errors.Is(e, guard.ErrChanged) || errors.Is(e, guard.ErrBusy) {
		kind = failure.Failed
		if errors.Is(e, guard.ErrChanged) && !o.remove {
			text += "; --remove ends the guard and leaves the validator as it is"
		}
	}
	return &failure.Error{Kind: kind, Text: text, Err: err}
}

func (o *guardOptions) removeGuard(ctx context.Context, s *migration.Session) (begun bool, err error) {
	var r guard.Removed
	r, begun, err = protect.Remove(ctx, s, o.database, o.collection, o.work.Write)
	if err != nil {
		return begun, err
	}
	if o.output.value == formatJSON {
		err = report.GuardRemovedJSON(o.out, o.database+"."+o.collection, o.work.Write, r)
	} else {
		report.WriteGuardRemoved(o.out, o.database+"."+o.collection, o.work.Write, r)
	}
	if err == nil && o.work.Write && !r.Restored {
		err = failure.ErrIncomplete
	}
	return begun, err
}

func (o *guardOptions) setGuard(ctx context.Context, s *migration.Session) (begun bool, err error) {
	var r report.Guard
	r, begun, err = protect.Set(ctx, s, o.work)
	if err != nil {
		return begun, err
	}
	r.Remove = o.removal()
	if o.output.value == formatJSON {
		err = report.GuardJSON(o.out, r)
	} else {
		report.WriteGuard(o.out, r)
	}
	if err == nil && r.Stays != "" {
		err = failure.ErrIncomplete
	}
	return begun, err
}
