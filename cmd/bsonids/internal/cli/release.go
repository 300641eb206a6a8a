package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

func (o *switchVerb) releaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release DIR | release --db DATABASE ID",
		Short: "Let services write to the collections of a cutover",
		Long: `release restores the validator, the level and the action that the new collections
of a cutover had before it, so that the server accepts writes again. Switch the
services to the new representation before. Without --write it changes nothing.
It releases every group of collections of the plan in DIR that bsonids cutover has
put in place.

The release is the point of no return: bsonids cutover --roll-back and bsonids undo put
the old collections back until then, and not after it. If cutover has counted
documents that conflict, or that were written in spite of its validator, release
needs --allow-changed. Given again, it says when the collections were released.

The old collections stay as they were, with a validator that refuses everything,
until you drop them. release prints the commands for mongosh.

If the directory is lost, give --db and the id that bsonids status --db prints.`,
		Example: `  bsonids release shop.d
  bsonids release shop.d --write
  bsonids release --db shop 7f3b0a5c12de --write`,
		Args: arguments(1),
	}
	cmd.Flags().BoolVar(&o.work.Accept, "allow-changed", false, "release collections with documents that conflict, or that were written in spite of the fence")
	return cmd
}

// releaseGroup releases a group of collections, and prints how it ended.
func (o *switchVerb) releaseGroup(ctx context.Context, e *cutover.Cutovers, g cutover.Group) error {
	r, err := e.Release(ctx, g)
	if r.Begun {
		o.wayOn = &wayOn{changed: "possibly the validators of some of the collections", again: true}
	}
	if err != nil {
		return err
	}
	return cmp.Or(o.print(report.Released(r), len(r.Left) == 0), r.Denied)
}
