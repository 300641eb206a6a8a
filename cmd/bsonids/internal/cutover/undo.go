package cutover

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Undo takes back a cutover that was released, or continues to. It fences the new collections again,
// brings what was changed in them since to the old ones, and puts the old ones back, as a roll-back
// does. If the old values of a document cannot be known, it restores the settings of the new
// collections and returns an error.
func (c *Cutover) Undo(ctx context.Context) error {
	switch c.State {
	case record.Released, record.Undoing:
	case record.RollingBack:
		return c.RollBack(ctx, c.Reason)
	default:
		return fail("the cutover of %v is in the state %q, and cannot be undone", c.Names(), c.State)
	}
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		if at, err := c.position(ctx, all, x); err != nil {
			return err
		} else if at != in {
			return c.lost(x)
		}
		if now := all[x.Name].Settings; !now.Equal(Fence()) {
			x.NewHad = now
		}
		x.Compared, x.Between, x.Unfenced = record.Compared{}, nil, 0
	}
	if c.State == record.Released {
		if err := c.clock(ctx, &c.FencedAt); err != nil {
			return err
		}
		c.InPlaceAt, c.FreedAt = nil, nil
	}
	if err := c.to(ctx, record.Undoing); err != nil {
		return err
	}
	for i := range c.Collections {
		for _, name := range []string{c.Collections[i].Name, c.Collections[i].Kept} {
			if !all[name].Settings.Equal(Fence()) {
				if err := c.DB.Set(ctx, name, Fence()); err != nil {
					return err
				}
			}
		}
	}
	for i := range c.Collections {
		w := Way{Exchange: &c.Collections[i], Back: true}
		for pass := 0; pass < maxPasses; pass++ {
			done, err := c.DB.Compare(ctx, w)
			if err != nil {
				return err
			}
			if done.Stuck > 0 {
				if _, err := c.Release(ctx); err != nil {
					return err
				}
				return fail("the old values of %d documents of %s cannot be known: %s; nothing was exchanged", done.Stuck, w.Name, done.Why)
			}
			w.count(done)
			w.Compared.Documents = done.Documents
			if done.none() {
				break
			}
		}
	}
	c.Reason = "undone after its release"
	if err := c.to(ctx, record.RollingBack); err != nil {
		return err
	}
	return c.RollBack(ctx, c.Reason)
}
