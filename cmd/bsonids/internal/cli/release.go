package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/exchange"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/protect"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

func (o *switchVerb) releaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release {DIR | COLLECTION...}",
		Short: "Let services write to the collections of a cutover, or remove guards",
		Long: `release restores the validator, the level and the action that the new collections
of a cutover had before it, so that the server accepts writes again. Switch the
services to the new representation before. Without --write it changes nothing.
With the directory of a migration, it releases every group of collections that bsonids cutover has put
in place.

The old collections stay, with a validator that refuses everything, until you drop
them. release prints the commands for mongosh.

With --guards, it removes the guards of collections that were converted in place: it
restores the validator, the level and the action that they had before. These are in
bsonids.migrations, so that the directory is not needed. If another program has
changed the validator since, it stays as it is, and the exit code is 3.`,
		Example: `  bsonids release shop.d --write
  bsonids release --db shop orders customers
  bsonids release --db shop orders customers --write
  bsonids release shop.d --guards --write`,
		Args: o.namesOrDirectory,
	}
	cmd.Flags().BoolVar(&o.guards, "guards", false, "let go of the guards of the collections that a plan converts in place, instead of a cutover")
	return cmd
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
	return o.print(report.Released{Cutover: r.Cutover}, len(r.Left) == 0)
}

// releaseGuards removes the guards of the collections, and prints how each ended.
func (o *switchVerb) releaseGuards(ctx context.Context, s *migration.Session) error {
	left := false
	for _, name := range o.groups[0].Names {
		r, err := protect.Remove(ctx, s, o.work.Database, name, o.work.Write, func() {
			o.wayOn = &wayOn{changed: "possibly the validators of some of the collections, and the record; no documents", again: true}
		})
		if none := errors.Is(err, protect.ErrNone); none && o.state != nil {
			continue // it was not set, or was removed
		}
		if err != nil {
			if errors.Is(err, guard.ErrChanged) && o.wayOn != nil {
				o.wayOn.again = false
			}
			return &migration.CollectionError{Collection: name, Err: err}
		}
		if err := o.print(r, true); err != nil {
			return err
		}
		left = left || r.Written && !r.Restored
	}
	if left {
		return failure.ErrIncomplete
	}
	return nil
}
