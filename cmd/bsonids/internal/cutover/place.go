package cutover

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// place is where the old and the new collection are.
type place int

const (
	origin  place = iota // the old collection is in place
	between              // neither is
	in                   // the new collection is in place
)

// errLost is wrapped by the error about collections that are not where the cutover has put them.
var errLost = errors.New("collections are not where the cutover has put them")

func (c *Cutover) lost(x *record.Exchange) error {
	return &failure.Error{Kind: failure.Failed, Err: errLost, Text: fmt.Sprintf("of %s, %s and %s, collections are missing, or another program renamed, dropped or created one of them; "+
		"the cutover has put the old collection at %s or %s, and the new one at %s or %s", x.Name, x.New, x.Kept, x.Name, x.Kept, x.New, x.Name)}
}

// inPlace returns all collections. The error says that the cutover has not begun with those that are
// there, or has renamed one: the place of each should be at.
func (c *Cutover) inPlace(ctx context.Context, at place) (map[string]Info, error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return nil, err
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		if is, err := c.position(ctx, all, x); err != nil {
			return nil, err
		} else if is != at || at == in && (other(all[x.Kept], x.OldID) || other(all[x.Name], x.NewID)) {
			return nil, c.lost(x)
		}
	}
	return all, nil
}

// other reports whether a collection is another one than that with the UUID. Those of collections in place are noted after
// the last rename, which may change them.
func other(is Info, id *bson.Binary) bool { return is.ID != nil && id != nil && !is.ID.Equal(*id) }

// where returns all collections, and where those of an exchange are.
func (c *Cutover) where(ctx context.Context, x *record.Exchange) (map[string]Info, place, error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return nil, origin, err
	}
	at, err := c.position(ctx, all, x)
	return all, at, err
}

// position returns where the collections are, and checks their UUIDs.
func (c *Cutover) position(ctx context.Context, all map[string]Info, x *record.Exchange) (place, error) {
	_, hasName := all[x.Name]
	_, hasNew := all[x.New]
	_, hasKept := all[x.Kept]
	at, old, fresh := origin, x.Name, x.New
	switch {
	case hasNew && hasKept:
		at, old = between, x.Kept
	case hasName && hasKept:
		at, old, fresh = in, x.Kept, x.Name
	case hasName && c.State == record.RollingBack && x.OldID != nil && all[x.Name].ID != nil && x.OldID.Equal(*all[x.Name].ID):
		return at, nil // whatever became of the copy, the old collection only has a fence
	case !hasName || !hasNew:
		return at, c.lost(x)
	}
	// A collection in place that was not renamed shows that another program created the one at Kept.
	if id := all[x.Name].ID; at == between && id != nil && (x.OldID != nil && id.Equal(*x.OldID) || x.NewID != nil && id.Equal(*x.NewID)) {
		return at, c.lost(x)
	}
	for name, id := range map[string]*bson.Binary{old: x.OldID, fresh: x.NewID} {
		if is := all[name].ID; id == nil || is == nil || id.Equal(*is) {
			continue
		}
		if c.keeps == nil {
			keeps, err := c.DB.KeepsIDs(ctx)
			if err != nil {
				return at, err
			}
			c.keeps = &keeps
		}
		if *c.keeps {
			return at, c.lost(x)
		}
	}
	return at, nil
}
