package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// exchange puts the other collection of the first way in place, from wherever the collections are. The
// others are exchanged after it.
func (c *Cutover) exchange(ctx context.Context, ways []Way) error {
	w := ways[0]
	_, at, err := c.where(ctx, w.Exchange)
	if err != nil {
		return err
	}
	if at != w.end() || w.LeftAt != nil && w.InAt == nil {
		if err := c.away(ctx, ways); err != nil {
			return err
		}
		if err := c.bringIn(ctx, ways); err != nil {
			return err
		}
	}
	return c.merge(ctx, w)
}

// away renames the collection in place away.
func (c *Cutover) away(ctx context.Context, ways []Way) error {
	w := ways[0]
	for range 10 {
		_, at, err := c.where(ctx, w.Exchange)
		if err != nil || at != w.start() {
			return err
		}
		// The less is left for the time between the renames, the shorter it is.
		if c.Stream != nil {
			if err := c.settle(ctx, ways); err != nil {
				return err
			}
		}
		if w.LeftAt == nil {
			if err := c.clock(ctx, &w.LeftAt); err != nil {
				return err
			}
			if err := c.save(ctx); err != nil {
				return err
			}
		}
		// If the answer to an earlier attempt was lost, there is nothing to rename any more.
		if err := c.DB.Rename(ctx, w.Name, w.Away()); err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrMissing) {
			return err
		}
	}
	return c.lost(w.Exchange)
}

// bringIn applies what changed until the collection in place was renamed away, and renames the other
// one in.
func (c *Cutover) bringIn(ctx context.Context, ways []Way) error {
	w := ways[0]
	all, at, err := c.where(ctx, w.Exchange)
	if err != nil {
		return err
	}
	if at == between {
		if err := c.fence(ctx, all, w.Away(), w.Comes()); err != nil {
			return err
		}
		// On the way back, a new collection that was not in place is a copy, which nobody changed.
		if w.Back == w.Exchange.Back {
			renamed := slices.Clone(ways)
			renamed[0].Renamed = true
			if err := c.settle(ctx, renamed); err != nil {
				return err
			}
		}
	}
	for try := 0; at == between; try++ {
		if try == 100 {
			return fail("other programs keep creating a collection %s", w.Name)
		}
		if err := c.DB.Rename(ctx, w.Comes(), w.Name); err == nil {
			break
		} else if !errors.Is(err, ErrExists) && !errors.Is(err, ErrMissing) {
			return err
		}
		if at, err = c.aside(ctx, w); err != nil {
			return err
		}
	}
	return c.arrived(ctx, w)
}

// aside renames a collection aside that another program created in place. It returns where the
// collections are.
func (c *Cutover) aside(ctx context.Context, w Way) (place, error) {
	all, at, err := c.where(ctx, w.Exchange)
	if err != nil || at != between {
		return at, err
	}
	if _, ok := all[w.Name]; !ok {
		return at, nil
	}
	var to string
	for _, b := range w.Between {
		if _, ok := all[b.Name]; !ok && !b.Merged {
			to = b.Name // the rename did not take place
		}
	}
	for n := 1; to == ""; n++ {
		to = fmt.Sprintf("%s_between_%d", w.Name, n)
		if _, ok := all[to]; ok {
			to = ""
			continue
		}
		w.Between = append(w.Between, record.Between{Name: to})
		if err := c.save(ctx); err != nil {
			return at, err
		}
	}
	err = c.DB.Rename(ctx, w.Name, to)
	if errors.Is(err, ErrExists) || errors.Is(err, ErrMissing) {
		err = nil // the next attempt sees why
	}
	if err == nil {
		c.Notice(fmt.Sprintf("another program created %s between the two renames; the collection is now %s", w.Name, to))
	}
	return at, err
}

// arrived fences the collection in place, if the server dropped the fence when it was renamed, and
// notes how long there was none.
func (c *Cutover) arrived(ctx context.Context, w Way) error {
	renamed := time.Now()
	all, at, err := c.where(ctx, w.Exchange)
	if err != nil {
		return err
	}
	if at != w.end() {
		return c.lost(w.Exchange)
	}
	if w.KeptID = nil; !w.Back {
		w.KeptID = all[w.Kept].ID
	}
	if !all[w.Name].Settings.Equal(Fence()) {
		if err := c.fence(ctx, all, w.Name); err != nil {
			return err
		}
		w.Unfenced += max(1, time.Since(renamed).Milliseconds())
		c.Notice(fmt.Sprintf("the server dropped the fence of %s when the collection was renamed; it had none for %d milliseconds, and is fenced again", w.Name, w.Unfenced))
	}
	if w.InAt != nil || w.LeftAt == nil {
		return nil
	}
	if err := c.clock(ctx, &w.InAt); err != nil {
		return err
	}
	return c.save(ctx)
}

// merge inserts what other programs wrote between the two renames into the collection in place. The old collection gets it,
// too, so that the two agree.
func (c *Cutover) merge(ctx context.Context, w Way) error {
	if len(w.Between) == 0 {
		return nil
	}
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	for i := range w.Between {
		b := &w.Between[i]
		if _, ok := all[b.Name]; !ok || b.Merged {
			continue
		}
		if !w.Back {
			if _, _, err := c.DB.Merge(ctx, w, b.Name, w.Kept); err != nil {
				return err
			}
		}
		documents, conflicts, err := c.DB.Merge(ctx, w, b.Name, w.Name)
		if err != nil {
			return err
		}
		b.Merged, b.Documents, b.Conflicts = true, documents, conflicts
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	return nil
}
