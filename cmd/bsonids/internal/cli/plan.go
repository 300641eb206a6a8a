package cli

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

type planVerb struct {
	*console
	collections   []string // to plan; or one, of a dump that is one BSON file
	dir, database string
	givenUp       string           // the id of a migration
	write         bool             // that it is given up
	server        *session.Session // nil for a dump
}

func (o *planVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan DIR",
		Short: "Write a plan to convert collections of a database or a dump",
		Long: `plan makes the directory DIR of a migration, reads every document of every collection
of a database, and writes a plan to DIR/plan.yaml, for you to review and edit. It
changes nothing in the database. If DIR has a plan, it is brought up to date: decisions,
comments and edits stay, what is new is added as unknown, and plan says what is gone.
While apply runs, the result is written to DIR/plan.new.yaml. Otherwise DIR must be new
or empty.

The plan has every field with UUIDs, with the evidence and a decision: convert
from a representation, leave, list, or unknown. It also has the references between
collections, found by equal values, the order of the work, the files that
bsonids apply writes, and how long it took to read everything. A plan with a
decision that is unknown cannot be applied. UUIDs in text, also in binary values, and
the documents of Go structs are left: edit the decision to convert them. Values of
subtype 3 or 4 that are no UUIDs are listed by each run, until you leave them.

plan also says how many documents would get the _id, or the value of a unique index,
that another one has or gets, and writes their pairs to DIR/duplicates.jsonl.

With --collection, the plan has these collections only. A random sample of each other
one is searched for equal values. A reference to one of them is in the plan, too, and the
plan cannot be applied while only one end would be converted: add the collection with
bsonids plan DIR --collection NAME, or accept the reference in the plan.

If the directory of an earlier migration is lost, nothing can be undone, and a path that it
has converted values of cannot be converted from another representation. --give-up and
the id that bsonids status --db prints give it up: its values stay converted, and there
is no way back for them. Without --write, plan says what would be given up.

With --dump, plan reads a dump of mongodump instead of a server, with all its
databases or that of --db. DIR/evidence.json then has the evidence from which bsonids
apply --out converts the dump. A BSON file in a pipe needs --db and --collection.`,
		Example: `  bsonids plan shop.d --db shop
  bsonids apply shop.d
  bsonids plan orders.d --db shop --collection orders --collection invoices
  bsonids plan new.d --db shop --give-up 7f3b0a5c12de4f01 --write
  bsonids plan dump.d --dump dump/
  bsonids apply dump.d --out dump-standard/`,
		Args: arguments(1),
	}
	o.serverFlags(cmd)
	o.retryFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.database, "db", "", "database")
	o.dumpFlag(cmd)
	f.StringVar(&o.givenUp, "give-up", "", "id of a migration whose directory is lost, as bsonids status --db prints it: what it has converted stays so")
	f.BoolVar(&o.write, "write", false, "with --give-up: record that the migration is given up")
	f.StringArrayVar(&o.collections, "collection", nil, "collection to plan, or of a BSON file of --dump; may be repeated")
	return cmd
}

func (o *planVerb) complete() (err error) {
	o.dir = o.args[0]
	if err := o.checkDump("db", "collection"); err != nil {
		return err
	}
	if o.write && o.givenUp == "" {
		return failure.Usagef("--write is for --give-up: plan changes nothing in the database")
	}
	switch bad := slices.IndexFunc(o.collections, func(name string) bool { return !server.ValidCollection(name) }); {
	case o.database != "" && !server.ValidDatabase(o.database):
		return failure.Usagef("--db %q is not a valid database name", o.database)
	case bad >= 0:
		return failure.Usagef("--collection %q is not a valid collection name", o.collections[bad])
	case o.dump != "" && len(o.collections) > 1:
		return failure.Usagef("--collection may be given once with --dump")
	case o.dump == "" && server.ServerDatabase(o.database):
		return failure.Usagef("--db: %s is a database of the server itself", o.database)
	}
	return nil
}

