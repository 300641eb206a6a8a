package cutover

import (
	"bytes"
	"context"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Release restores the settings of the new collections, and gives up an undo. It returns the names of those that it left as
// they are, because another program changed their settings.
func (c *Cutover) Release(ctx context.Context) (left []string, err error) {
	if c.State != record.Switched && c.State != record.Releasing && c.State != record.Undoing {
		return nil, fail("the cutover of %v is in the state %q, and has nothing to release", c.Names(), c.State)
	}
	if err := c.to(ctx, record.Releasing); err != nil {
		return nil, err
	}
	if c.Untouched { // an undo that has fenced nothing
		return nil, c.to(ctx, record.Released)
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		ok, err := c.restore(ctx, x.Name, x.NewHad)
		if err != nil {
			return left, err
		}
		if !ok {
			left = append(left, x.Name)
		}
	}
	if err := c.clock(ctx, &c.FreedAt); err != nil {
		return left, err
	}
	return left, c.to(ctx, record.Released)
}

// restore restores settings that the fence has replaced. It reports false if another program has
// replaced the fence.
func (c *Cutover) restore(ctx context.Context, name string, had record.Settings) (bool, error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return false, err
	}
	info, ok := all[name]
	switch now := info.Settings; {
	case !ok:
		return true, nil // it was dropped
	case now.Equal(had):
		return true, nil
	case len(now.Validator) > 0 && !bytes.Equal(now.Validator, Fence().Validator):
		return false, nil
	}
	return true, c.DB.Set(ctx, name, had)
}

// RollBack puts the old collections back, and restores all settings. It continues a cutover that is
// being rolled back. The cutover must not be in the state [record.Switched] or later.
func (c *Cutover) RollBack(ctx context.Context, reason string) error {
	switch c.State {
	case record.RolledBack:
		return nil
	case record.Comparing, record.Fencing, record.Switching, record.RollingBack:
	default:
		return fail("every new collection of the cutover of %v is in place: it cannot be rolled back", c.Names())
	}
	ctx = context.WithoutCancel(ctx)
	if c.State != record.RollingBack {
		c.Reason = reason
		if err := c.to(ctx, record.RollingBack); err != nil {
			return err
		}
	}
	if c.Untouched {
		return c.to(ctx, record.RolledBack)
	}
	for _, i := range slices.Backward(seq(len(c.Collections))) {
		if err := c.exchange(ctx, Way{Exchange: &c.Collections[i], Back: true}); err != nil {
			return err
		}
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		for name, had := range map[string]record.Settings{x.Name: x.OldHad, x.New: x.NewHad} {
			ok, err := c.restore(ctx, name, had)
			if err != nil {
				return err
			}
			if !ok {
				c.Notice("another program changed the validator of " + name + ", and it is left as it is")
			}
		}
	}
	if err := c.clock(ctx, &c.FreedAt); err != nil {
		return err
	}
	// Where a rename changes UUIDs, the new ones show later that these are the same collections.
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		x.OldID, x.NewID = all[x.Name].ID, all[x.New].ID
	}
	return c.to(ctx, record.RolledBack)
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
