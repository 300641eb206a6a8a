package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

func newReleaseCommand(c *console) *cobra.Command {
	o := &switchFlags{console: c}
	cmd := &cobra.Command{
		Use:   "release {PLAN | COLLECTION...}",
		Short: "Let services write to the collections that a cutover has put in place",
		Long: `release restores the validator, the level and the action that the new collections
of a cutover had before it, so that the server accepts writes again. Switch the
services to the new representation before. Without --write it changes nothing.
With a plan, it releases every group of collections that bsonids cutover has put
in place.

The old collections stay, with a validator that refuses everything, until you drop
them. release prints the commands for mongosh.`,
		Example: `  bsonids release plan.yaml --write
  bsonids release --db shop orders customers
  bsonids release --db shop orders customers --write`,
		Args: o.namesOrPlan,
		RunE: runE(o.runRelease),
	}
	o.add(cmd, "restore the validators")
	return cmd
}

func (o *switchFlags) runRelease(ctx context.Context, args []string) error {
	groups, err := o.groups(args)
	if err != nil {
		return err
	}
	o.about(o.database)
	client, err := o.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.load.begin(o.console)
	db := client.Database(o.database)
	if groups, err = o.waiting(ctx, db, groups, false, record.Switched, record.Releasing, record.Undoing); err == nil {
		err = o.each(groups, func(g exchanged) error { return o.release(ctx, db, g.names) })
	}
	return explainSwitch(err, o.connectionString())
}

func (o *switchFlags) release(ctx context.Context, db *mongo.Database, names []string) (err error) {
	find := func() (c *record.Cutover, err error) {
		err = o.load.patience.Do(ctx, func() (err error) {
			c, err = record.CutoverOf(ctx, db, names...)
			return err
		})
		switch {
		case err != nil:
		case c == nil:
			err = failure.Usagef("no cutover of %s waits for its release", strings.Join(names, ", "))
		case !sameNames(c.Names(), names):
			err = failure.Usagef("the cutover has other collections: %s; they are released together", strings.Join(c.Names(), ", "))
		case c.State != record.Switched && c.State != record.Releasing && c.State != record.Undoing:
			err = failure.Usagef("the cutover of %s is in the state %q; finish it with bsonids cutover", strings.Join(names, ", "), c.State)
		}
		return c, err
	}
	c, err := find()
	if err != nil {
		return err
	}
	r := report.Release{Database: o.database, Cutover: c, Written: o.write}
	if o.write {
		l, err := o.lock(ctx, db, c, record.Switch)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.end(err)) }()
		if c, err = find(); err != nil {
			return err
		}
		r.Cutover = c
		on := o.server(db, l, nil, 1)
		defer on.Close()
		x := &cutover.Cutover{Cutover: c, DB: on, Notice: func(text string) { o.warn("%s", text) }}
		if r.Left, err = x.Release(ctx); err != nil {
			o.wayOn = &wayOn{changed: "possibly the validators of some of the collections", again: true}
			return err
		}
	}
	if o.output.value == formatJSON {
		err = report.ReleaseJSON(o.out, r)
	} else {
		report.WriteRelease(o.out, r)
	}
	if err == nil && len(r.Left) > 0 {
		err = failure.ErrIncomplete
	}
	return err
}
