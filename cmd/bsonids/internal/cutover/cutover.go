// Package cutover puts new collections in the place of others while services run. A validator that
// refuses everything fences both the old and the new collection. Behind it, they are compared until
// they agree. Then each collection is renamed away, what changed until then is applied, and the new one
// is renamed in. Either all collections of a cutover are exchanged, or none.
//
// Every step is in the record before it is taken, and which of them were taken is read from the names
// of the collections. The same steps can therefore be taken again after the process was killed:
//
//	NAME  KEPT  NEW
//	old   -     new   the old collection is in place
//	-     old   new   between the two renames; NAME may be a collection that another program created
//	new   old   -     the new collection is in place
package cutover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// The errors of a [Database], by which it says that a collection cannot be renamed.
var (
	ErrExists  = errors.New("a collection with the new name exists")
	ErrMissing = errors.New("the collection does not exist")
)

// Info is what the server says about a collection.
type Info struct {
	ID       *bson.Binary // nil if the server reports none
	Settings record.Settings
}

// Changes is the outcome of a comparison.
type Changes struct {
	Documents, Inserted, Replaced, Deleted int64
	// Stuck is the number of documents that cannot be brought to agree, and Why describes one.
	Stuck int64
	Why   string
}

func (c Changes) none() bool { return c.Inserted+c.Replaced+c.Deleted == 0 }

// Way is the direction of an exchange.
type Way struct {
	*record.Exchange
	Back bool // from the new collection to the old one
}

// Away returns the name that the collection in place gets, and Comes that of the one that takes its
// place.
func (w Way) Away() string {
	if w.Back {
		return w.New
	}
	return w.Kept
}

// Comes returns the name of the collection that takes the place of the other.
func (w Way) Comes() string {
	if w.Back {
		return w.Kept
	}
	return w.New
}

// Database is what a cutover does to a database. Each method can be called again after an error.
type Database interface {
	// Save writes the document of the cutover to the record.
	Save(ctx context.Context, c *record.Cutover) error
	// Look returns all collections.
	Look(ctx context.Context) (map[string]Info, error)
	// Set changes the settings of a collection.
	Set(ctx context.Context, name string, s record.Settings) error
	// Rename renames a collection. The error wraps ErrExists or ErrMissing.
	Rename(ctx context.Context, from, to string) error
	// Stamp returns the current operation time, or zero if the server has none, and the time of the
	// server.
	Stamp(ctx context.Context) (bson.Timestamp, time.Time, error)
	// Compare compares all documents of the collection in place with those of the other one, and
	// changes the other one where they differ.
	Compare(ctx context.Context, w Way) (Changes, error)
	// Drain does the same with the documents that may have changed from w.Since until now. It may do
	// nothing, because CatchUp comes after it.
	Drain(ctx context.Context, w Way) (Changes, error)
	// CatchUp does the same, after the collection in place was renamed, with the documents that may
	// have changed since w.Since.
	CatchUp(ctx context.Context, w Way) (Changes, error)
	// Merge inserts the documents of a collection that another program created into the one in place,
	// and returns how many there are and how many conflict with others.
	Merge(ctx context.Context, w Way, from string) (documents, conflicts int64, err error)
	// KeepsIDs reports whether a renamed collection keeps its UUID.
	KeepsIDs(ctx context.Context) (bool, error)
}

// Fence returns the settings with which a server refuses every document.
func Fence() record.Settings {
	nothing, err := bson.Marshal(bson.D{{Key: "$nor", Value: bson.A{bson.D{}}}})
	if err != nil {
		panic(err)
	}
	return record.Settings{Validator: nothing, Level: "strict", Action: "error"}
}

// Cutover is the cutover of one group of collections. It is not safe for concurrent use.
type Cutover struct {
	*record.Cutover
	DB Database
	// Notice is called with what the user should know.
	Notice func(text string)

	keeps *bool // whether the server keeps UUIDs; nil if it is not known
}

// A FailedError is the error of a cutover that was rolled back.
type FailedError struct{ Err error }

func (e *FailedError) Error() string { return e.Err.Error() }

// Unwrap returns why the cutover failed.
func (e *FailedError) Unwrap() error { return e.Err }

func fail(format string, args ...any) error { return failure.Usagef(format, args...) }

// Run carries out the cutover, or continues it. If it fails for a reason that the same command would
// meet again, it rolls back and returns a [FailedError].
func (c *Cutover) Run(ctx context.Context) error {
	err := c.forward(ctx)
	if err == nil || !final(err) || c.State == record.RollingBack {
		return err
	}
	if back := c.RollBack(ctx, err.Error()); back != nil {
		return errors.Join(err, back)
	}
	return &FailedError{err}
}

// final reports whether the same command would fail again.
func final(err error) bool {
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !failure.Transient(err) &&
		!errors.Is(err, record.ErrTakenOver) && !errors.Is(err, errLost)
}

