package cutover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// MayRelease returns a usage error if the cutover has nothing to release, or if documents were written in spite of the fence
// or conflict with others, unless that is accepted.
func (c *Cutover) MayRelease() error {
	switch n := c.Conflicts(); {
	case c.State == record.Releasing:
	case c.State != record.Switched:
		return fail("the cutover of %v is in the state %q, and has nothing to release", c.Names(), c.State)
	case n > 0 && !c.Accept:
		return fail("%d documents were written to the new collections of %s in spite of the fence, or conflict with others: look at them, and give --allow-changed to release the collections as they are",
			n, strings.Join(c.Names(), ", "))
	}
	return nil
}

// Release restores the settings of the new collections. It returns the names of those that it left as
// they are, because another program changed their settings. The old collections can't be put back any more from then on.
func (c *Cutover) Release(ctx context.Context) (left []string, err error) {
	if err := c.MayRelease(); err != nil {
		return nil, err
	}
	if err := c.to(ctx, record.Releasing); err != nil {
		return nil, err
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

// ErrWritten is wrapped by the error of [Cutover.PutBack] about documents that a roll-back would leave in new collections.
var ErrWritten = errors.New("documents were written in spite of the fence")

// maxNamed is the number of such documents of a collection that are named in notices.
const maxNamed = 20

// PutBack rolls the cutover back on request. It changes nothing and returns an error if documents were inserted or changed in
// new collections in place, unless they are accepted.
func (c *Cutover) PutBack(ctx context.Context, reason string) error {
	if c.State == record.Switched {
		if _, err := c.inPlace(ctx, in); err != nil {
			return err
		}
		for i := range c.Collections {
			c.Collections[i].Compared = record.Compared{}
		}
	}
	if (c.State == record.Switching || c.State == record.Switched) && !c.Accept {
		ways, err := c.placed(ctx)
		if err != nil {
			return err
		}
		var n int64
		for _, w := range ways {
			w.Dry = true
			done, err := c.DB.Compare(ctx, w)
			if err != nil {
				return err
			}
			n += done.Stays
			for _, f := range done.Stuck[:min(len(done.Stuck), maxNamed)] {
				c.Notice(fmt.Sprintf("%s: _id %s: %s", w.Name, f.ID, f.Reason))
			}
		}
		if n > 0 {
			return &failure.Error{Kind: failure.Usage, Err: ErrWritten, Text: fmt.Sprintf("%d documents were inserted or changed in the new collections of %s in spite of the fence, and the old ones do not have them: "+
				"look at them, and give --allow-changed to put the old collections back without them; nothing was exchanged", n, strings.Join(c.Names(), ", "))}
		}
	}
	return c.RollBack(ctx, reason)
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

// placed returns the ways back of the new collections that are in place, and were not compared to be put back.
func (c *Cutover) placed(ctx context.Context) (ways []Way, err error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range c.ways(true, false) {
		at, err := c.position(ctx, all, w.Exchange)
		if err != nil {
			return nil, err
		}
		if at == in && !w.Exchange.Back {
			ways = append(ways, w)
		}
	}
	return ways, nil
}

// turn deletes from the old collections what was deleted from new ones that are in place. From then on, the new collections
// are the next to be renamed away.
func (c *Cutover) turn(ctx context.Context) error {
	ways, err := c.placed(ctx)
	if err != nil || len(ways) == 0 {
		return err
	}
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	for _, w := range ways {
		if err := c.fence(ctx, all, w.Name, w.Comes()); err != nil {
			return err
		}
	}
	c.forget("the new collections were in place")
	if err := c.settle(ctx, ways); err != nil {
		return err
	}
	for _, w := range ways {
		w.Exchange.Back, w.LeftAt, w.InAt = true, nil, nil
	}
	return c.save(ctx)
}
