package cutover

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Undo takes back a cutover that was released, or continues to. While services write to the new
// collections, it brings what was changed in them to the old ones. Then it fences the new collections
// again, does the same with what changed meanwhile, and puts the old ones back, as a roll-back does. If
// the old values of a document cannot be known, it restores the settings of the new collections and
// returns an error.
func (c *Cutover) Undo(ctx context.Context) error {
	switch c.State {
	case record.Released:
		if err := c.beginUndo(ctx); err != nil {
			return err
		}
	case record.Undoing:
	case record.RollingBack:
		return c.RollBack(ctx, c.Reason)
	default:
		return fail("the cutover of %v is in the state %q, and cannot be undone", c.Names(), c.State)
	}
	if err := c.bringBack(ctx); err != nil {
		if !errors.Is(err, errStuck) {
			return err
		}
		if _, err := c.Release(ctx); err != nil {
			return err
		}
		return fail("%v; nothing was exchanged", err)
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		x.Back, x.Left, x.LeftAt, x.InAt = true, bson.Timestamp{}, nil, nil
	}
	c.Reason = "undone after its release"
	if err := c.to(ctx, record.RollingBack); err != nil {
		return err
	}
	return c.RollBack(ctx, c.Reason)
}

// beginUndo forgets what the cutover has compared.
func (c *Cutover) beginUndo(ctx context.Context) error {
	all, err := c.inPlace(ctx, in)
	if err != nil {
		return err
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		x.Compared, x.Between, x.Unfenced = record.Compared{}, nil, 0
		x.Checked, x.After = false, nil
		// Where a rename changes UUIDs, the new ones show later that these are the same collections.
		x.OldID, x.NewID = all[x.Kept].ID, all[x.Name].ID
	}
	c.Stream, c.Untracked, c.Untouched = nil, "", true
	c.FencedAt, c.InPlaceAt, c.FreedAt = nil, nil, nil
	return c.to(ctx, record.Undoing)
}

// bringBack brings what was changed in the new collections to the old ones, and fences both.
func (c *Cutover) bringBack(ctx context.Context) error {
	if c.Untouched {
		if err := c.ahead(ctx); err != nil {
			return err
		}
	}
	all, err := c.inPlace(ctx, in)
	if err != nil {
		return err
	}
	if err := c.fence(ctx, all); err != nil {
		return err
	}
	return c.behind(ctx)
}