func (c *Cutover) forward(ctx context.Context) error {
	switch c.State {
	case record.Fencing:
		if err := c.prepare(ctx); err != nil {
			return err
		}
	case record.Switching:
	case record.Switched:
		return nil
	default:
		return fail("the cutover is in the state %q", c.State)
	}
	for i := range c.Collections {
		if err := ctx.Err(); err != nil {
			return err
		}
		// An interrupt does not leave a name without a collection.
		if err := c.exchange(context.WithoutCancel(ctx), Way{&c.Collections[i], false}); err != nil {
			return err
		}
	}
	return c.to(ctx, record.Switched)
}

func (c *Cutover) to(ctx context.Context, state string) error {
	was := c.State
	c.State = state
	err := c.DB.Save(context.WithoutCancel(ctx), c.Cutover)
	if err != nil {
		c.State = was
	}
	return err
}

func (c *Cutover) save(ctx context.Context) error { return c.DB.Save(ctx, c.Cutover) }

// prepare fences the collections and compares them until they agree.
func (c *Cutover) prepare(ctx context.Context) error {
	if c.Token == "" {
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	all, err := c.DB.Look(ctx)
	if err != nil {
		return err
	}
	changed := false
	for i := range c.Collections {
		x := &c.Collections[i]
		if at, err := c.position(ctx, all, x); err != nil {
			return err
		} else if at != origin {
			return c.lost(x)
		}
		for name, had := range map[string]*record.Settings{x.Name: &x.OldHad, x.New: &x.NewHad} {
			if now := all[name].Settings; !now.Equal(Fence()) && !now.Equal(*had) {
				*had, changed = now, true // somebody changed them before the fence was set
			}
		}
	}
	if changed {
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	for i := range c.Collections {
		for _, name := range []string{c.Collections[i].Name, c.Collections[i].New} {
			if !all[name].Settings.Equal(Fence()) {
				if err := c.DB.Set(ctx, name, Fence()); err != nil {
					return err
				}
			}
		}
	}
	for i := range c.Collections {
		if err := c.agree(ctx, Way{&c.Collections[i], false}); err != nil {
			return err
		}
	}
	return c.to(ctx, record.Switching)
}

// maxPasses is the maximum number of complete comparisons. Programs that bypass validation may change
// something during each.
const maxPasses = 5

// margin is how much earlier than the operation time of a server a change stream begins: a server may
// make a write visible after one with a later operation time.
const margin = 10

// agree compares the two collections until they agree. What changes meanwhile is found later, by the
// change stream.
func (c *Cutover) agree(ctx context.Context, w Way) error {
	var last Changes
	for pass := 0; ; pass++ {
		since, _, err := c.DB.Stamp(ctx)
		if err != nil {
			return err
		}
		w.Since = bson.Timestamp{}
		if since.T > margin {
			w.Since = bson.Timestamp{T: since.T - margin}
		}
		if last, err = c.DB.Compare(ctx, w); err != nil {
			return err
		}
		w.count(last)
		w.Compared.Documents = last.Documents
		if last.none() || pass == maxPasses {
			break
		}
	}
	if last.Stuck > 0 && !w.Back {
		return fail("%d documents of %s and %s cannot be brought to agree: %s", last.Stuck, w.Name, w.New, last.Why)
	}
	w.stuck(c, last)
	return nil
}

func (w Way) count(done Changes) {
	w.Compared.Inserted += done.Inserted
	w.Compared.Replaced += done.Replaced
	w.Compared.Deleted += done.Deleted
}

// stuck says which changes to the new collection are not in the old one. They stay in the new one.
func (w Way) stuck(c *Cutover, done Changes) {
	if done.Stuck > 0 {
		w.Compared.Stuck = done.Stuck
		c.Notice(fmt.Sprintf("%d documents that were changed in the new collection of %s are not in the old one, only in %s: %s", done.Stuck, w.Name, w.New, done.Why))
	}
}

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

// Positions returns the names of the collections of the cutover that are exchanged.
func (c *Cutover) Positions(ctx context.Context) (exchanged []string, err error) {
	all, err := c.DB.Look(ctx)
	if err != nil {
		return nil, err
	}
	for i := range c.Collections {
		at, err := c.position(ctx, all, &c.Collections[i])
		if err != nil {
			return nil, err
		}
		if at == in {
			exchanged = append(exchanged, c.Collections[i].Name)
		}
	}
	return exchanged, nil
}

// Release restores the settings of the new collections, and gives up an undo. It returns the names of those that it left as
// they are, because another program changed their settings.
func (c *Cutover) Release(ctx context.Context) (left []string, err error) {
	if c.State != record.Switched && c.State != record.Releasing && c.State != record.Undoing {
		return nil, fail("the cutover of %v is in the state %q, and has nothing to release", c.Names(), c.State)
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
	case record.Fencing, record.Switching, record.RollingBack:
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
	for _, i := range slices.Backward(seq(len(c.Collections))) {
		if err := c.exchange(ctx, Way{&c.Collections[i], true}); err != nil {
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
