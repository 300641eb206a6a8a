package cli

import (
	"context"

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
	load     loadFlags
	database string
	to       kindFlag
}

func newPlanCommand(c *console) *cobra.Command {
	o := &planOptions{console: c}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Write a plan to convert all collections of a database",
		Long: `plan reads every document of every collection of a database and writes a plan
to stdout, a YAML file for you to review and edit. It changes nothing.

The plan has every field with UUIDs, with the evidence and a decision: convert
from a representation, leave, or unknown. It also has the references between
collections, found by equal values, the order of the work, the files that
bsonids apply writes, and how long it took to read everything. A plan with a
decision that is unknown cannot be applied. UUIDs in text, and the documents of Go structs, are
left: edit the decision to convert them, or to convert binary values to text.`,
		Example: `  bsonids plan --db shop > plan.yaml
  bsonids apply plan.yaml --state-dir shop.state`,
		Args: cobra.NoArgs,
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

func (o *planOptions) run(ctx context.Context, _ []string) error {
	if err := o.load.check(); err != nil {
		return err
	}
	if !migration.ValidDatabase(o.database) {
		return failure.Usagef("--db %q is not a valid database name", o.database)
	}
	if _, err := rule.NewConversion(kinds.Kind{}, o.to.Kind, nil); err != nil {
		return failure.Usagef("--to %s: %v", o.to.Name, err)
	}
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
	if err := plan.Write(o.out, p); err != nil {
		return err
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
		o.Warn("the decision about %d fields is unknown: edit the plan before you apply it", unknown)
	}
	return nil
}
