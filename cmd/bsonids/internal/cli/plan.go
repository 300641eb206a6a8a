package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type planOptions struct {
	*console
	load          loadFlags
	dir, database string
	to            kindFlag
}

func newPlanCommand(c *console) *cobra.Command {
	o := &planOptions{console: c}
	cmd := &cobra.Command{
		Use:   "plan DIR",
		Short: "Write a plan to convert all collections of a database",
		Long: `plan makes the directory DIR of a migration, reads every document of every collection
of a database, and writes a plan to DIR/plan.yaml, for you to review and edit. It
changes nothing in the database. DIR must be new or empty.

The plan has every field with UUIDs, with the evidence and a decision: convert
from a representation, leave, or unknown. It also has the references between
collections, found by equal values, the order of the work, the files that
bsonids apply writes, and how long it took to read everything. A plan with a
decision that is unknown cannot be applied. UUIDs in text, and the documents of Go structs, are
left: edit the decision to convert them, or to convert binary values to text.`,
		Example: `  bsonids plan shop.d --db shop
  bsonids apply shop.d`,
		Args: cobra.ExactArgs(1),
		RunE: runE(o.run),
	}
	serverFlags(cmd, c)
	o.to.Kind, _ = kinds.Parse(kinds.Standard)
	f := cmd.Flags()
	f.StringVar(&o.database, "db", "", "database")
	c.completeNames(cmd, func() []string { return []string{o.database} })
	f.Var(&o.to, "to", "target representation: "+kinds.List(kinds.Where(func(k kinds.Kind) bool { return k.Target && k.IsBinary() })))
	o.load.add(cmd, false)
	_ = cmd.MarkFlagRequired("db") // the flag exists
	return cmd
}

func (o *planOptions) run(ctx context.Context, args []string) (err error) {
	o.dir = args[0]
	if err := o.load.check(); err != nil {
		return err
	}
	if !migration.ValidDatabase(o.database) {
		return failure.Usagef("--db %q is not a valid database name", o.database)
	}
	if _, err := rule.NewConversion(kinds.Kind{}, o.to.Kind, nil); err != nil {
		return failure.Usagef("--to %s: %v", o.to.Name, err)
	}
	d, err := plan.Create(o.dir)
	if err != nil {
		return migration.FileError(err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	s, end, err := o.session(ctx, server.Write, o.load, migration.Recording{}) // reads from the primary, as the conversion does
	if err != nil {
		return err
	}
	defer end()
	sv, err := s.SurveyAll(ctx, s.Client.Database(o.database))
	if err != nil {
		return err
	}
	p := plan.Build(sv, o.to.Kind)
	if err := d.WritePlan(p); err != nil {
		return migration.FileError(err)
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
		o.Warn("the decision about %d fields is unknown: edit %s before you apply it", unknown, filepath.Join(o.dir, plan.PlanFile))
	}
	return nil
}
