package cutover

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
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
	if c.Untouched() { // an undo that has fenced nothing
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
	return left, c.arrive(ctx, &c.FreedAt, inNew, record.Released)
}

// restore restores settings that the fence has replaced. It reports false if another program has
// replaced the fence.
func (c *Cutover) restore(ctx context.Context, name string, had server.Settings) (bool, error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return false, err
	}
	info, ok := all[name]
	switch now := info.Settings; {
	case !ok:
		return true, nil // it was dropped
	case now.Equal(had) && !info.Doubt:
		return true, nil
	case len(now.Validator) > 0 && !bytes.Equal(now.Validator, Fence().Validator):
		return false, nil
	}
	return true, c.DB.Set(ctx, name, had)
}

// RollBack puts the old collections back, and restores all settings. It continues a cutover that is
// being rolled back. The fence of the cutover must not be released.
func (c *Cutover) RollBack(ctx context.Context, reason string) error {
	switch c.State {
	case record.RolledBack:
		return nil
	case record.Comparing, record.Fencing, record.Switching, record.Switched, record.RollingBack:
	default:
		return fail("the cutover of %v is in the state %q: it cannot be rolled back", c.Names(), c.State)
	}
	ctx = context.WithoutCancel(ctx)
	if c.State != record.RollingBack {
		c.Reason = reason
		if err := c.to(ctx, record.RollingBack); err != nil {
			return err
		}
	}
	if c.Untouched() {
		return c.to(ctx, record.RolledBack)
	}
	if err := c.turn(ctx); err != nil {
		return err
	}
	ways := c.ways(true, false)
	for i, w := range ways {
		// What was not in place is a copy, which nobody changed.
		after := slices.DeleteFunc(slices.Clone(ways[i+1:]), func(w Way) bool { return !w.Exchange.Back })
		if err := c.exchange(ctx, append([]Way{w}, after...)); err != nil {
			return err
		}
	}
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		for name, had := range map[string]server.Settings{x.Name: x.OldHad, x.New: x.NewHad} {
			if name == x.New && !other(all[x.Name], x.OldID) && other(all[x.New], x.NewID) {
				continue // no rename has changed the UUID: another program has made the collection
			}
			ok, err := c.restore(ctx, name, had)
			if err != nil {
				return err
			}
			if !ok {
				c.Notice("another program changed the validator of " + name + ", and it is left as it is")
			}
		}
	}
	return c.arrive(ctx, &c.FreedAt, func(x *record.Exchange) (old, fresh string) { return x.Name, x.New }, record.RolledBack)
}

// inNew returns the names of the collections when the new one is in place.
func inNew(x *record.Exchange) (old, fresh string) { return x.Kept, x.Name }

// arrive sets t to the time of the server, notes the UUIDs of the collections, which at returns the names of, and changes
// the state.
func (c *Cutover) arrive(ctx context.Context, t **time.Time, at func(*record.Exchange) (old, fresh string), state string) error {
	if err := c.clock(ctx, t); err != nil {
		return err
	}
	all, err := c.DB.Look(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	c.known(all, at)
	return c.to(ctx, state)
}

// known notes the UUIDs of the collections, which at returns the names of. Where a rename changes UUIDs, the new ones show
// later that these are the same collections.
func (c *Cutover) known(all map[string]Info, at func(*record.Exchange) (old, fresh string)) {
	for i := range c.Collections {
		x := &c.Collections[i]
		old, fresh := at(x)
		if is, ok := all[old]; ok {
			x.OldID = is.ID
		}
		if is, ok := all[fresh]; ok {
			x.NewID = is.ID
		}
	}
}

// turn brings what was changed in new collections that are in place to the old ones.
func (c *Cutover) turn(ctx context.Context) error {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	var ways []Way
	for _, w := range c.ways(true, false) {
		at, err := c.position(ctx, all, w.Exchange)
		if err != nil {
			return err
		}
		if at == in && !w.Exchange.Back {
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		return nil
	}
	c.forget("the new collections were in place")
	if err := c.settle(ctx, ways); err != nil {
		return err
	}
	turned(ways)
	return c.save(ctx)
}

// turned notes that the new collections were compared, and are the next to be renamed away.
func turned(ways []Way) {
	for _, w := range ways {
		w.Exchange.Back, w.LeftAt, w.InAt = true, nil, nil
	}
}

// Undo puts the old collections back, in whatever state the cutover is, or continues to. While it is
// fenced, that is a roll-back. After the release, while services write to the new collections, it brings what
// was changed in them to the old ones. Then it fences the new collections again, does the same with what
// changed meanwhile, and puts the old ones back, as a roll-back does. If the old values of a document cannot
// be known, it restores the settings of the new collections and returns an error.
func (c *Cutover) Undo(ctx context.Context) error {
	switch c.State {
	case record.Releasing:
		if _, err := c.Release(ctx); err != nil {
			return err
		}
		fallthrough
	case record.Released:
		if err := c.beginUndo(ctx); err != nil {
			return err
		}
	case record.Undoing:
	case record.Switched:
		if _, err := c.inPlace(ctx, in); err != nil {
			return err
		}
		for i := range c.Collections {
			c.Collections[i].Compared = record.Compared{}
		}
		fallthrough
	default:
		return c.RollBack(ctx, "undone before its release")
	}
	var err error
	if c.Untouched() {
		err = c.ahead(ctx)
	}
	ways := c.ways(true, false)
	if err == nil {
		err = c.prepare(ctx, ways)
	}
	if errors.Is(err, errStuck) {
		if _, err := c.Release(ctx); err != nil {
			return err
		}
		return fail("%v; nothing was exchanged", err)
	}
	if err != nil {
		return err
	}
	turned(ways)
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
		x.Compared, x.Between, x.Unfenced, x.Checked = record.Compared{}, nil, 0, false
	}
	c.known(all, inNew)
	c.Stream, c.Untracked = nil, ""
	c.FencedAt, c.InPlaceAt, c.FreedAt = nil, nil, nil
	return c.to(ctx, record.Undoing)
}
