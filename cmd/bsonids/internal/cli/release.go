package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

func newReleaseCommand(c *console, run func(*switchOptions, context.Context) error) *cobra.Command {
	o := &switchOptions{console: c, release: true}
	cmd := &cobra.Command{
		Use:   "release {DIR | COLLECTION...}",
		Short: "Let services write to the collections that a cutover has put in place",
		Long: `release restores the validator, the level and the action that the new collections
of a cutover had before it, so that the server accepts writes again. Switch the
services to the new representation before. Without --write it changes nothing.
With the directory of a migration, it releases every group of collections that bsonids cutover has put
in place.

The old collections stay, with a validator that refuses everything, until you drop
them. release prints the commands for mongosh.`,
		Example: `  bsonids release shop.d --write
  bsonids release --db shop orders customers
  bsonids release --db shop orders customers --write`,
		Args: o.namesOrDirectory,
		RunE: runWith(o, run),
	}
	o.add(cmd, "restore the validators")
	return cmd
}

// releaseGroup releases a group of collections, and prints how it ended.
func (o *switchOptions) releaseGroup(ctx context.Context, e *exchange.Exchange, names []string) error {
	r, err := e.Release(ctx, names)
	var begun *exchange.BegunError
	if errors.As(err, &begun) {
		o.wayOn = &wayOn{changed: "possibly the validators of some of the collections", again: true}
	}
	if err != nil {
		return err
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
