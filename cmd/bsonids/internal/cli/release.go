package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

func (o *switchVerb) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release {DIR | COLLECTION...}",
		Short: "Let services write to the collections of a cutover",
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
	}
}

// releaseGroup releases a group of collections, and prints how it ended.
func (o *switchVerb) releaseGroup(ctx context.Context, e *exchange.Exchange, names []string) error {
	r, err := e.Release(ctx, names)
	if r.Begun {
		o.wayOn = &wayOn{changed: "possibly the validators of some of the collections", again: true}
	}
	if err != nil {
		return err
	}
	return cmp.Or(o.print(report.Released{Cutover: r.Cutover}, len(r.Left) == 0), r.Denied)
}
