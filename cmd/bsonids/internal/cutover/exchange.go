package cutover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// exchange puts the other collection in place, from wherever the collections are.
func (c *Cutover) exchange(ctx context.Context, w Way) error {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	at, err := c.position(ctx, all, w.Exchange)
	if err != nil {
		return err
	}
	if at != w.end() || w.LeftAt != nil && w.InAt == nil {
		if err := c.away(ctx, w); err != nil {
			return err
		}
		if err := c.bringIn(ctx, w); err != nil {
			return err
		}
	}
	return c.merge(ctx, w)
}

// start returns the place from which a way begins, and end the one where it ends.
func (w Way) start() place {
	if w.Back {
		return in
	}
	return origin
}

func (w Way) end() place { return in - w.start() }

// away renames the collection in place away.
func (c *Cutover) away(ctx context.Context, w Way) error {
	for range 10 {
		all, err := c.DB.Look(ctx)
		if err != nil {
			return err
		}
		at, err := c.position(ctx, all, w.Exchange)
		if err != nil || at != w.start() {
			return err
		}
		if w.Back && !w.Exchange.Back {
			// What was changed in the new collection is brought to the old one.
			if err := c.agree(ctx, w); err != nil {
				return err
			}
			w.Exchange.Back, w.Left, w.LeftAt, w.InAt = true, bson.Timestamp{}, nil, nil
			if err := c.save(ctx); err != nil {
				return err
			}
		}
		// The less is left for the time between the renames, the shorter it is.
		done, err := c.DB.Drain(ctx, w)
		if err != nil {
			return err
		}
		w.count(done)
		if w.LeftAt == nil {
			stamp, now, err := c.DB.Stamp(ctx)
			if err != nil {
				return err
			}
			w.Left, w.LeftAt = stamp, &now
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
func (c *Cutover) bringIn(ctx context.Context, w Way) error {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	at, err := c.position(ctx, all, w.Exchange)
	if err != nil {
		return err
	}
	if at == between {
		for _, name := range []string{w.Away(), w.Comes()} {
			if !all[name].Settings.Equal(Fence()) {
				if err := c.DB.Set(ctx, name, Fence()); err != nil {
					return err
				}
			}
		}
		// On the way back, a new collection that was not in place is a copy, which nobody changed.
		if w.Back == w.Exchange.Back {
			done, err := c.DB.CatchUp(ctx, w)
			if err != nil {
				return err
			}
			w.count(done)
			w.Compared.Late += done.Documents
			if done.Stays > 0 && !w.Back {
				return fail("%d documents of %s and %s cannot be brought to agree: %s", done.Stays, w.Kept, w.New, done.Why())
			}
			w.stuck(c, done)
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
	all, err := c.DB.Look(ctx)
	if err != nil {
		return between, err
	}
	at, err := c.position(ctx, all, w.Exchange)
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
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	at, err := c.position(ctx, all, w.Exchange)
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
		if err := c.DB.Set(ctx, w.Name, Fence()); err != nil {
			return err
		}
		w.Unfenced += max(1, time.Since(renamed).Milliseconds())
		c.Notice(fmt.Sprintf("the server dropped the fence of %s when the collection was renamed; it had none for %d milliseconds, and is fenced again", w.Name, w.Unfenced))
	}
	if w.InAt != nil || w.LeftAt == nil {
		return nil
	}
	_, now, err := c.DB.Stamp(ctx)
	if err != nil {
		return err
	}
	w.InAt, w.Gap = &now, now.Sub(*w.LeftAt).Milliseconds()
	return c.save(ctx)
}

// merge inserts what other programs wrote between the two renames into the collection in place.
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
		documents, conflicts, err := c.DB.Merge(ctx, w, b.Name)
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
