package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type guardOptions struct {
	*console
	conversionFlags
	load          loadFlags
	output        *enum
	level         enum
	write, remove bool
	unordered     bool
}

func newGuardCommand(c *console) *cobra.Command {
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
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.output = outputFlag(cmd, formatTable, formatJSON)
	o.conversionFlags.add(cmd)
	_ = cmd.Flags().SetAnnotation("from", cobra.BashCompOneRequiredFlag, []string{"false"}) // not with --remove
	c.completeNames(cmd, func() []string { return []string{o.database} })
	f := cmd.Flags()
	f.Lookup("field").Usage = "path of a field to guard, as scan prints it; by default, all fields of the conversion"
	f.BoolVar(&o.write, "write", false, "change the validator")
	f.Var(&o.level, "level", "level of the validator: moderate, strict; by default, moderate, or that of the guard that is set")
	completeWords(cmd, "level", false, o.level.words...)
	f.BoolVar(&o.remove, "remove", false, "restore the validator, the level and the action that the collection had before")
	f.BoolVar(&o.unordered, "confirm-unordered", false, "set the validator although the server does not order binary values as MongoDB does")
	o.load.add(cmd, false)
	for _, other := range []string{"level", "from", "to", "field", "confirm-unordered"} {
		cmd.MarkFlagsMutuallyExclusive("remove", other)
	}
	return cmd
}

func (o *guardOptions) run(ctx context.Context, _ []string) error {
	if err := o.load.check(); err != nil {
		return err
	}
	if err := o.collectionNames(); err != nil {
		return err
	}
	if o.collection == record.Name {
		return failure.Usagef("cannot guard %s, the record of conversions", record.Name)
	}
	var conv convert.Conversion
	if !o.remove {
		var err error
		if conv, err = o.guardedConversion(); err != nil {
			return err
		}
	}
	o.about(o.database + "." + o.collection)
	client, err := o.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.load.begin(o.console)
	coll := client.Database(o.database).Collection(o.collection)
	version, _ := build()
	var g *guard.Guard
	err = o.again(ctx, func() (err error) {
		if g, err = guard.Open(ctx, coll, version); err != nil {
			return err
		}
		return fenced(ctx, coll.Database(), coll.Name())
	})
	if err != nil {
		return o.explain(err)
	}
	begun := false
	g.Begun = func() { begun = true }
	g.Notice = func(text string) { o.warn("%s", text) }
	if o.remove {
		err = o.removeGuard(ctx, g)
	} else {
		err = o.setGuard(ctx, g, coll, conv)
	}
	if err != nil && !errors.Is(err, failure.ErrIncomplete) && begun {
		o.wayOn = &wayOn{changed: fmt.Sprintf("possibly the validator, the level and the action of %s.%s, and the record; no documents", o.database, o.collection),
			back: o.removal(), again: curable(err) && !errors.Is(err, guard.ErrChanged)}
	}
	return o.explain(err)
}

func (o *guardOptions) again(ctx context.Context, f func() error) error {
	return o.load.patience.Do(ctx, f)
}

// collectionNames returns a usage error if --db or --collection is invalid.
func (o *guardOptions) collectionNames() error {
	switch {
	case !validDatabase(o.database):
		return failure.Usagef("--db: invalid database name %q", o.database)
	case !validCollection(o.collection):
		return failure.Usagef("--collection: invalid collection name %q", o.collection)
	}
	return nil
}

// guardedConversion returns the conversion that the flags describe. The error is a usage error.
func (o *guardOptions) guardedConversion() (convert.Conversion, error) {
	if o.from.Name == "" {
		return convert.Conversion{}, failure.Usagef("--from is required")
	}
	if o.from.Form == kinds.Struct {
		return convert.Conversion{}, failure.Usagef("--from goStruct: the values in the documents are guarded, not the documents: give --from generic --field %s.uuid", cmp.Or(strings.Join(o.fields, ".uuid,"), "FIELD"))
	}
	conv, _, err := o.conversion()
	switch {
	case err != nil:
		return conv, err
	case conv.SameSubtype():
		return conv, failure.Usagef("from %s to %s, the old and the new values have subtype %d: a validator cannot distinguish them", conv.From.Name, conv.To.Name, conv.From.Subtype)
	}
	return conv, nil
}

// removal returns the command that removes the guard.
func (o *guardOptions) removal() string {
	return commandLine(append([]string{"bsonids", "guard", "--db", o.database, "--collection", o.collection, "--remove", "--write"}, o.serverArgs()...))
}