func (o *planVerb) run(ctx context.Context) (err error) {
	if files.Exists(filepath.Join(o.dir, plan.PlanFile)) {
		return o.update(ctx)
	}
	if o.database == "" && o.dump == "" {
		return failure.Usagef("required flag \"db\" not set, or --dump")
	}
	var in *dump.Input
	if o.dump != "" {
		if in, err = o.openDump(dump.Collection{Database: o.database, Name: strings.Join(o.collections, "")}); err != nil {
			return err
		}
	}
	d, err := plan.Create(o.dir)
	if err != nil {
		return files.FileError(err)
	}
	p, err := o.build(ctx, d, in)
	if err == nil {
		err = files.FileError(d.WritePlan(p))
	}
	if err != nil {
		return errors.Join(err, d.Discard())
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	o.count(p, plan.PlanFile)
	if o.server == nil { // of a dump
		return nil
	}
	return migrate.Lacks(ctx, o.server, p)
}

// count says how many decisions of the plan in the file are unknown, and which of the collections that were named
// it does not have.
func (o *planVerb) count(p *plan.Plan, file string) {
	for _, name := range o.collections {
		if p.Filters()[name] == nil && o.dump == "" {
			o.Warn("%q has no UUIDs: the plan does not list it", name)
		}
	}
	unknown := 0
	for _, c := range p.Collections {
		for _, f := range c.Fields {
			if f.Decision == plan.Unknown {
				unknown++
			}
		}
	}
	if unknown > 0 {
		o.Warn("the decision about %d fields is unknown: edit %s before you apply it", unknown, filepath.Join(o.dir, file))
	}
}

// update brings the plan of a directory up to date.
func (o *planVerb) update(ctx context.Context) (err error) {
	name := plan.PlanFile
	d, err := plan.Lock(o.dir)
	if errors.Is(err, files.ErrInUse) {
		name = plan.NewFile
		d, err = plan.Look(o.dir)
	}
	if err != nil {
		return files.FileError(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	p, err := plan.ReadFile(o.dir)
	if err != nil {
		return files.FileError(err)
	}
	switch {
	case p.Dump != nil || o.dump != "":
		return failure.Usagef("%s has a plan already, and that of a dump is not brought up to date: name another directory", o.dir)
	case o.database != "" && o.database != p.Database:
		return failure.Usagef("%s has a plan of the database %q: name another directory", o.dir, p.Database)
	case len(o.collections) > 0 && len(p.Only) == 0:
		return failure.Usagef("%s has a plan of all collections: run bsonids plan %s to bring it up to date", o.dir, o.dir)
	}
	s, err := o.session(ctx, server.Write)
	if err != nil {
		return err
	}
	if err := o.giveUp(ctx, s, p.Database); err != nil {
		return err
	}
	sv, err := o.survey(ctx, s, p.Database, p)
	if err != nil {
		return err
	}
	var failed error
	recorded, err := migrate.ReadRecord(ctx, s, p.Database)
	if err != nil && !failure.IsDenied(err) {
		return err
	}
	p, notes, err := d.Update(sv, name, o.collections, recorded.Begun(p), func(p *plan.Plan) error {
		failed = migrate.PlanDuplicates(ctx, s, sv, o.dir, p)
		return failed
	})
	if err != nil {
		return cmp.Or(failed, files.FileError(err))
	}
	for _, n := range notes {
		o.Warn("%s", n)
	}
	if err := o.unsharded(ctx, s, p); err != nil {
		return err
	}
	if name == plan.NewFile {
		o.Warn("%s is in use: the plan that is up to date is %s; compare it with %s", o.dir, filepath.Join(o.dir, name), plan.PlanFile)
	}
	o.count(p, name)
	return migrate.Lacks(ctx, s, p)
}

// giveUp gives a migration up whose directory is lost, if one is named.
func (o *planVerb) giveUp(ctx context.Context, s *session.Session, database string) error {
	if o.givenUp == "" {
		return nil
	}
	given, err := migrate.GiveUp(ctx, s, database, o.dir, o.givenUp, o.write)
	if given {
		o.wayOn = &wayOn{changed: "only the record: what it says above is given up", again: true}
	}
	return err
}

// build reads everything and returns the plan. in is nil for a server.
func (o *planVerb) build(ctx context.Context, d *plan.State, in *dump.Input) (*plan.Plan, error) {
	if in != nil {
		return migrate.PlanDump(ctx, o.console, d, in, o.database, strings.Join(o.collections, ""))
	}
	s, err := o.session(ctx, server.Write) // reads from the primary, as the conversion does
	if err != nil {
		return nil, err
	}
	o.server = s
	if err := o.giveUp(ctx, s, o.database); err != nil {
		return nil, err
	}
	sv, err := o.survey(ctx, s, o.database, &plan.Plan{})
	if err != nil {
		return nil, err
	}
	p := plan.Build(sv, nil)
	if err := migrate.PlanDuplicates(ctx, s, sv, o.dir, p); err != nil {
		return nil, err
	}
	return p, o.unsharded(ctx, s, p)
}

// unsharded warns of collections that are sharded and whose copies are not.
func (o *planVerb) unsharded(ctx context.Context, s *session.Session, p *plan.Plan) error {
	for _, c := range p.Collections {
		why, err := migrate.Unsharded(ctx, s, s.Client.Database(p.Database), c)
		if err != nil && !failure.IsDenied(err) { // apply asks again
			return err
		}
		if why != "" {
			o.Warn("%s; or accept with accepted: true beside into that bsonids cutover leaves it out", why)
		}
	}
	return nil
}

// survey reads the collections of a plan, which are those of only and --collection, or all. It samples others.
func (o *planVerb) survey(ctx context.Context, s *session.Session, database string, p *plan.Plan) (*survey.Survey, error) {
	only := p.Only
	for _, name := range o.collections {
		if !slices.Contains(only, name) {
			only = append(slices.Clone(only), name)
		}
	}
	return migrate.Survey(ctx, s, s.Client.Database(database), survey.Options{Only: only, Needed: o.collections, Sample: true}, p)
}
