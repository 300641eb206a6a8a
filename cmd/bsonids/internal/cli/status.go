package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

type statusVerb struct {
	*console
	database  string
	state     *plan.State // nil without a directory
	checksums bool
}

func (o *statusVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [DIR]",
		Short: "Show how far conversions have come",
		Long: `status shows the conversions of a database: how many documents they have read,
changed and skipped, how fast they are, and how long they still take.

It reads the record that conversions write to the database every two seconds,
and therefore shows runs on other machines, too. With the directory of a
migration, it shows the conversions of its plan, also those that have not begun. If
an undo log in DIR is missing or cut off, or if the record lacks its run, status says so
after everything else, and the exit code is 1. With --checksums, it reads the logs whole,
and also finds what is damaged, as verify, undo and a dry run of apply always do.

It also shows whether apply and undo are paused, and how many documents they write
per second at most: see bsonids apply --help.

It also shows the cutovers that have not ended, and those whose collections are
fenced until bsonids release, with the command that goes on.

status changes nothing.`,
		Example: `  bsonids status --db shop
  bsonids status shop.d --checksums
  bsonids status shop.d --output json`,
		Args: arguments(0, 1),
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON)
	cmd.Flags().StringVar(&o.database, "db", "", "database; that of the plan with DIR")
	cmd.Flags().BoolVar(&o.checksums, "checksums", false, "with DIR: read the undo logs whole, and compare their checksums with the record, not their sizes alone")
	return cmd
}

func (o *statusVerb) complete() (err error) {
	switch {
	case o.checksums && len(o.args) == 0:
		return failure.Usagef("--checksums is for the undo logs in the directory of a migration")
	case (len(o.args) == 1) == (o.database != ""):
		return failure.Usagef("give either the directory of a migration or --db")
	case len(o.args) == 1:
		if o.state, err = plan.Look(o.args[0]); err != nil {
			return failure.Usagef("%v", err)
		}
		o.database = o.state.Plan.Database
	case !server.ValidDatabase(o.database):
		return failure.Usagef("--db %q is not a valid database name", o.database)
	}
	return nil
}

func (o *statusVerb) run(ctx context.Context) (err error) {
	r := migrate.Status{Time: time.Now().UTC(), Cutovers: []migrate.CutoverStatus{}}
	if o.state != nil && o.state.Plan.Dump != nil {
		r.Steps, err = migrate.StatusOfPlan(o.state)
	} else {
		r, err = o.recorded(ctx)
	}
	if err != nil {
		return err
	}
	r.Database = o.database
	if o.state != nil {
		r.Steering = plan.SteeringOf(o.state.Dir())
		r.Paused = r.Steering.Paused()
		if r.Limit, err = r.Steering.Limit(); err != nil {
			o.Warn("%v", err)
		}
	}
	if err := o.print(report.Status(r), true); err != nil || len(r.Faults) == 0 {
		return err
	}
	return &failure.Error{Kind: failure.Failed, Text: "undo logs are not whole, or of runs that the record lacks: undo and verify name what is missing"}
}

// recorded returns what the record says, with the next command for each cutover.
func (o *statusVerb) recorded(ctx context.Context) (r migrate.Status, err error) {
	o.retryFor = 0 // a person waits
	s, err := o.session(ctx, server.Read)
	if err != nil {
		return r, err
	}
	r, err = migrate.StatusOfRecord(ctx, s, o.database, o.state, o.checksums)
	for i := range r.Cutovers {
		c := &r.Cutovers[i]
		verb, flags := "cutover", []string(nil)
		switch c.State {
		case record.Switched, record.Releasing:
			verb = "release"
		case record.RollingBack:
			flags = []string{"--roll-back"}
		}
		of := o.state
		if of != nil && !slices.Contains(of.Conversions(), c.Maker) {
			of = nil
		}
		c.Next = o.switching(verb, of, o.database, c.ID, flags...)
	}
	return r, err
}
