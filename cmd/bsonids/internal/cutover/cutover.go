// Package cutover puts new collections in the place of others while services run. The old and the new
// collections are compared, while a change stream tells what changes meanwhile. A validator that refuses
// everything then fences both. Behind it, what has changed is compared until they agree. Then each collection
// is renamed away, what changed until then is applied, and the new one is renamed in. Either all collections of a cutover are exchanged, or none.
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
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// The errors of a [Database], by which it says that a collection cannot be renamed.
var (
	ErrExists  = errors.New("a collection with the new name exists")
	ErrMissing = errors.New("the collection does not exist")
)

// Info is what the server says about a collection.
type Info struct {
	ID       *bson.Binary // nil if the server reports none
	Settings server.Settings
	// Doubt is set if the server may still carry out an earlier change of the settings. One that is asked for then
	// is carried out after it.
	Doubt bool
}

// Way is the direction of an exchange, and how far it is.
type Way struct {
	*record.Exchange
	Back    bool // from the new collection to the old one
	Busy    bool // nothing is fenced
	Renamed bool // the collection in place was renamed away
	Dry     bool // nothing is changed by a comparison
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

// Leads returns the name of the collection that was in place when the exchange began.
func (w Way) Leads() string {
	if w.Renamed {
		return w.Away()
	}
	return w.Name
}

// start returns the place from which a way begins, and end the one where it ends.
func (w Way) start() place {
	if w.Back {
		return in
	}
	return origin
}

func (w Way) end() place { return in - w.start() }

// Database is what a cutover does to a database. Each method can be called again after an error.
type Database interface {
	// Save writes the document of the cutover to the record.
	Save(ctx context.Context, c *record.Cutover) error
	// Look returns all collections.
	Look(ctx context.Context) (map[string]Info, error)
	// Set changes the settings of a collection.
	Set(ctx context.Context, name string, s server.Settings) error
	// Rename renames a collection. The error wraps ErrExists or ErrMissing.
	Rename(ctx context.Context, from, to string) error
	// Stamp returns the current operation time, or zero if the server has none, and the time of the
	// server.
	Stamp(ctx context.Context) (bson.Timestamp, time.Time, error)
	// Position returns the current position of the change stream, or why there is none.
	Position(ctx context.Context) (at bson.Raw, why string, err error)
	// Next waits for a moment for changes of the collections of c, under each of their names, and of the
	// record, behind the position c.Stream.
	Next(ctx context.Context, c *record.Cutover) (changes.Batch, error)
	// Compare compares all documents of the collection that leads with those of the one that comes, and
	// changes this one where they differ. On the way back, it only deletes there what was deleted from the one that leads, and
	// what was inserted or changed in this one is stuck.
	Compare(ctx context.Context, w Way) (mirror.Result, error)
	// Some does the same with the documents of the collection that leads that have the ids, with those of
	// the one that comes that have the ids others, and with their counterparts.
	Some(ctx context.Context, w Way, ids, others []bson.RawValue) (mirror.Result, error)
	// Index makes what Some needs to find the counterparts of documents, unless it was made for Compare or before: it reads
	// the collection that leads.
	Index(ctx context.Context, w Way) error
	// Merge inserts the documents of a collection that another program created into the collection to, converted if that is
	// the new one, and returns how many there are and how many conflict with others.
	Merge(ctx context.Context, w Way, from, to string) (documents, conflicts int64, err error)
	// KeepsIDs reports whether a renamed collection keeps its UUID.
	KeepsIDs(ctx context.Context) (bool, error)
}

// Fence returns the settings with which a server refuses every document.
func Fence() server.Settings {
	nothing, err := bson.Marshal(bson.D{{Key: "$nor", Value: bson.A{bson.D{}}}})
	if err != nil {
		panic(err)
	}
	return server.Settings{Validator: nothing, Level: "strict", Action: "error"}
}

// Cutover is the cutover of one group of collections. It is not safe for concurrent use.
type Cutover struct {
	*record.Cutover
	DB Database
	// Notice is called with what the user should know.
	Notice func(text string)
	// BeforeFence checks, before the fence is set, what may have changed while the documents were
	// compared. It may be nil.
	BeforeFence func(ctx context.Context) error
	// Accept is set if documents that were written to a new collection in spite of the fence forbid neither its release nor
	// the way back.
	Accept bool

	keeps *bool // whether the server keeps UUIDs; nil if it is not known
}

// errStuck is wrapped by the error about documents that cannot be brought to agree.
var errStuck = errors.New("documents cannot be brought to agree")

func stuck(format string, args ...any) error {
	return &failure.Error{Kind: failure.Usage, Text: fmt.Sprintf(format, args...), Err: errStuck}
}

func fail(format string, args ...any) error { return failure.Usagef(format, args...) }

// Run carries out the cutover, or continues it. If it fails for a reason that the same command would
// meet again, it rolls back, and the state is then [record.RolledBack].
func (c *Cutover) Run(ctx context.Context) error {
	err := c.forward(ctx)
	gone := c.Untouched() && errors.Is(err, errLost)
	if err == nil || !final(err) && !gone || c.State == record.RollingBack {
		return err
	}
	return errors.Join(err, c.RollBack(ctx, err.Error()))
}

// final reports whether the same command would fail again, or whether to wait for that would refuse writes for too long.
func final(err error) bool {
	if e := (*failure.Error)(nil); errors.As(err, &e) && e.Kind == failure.Held {
		return true
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !failure.Transient(err) &&
		!errors.Is(err, record.ErrTakenOver) && !errors.Is(err, errLost)
}

func (c *Cutover) forward(ctx context.Context) error {
	if c.State == record.Fencing || c.State == record.Switching && !c.asked() {
		if err := c.lift(ctx); err != nil {
			return err
		}
	}
	if c.State == record.Comparing {
		if err := c.ahead(ctx); err != nil {
			return err
		}
		if c.BeforeFence != nil {
			if err := c.BeforeFence(ctx); err != nil {
				return err
			}
		}
		if err := c.to(ctx, record.Fencing); err != nil {
			return err
		}
		if err := c.prepare(ctx, c.ways(false, false)); err != nil {
			return err
		}
		if err := c.to(ctx, record.Switching); err != nil {
			return err
		}
	}
	switch c.State {
	case record.Switching:
	case record.Switched:
		return nil
	default:
		return fail("the cutover is in the state %q", c.State)
	}
	ways := c.ways(false, false)
	for i := range ways {
		if err := ctx.Err(); err != nil {
			return err
		}
		// An interrupt does not leave a name without a collection.
		if err := c.exchange(context.WithoutCancel(ctx), ways[i:]); err != nil {
			return err
		}
	}
	if err := c.inSpite(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return c.arrive(ctx, &c.InPlaceAt, inNew, record.Switched)
}

// asked reports whether the server was asked to rename a collection. It may do so later.
func (c *Cutover) asked() bool {
	return slices.ContainsFunc(c.Collections, func(x record.Exchange) bool { return x.LeftAt != nil })
}

// lift goes back to the state before the fence: an earlier run has set it and was stopped. This one must read all _ids before
// it can compare what changed since, and services write meanwhile. The position of the stream stays.
func (c *Cutover) lift(ctx context.Context) error {
	all, err := c.inPlace(ctx, origin)
	if err != nil {
		return err
	}
	if !c.Untouched() {
		c.Notice(fmt.Sprintf("an earlier run was stopped behind the fence of %s, which was set at %s UTC: services can write again until what has changed since is compared",
			strings.Join(c.Names(), ", "), c.FencedAt.UTC().Format(time.DateTime)))
	}
	for i := range c.Collections {
		x := &c.Collections[i]
		for _, of := range []struct {
			name string
			had  server.Settings
		}{{x.Name, x.OldHad}, {x.New, x.NewHad}} {
			if now := all[of.name].Settings; !bytes.Equal(now.Validator, Fence().Validator) {
				continue // it was stopped before this one, and somebody may have changed the settings
			}
			if _, err := c.restore(ctx, of.name, of.had); err != nil {
				return err
			}
		}
	}
	was := c.FencedAt
	c.FencedAt = nil // nothing is fenced
	err = c.to(ctx, record.Comparing)
	if err != nil {
		c.FencedAt = was
	}
	return err
}

// clock sets t to the time of the server.
func (c *Cutover) clock(ctx context.Context, t **time.Time) error {
	_, now, err := c.DB.Stamp(context.WithoutCancel(ctx))
	if err == nil {
		*t = &now
	}
	return err
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

// ways returns the ways of all collections in the order in which they are exchanged.
func (c *Cutover) ways(back, busy bool) (ways []Way) {
	for i := range c.Collections {
		ways = append(ways, Way{Exchange: &c.Collections[i], Back: back, Busy: busy})
	}
	if back {
		slices.Reverse(ways)
	}
	return ways
}

// prepare fences the collections, and compares what has changed, or else everything, until they agree.
func (c *Cutover) prepare(ctx context.Context, ways []Way) error {
	all, err := c.inPlace(ctx, origin)
	if err != nil {
		return err
	}
	if err := c.clock(ctx, &c.FencedAt); err != nil {
		return err
	}
	for _, w := range ways {
		for name, had := range map[string]*server.Settings{w.Name: &w.OldHad, w.New: &w.NewHad} {
			if now := all[name].Settings; !now.Equal(Fence()) && !now.Equal(*had) {
				*had = now // somebody changed them before the fence was set
			}
		}
	}
	if err := c.save(ctx); err != nil {
		return err
	}
	for _, w := range ways {
		if err := c.fence(ctx, all, w.Name, w.Comes()); err != nil {
			return err
		}
	}
	return c.settle(ctx, ways)
}

// fence fences those of the collections that have no fence.
func (c *Cutover) fence(ctx context.Context, all map[string]Info, names ...string) error {
	for _, name := range names {
		if !all[name].Settings.Equal(Fence()) {
			if err := c.DB.Set(ctx, name, Fence()); err != nil {
				return err
			}
		}
	}
	return nil
}