// explain adds what to do to an error of the package guard.
func (o *guardOptions) explain(err error) error {
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

func (o *guardOptions) removeGuard(ctx context.Context, g *guard.Guard) error {
	var r guard.Removed
	err := o.again(ctx, func() (err error) {
		if o.write {
			r, err = g.Remove(ctx)
		} else {
			r, err = g.Removal()
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		err = report.GuardRemovedJSON(o.out, o.database+"."+o.collection, o.write, r)
	} else {
		report.WriteGuardRemoved(o.out, o.database+"."+o.collection, o.write, r)
	}
	if err == nil && o.write && !r.Restored {
		err = failure.ErrIncomplete
	}
	return err
}

// setGuard sets the validator, or finds what it would set.
func (o *guardOptions) setGuard(ctx context.Context, g *guard.Guard, coll *mongo.Collection, conv convert.Conversion) error {
	fields, err := o.guardFields(ctx, g, coll, conv)
	if err != nil {
		return err
	}
	if err := g.Differs(fields, conv.From); err != nil {
		return err
	}
	_, saved, isSet := g.Saved()
	strict := o.level.value == guard.Strict || o.level.value == "" && isSet && saved == guard.Strict
	if err := o.mayOrder(ctx, coll, fields, conv); err != nil {
		return err
	}
	r := report.Guard{Database: o.database, Collection: o.collection, From: conv.From, Fields: fields, Write: o.write, Before: g.Before(),
		Now: g.Proposed(fields, conv.From), Strict: strict, Remove: o.removal()}
	o.warnOfValidator(r.Before, strict)
	pass := func() (found guard.Found, err error) {
		err = o.again(ctx, func() (err error) {
			total, err := coll.EstimatedDocumentCount(ctx)
			if err != nil {
				return err
			}
			bar := o.progress(total, "checking", o.database+"."+o.collection)
			defer bar.Done()
			found, err = g.Pass(ctx, fields, conv.From, bar.Add)
			return err
		})
		r.Passes = append(r.Passes, found)
		return found, err
	}
	set := func(level string) error { return o.again(ctx, func() error { return g.SetLevel(ctx, level) }) }

	// A pass before level strict proves something only if the validator is set before it.
	if o.write && strict {
		if err := o.again(ctx, func() error { return g.Set(ctx, fields, conv.From) }); err != nil {
			return err
		}
	}
	found, err := pass()
	if err != nil {
		return err
	}
	if err := untested(found); err != nil && !strict {
		return err
	}
	var others int64
	if strict {
		if err := o.again(ctx, func() (err error) { others, err = g.Others(ctx); return err }); err != nil {
			return err
		}
	}
	r.Stays = stays(found, others, strict)
	switch {
	case !o.write:
	case !strict:
		if err = o.again(ctx, func() error { return g.Set(ctx, fields, conv.From) }); err == nil && o.level.value != "" {
			err = set(o.level.value)
		}
	case r.Stays != "":
		err = set(guard.Moderate)
	default:
		if err = set(guard.Strict); err != nil {
			break
		}
		if found, err = pass(); err != nil {
			break
		}
		if r.Stays = stays(found, 0, true); r.Stays != "" {
			r.Stays += ", written in spite of the validator"
			err = set(guard.Moderate)
		}
	}
	if err != nil {
		return err
	}
	if o.write {
		r.Now = g.Proposed(fields, conv.From)
	} else {
		r.Now.Level = guard.Moderate
		if strict && r.Stays == "" {
			r.Now.Level = guard.Strict
		}
	}
	r.Shell = guard.Shell(coll, r.Now)
	if o.output.value == formatJSON {
		err = report.GuardJSON(o.out, r)
	} else {
		report.WriteGuard(o.out, r)
	}
	if err == nil && r.Stays != "" {
		err = failure.ErrIncomplete
	}
	return err
}

// stays returns why the level cannot be strict, or "" if it can.
func stays(found guard.Found, others int64, strict bool) string {
	var reasons []string
	if found.Old > 0 {
		reasons = append(reasons, fmt.Sprintf("%d old values are left in %d documents", found.Old, found.Documents))
	}
	if len(found.Untested) > 0 {
		reasons = append(reasons, "old values are left in arrays in arrays ("+strings.Join(slices.Sorted(maps.Keys(found.Untested)), ", ")+")")
	}
	if found.Corrupt > 0 {
		reasons = append(reasons, fmt.Sprintf("%d documents are not valid BSON", found.Corrupt))
	}
	if others > 0 {
		reasons = append(reasons, fmt.Sprintf("the collection's own validator, which is at level moderate, refuses %d documents, and strict would apply it to them", others))
	}
	if !strict {
		return ""
	}
	return strings.Join(reasons, "; ")
}

// untested returns a usage error if the validator does not test old values in the guarded fields.
func untested(found guard.Found) error {
	if len(found.Untested) == 0 {
		return nil
	}
	return failure.Usagef("cannot guard %s: arrays in arrays; a validator tests only the elements of the outer ones", strings.Join(slices.Sorted(maps.Keys(found.Untested)), ", "))
}

// mayOrder returns a usage error if the server does not apply the validator as MongoDB does.
func (o *guardOptions) mayOrder(ctx context.Context, coll *mongo.Collection, fields []guard.Field, conv convert.Conversion) error {
	var ordered bool
	err := o.again(ctx, func() (err error) {
		ordered, err = guard.Ordered(ctx, coll, fields[0], conv.From)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("asking the server how it applies the validator: %w", err)
	case ordered:
		return nil
	}
	why := "the server does not order binary values as MongoDB does (by length, subtype, then bytes)"
	if !conv.From.IsBinary() {
		why = "the server does not apply regular expressions, or types, as MongoDB does"
	}
	if o.write && !o.unordered {
		return failure.Usagef("%s: the validator would accept old values or refuse new ones of %s.%s; --confirm-unordered sets it nevertheless", why, o.database, o.collection)
	}
	o.warn("%s: there, the validator accepts old values or refuses new ones", why)
	return nil
}

// warnOfValidator says what a guard means for the collection's own validator.
func (o *guardOptions) warnOfValidator(before guard.Settings, strict bool) {
	switch own, enforced := guard.Own(before); {
	case own && !enforced:
		o.warn("the validator of %s.%s has level %s and action %s, so that it refuses nothing; the guard replaces it until it is removed", o.database, o.collection, before.Level, before.Action)
	case own && before.Level == guard.Strict && !strict:
		o.warn("the validator of %s.%s has level strict; at level moderate, it does not apply to updates of documents that have an old value or that it refuses", o.database, o.collection)
	}
}
