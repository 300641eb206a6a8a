package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/changes"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

const (
	// few is the number of changed documents that are compared behind the fence rather than once more
	// before it.
	few = 1000
	// maxRounds is the maximum number of times that what changed is compared before the fence. Each time
	// takes as long as services had to change more.
	maxRounds = 10
	// maxPasses is the maximum number of comparisons of the same documents. Programs that bypass
	// validation may change something during each.
	maxPasses = 5
	// maxPending is the maximum number of documents that do not agree for some time.
	maxPending = 1000
	// maxIdle is the number of times in a row that a change stream may have nothing, not even a change of
	// the record.
	maxIdle = 30
)

// ahead compares all documents while services write, and then those that changed meanwhile, until few
// are left.
//
// The stream begins before the record is saved, and every document is read after that, from what a
// majority has. So a change is either in what is read, or in the stream. A document that is changed in
// the old or in the new collection is compared again when its event is read, also if this process
// changed it. When the stream has passed the time of the fence, the documents agree that were written
// until then.
func (c *Cutover) ahead(ctx context.Context, ways []Way) error {
	for try := 0; ; try++ {
		if c.Stream == nil {
			if err := c.begin(ctx); err != nil || c.Stream == nil {
				return err
			}
			c.Untracked = ""
		}
		if err := c.save(ctx); err != nil {
			return err
		}
		_, err := c.inPlace(ctx, ways[0].start())
		if err == nil {
			err = c.compareAll(ctx, ways)
		}
		if err == nil {
			err = c.rounds(ctx, ways)
		}
		if !c.forgets(err) {
			return err
		}
		if try > 0 {
			return nil
		}
		c.Notice("the comparison begins again, while services can write: " + err.Error())
	}
}

// begin begins the stream at the present, or notes why there is none.
func (c *Cutover) begin(ctx context.Context) error {
	at, why, err := c.DB.Position(ctx)
	switch {
	case err != nil:
	case why == "":
		c.Stream = &record.Position{Token: at}
	default:
		c.Untracked = why
	}
	return err
}

// forgets reports whether the error says that it is not known what changed. All documents are then
// compared again.
func (c *Cutover) forgets(err error) bool {
	var lost *mirror.LostTrack
	if !errors.As(err, &lost) {
		return false
	}
	c.forget(lost.Why)
	return true
}

func (c *Cutover) forget(why string) {
	c.Stream, c.Untracked = nil, why
	for i := range c.Collections {
		c.Collections[i].Checked = false
	}
}

// compareAll compares the documents of the collections that were not compared since the stream began, or
// if there is none, until they agree.
func (c *Cutover) compareAll(ctx context.Context, ways []Way) error {
	for _, w := range ways {
		if w.Checked {
			continue
		}
		var done mirror.Result
		for range maxPasses {
			var err error
			if done, err = c.DB.Compare(ctx, w); err != nil {
				return err
			}
			w.count(done)
			if w.Compared.Documents = done.Documents; c.Stream != nil || done.Changed() == 0 {
				break
			}
		}
		var err error
		if w.Checked = c.Stream != nil; w.Checked { // it tells what to compare again
			err = errors.Join(c.pend(w, done), c.save(ctx))
		} else {
			err = errors.Join(c.stay(w, done.Stays, done.Why()), w.unsettled(done))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rounds compares what changed until few documents are left, or as many as before. Documents that do not
// agree each time never will.
func (c *Cutover) rounds(ctx context.Context, ways []Way) error {
	before := int64(-1)
	var never []record.Pending
	for round := 0; ; round++ {
		done, err := c.catchUp(ctx, ways)
		if err != nil {
			return err
		}
		if round == 0 {
			never = slices.Clone(c.Stream.Pending)
		}
		never = slices.DeleteFunc(never, func(p record.Pending) bool { return !slices.ContainsFunc(c.Stream.Pending, p.Equal) })
		switch n := done.Documents; {
		case len(never) > 0 && round >= maxPasses:
			return c.pendingStay(ways)
		case len(never) == 0 && (n <= few || before >= 0 && n > before/2 || round >= maxRounds):
			return nil
		}
		before = done.Documents
	}
}

// settle compares what has changed, or else everything, until the collections agree. Nobody but programs
// that bypass validation can write to them, and deletions: what these change later is found when the
// first of the collections has been renamed away. From then on, only the changes of this one are waited
// for.
func (c *Cutover) settle(ctx context.Context, ways []Way) error {
	for pass := 0; ; pass++ {
		if c.Stream == nil || !ways[0].Checked {
			all := ways
			if ways[0].Renamed {
				all = ways[:1]
				c.Notice(fmt.Sprintf("all documents of %s are compared again between the two renames: %s", ways[0].Name, c.Untracked))
			} else {
				c.Notice("all documents are compared behind the fence, and writes are refused for as long as that takes: " + c.Untracked)
			}
			if c.Stream == nil {
				if err := c.begin(ctx); err != nil {
					return err
				}
			}
			if err := c.compareAll(ctx, all); err != nil || c.Stream == nil {
				return err
			}
		}
		done, err := c.catchUp(ctx, ways)
		switch {
		case pass < maxPasses && c.forgets(err):
		case err != nil:
			return err
		case done.Changed() == 0 || pass >= maxPasses-1:
			return errors.Join(c.pendingStay(ways), ways[0].unsettled(done))
		}
	}
}

// unsettled returns an error if the last comparison between two renames has changed something.
func (w Way) unsettled(last mirror.Result) error {
	if w.Renamed && last.Changed() > 0 {
		return fmt.Errorf("after %d comparisons, documents of %s still differ, although nobody can write to the collection by its name", maxPasses, w.Name)
	}
	return nil
}

// count adds what a comparison has done.
func (w Way) count(done mirror.Result) {
	n := &w.Compared
	n.Inserted, n.Replaced, n.Deleted = n.Inserted+done.Inserted, n.Replaced+done.Replaced, n.Deleted+done.Deleted
	switch {
	case w.Renamed:
		n.Late += done.Documents
	case !w.Busy:
		n.Behind += done.Documents
	}
}

// pendingStay calls stay for each collection that has pending documents.
func (c *Cutover) pendingStay(ways []Way) error {
	for _, w := range ways {
		n, why := int64(0), ""
		for _, p := range c.Stream.Pending {
			if p.Collection == w.Name {
				n, why = n+1, p.Why
			}
		}
		if err := c.stay(w, n, why); err != nil {
			return err
		}
	}
	return nil
}

// stay returns an error about n documents that cannot be brought to agree. A roll-back says that they stay
// in the new collection, and goes on.
func (c *Cutover) stay(w Way, n int64, why string) error {
	switch {
	case n == 0:
	case c.State != record.RollingBack:
		return stuck("%d documents of %s and %s cannot be brought to agree: %s", n, w.Name, w.Comes(), why)
	case n > w.Compared.Stuck:
		w.Compared.Stuck = n
		c.Notice(fmt.Sprintf("%d documents that were changed in the new collection of %s are not in the old one, only in %s: %s", n, w.Name, w.New, why))
	}
	return nil
}

// catchUp compares the documents that changed until now, and those that are pending. It returns what was
// done in the collections, or if the first one was renamed away, in this one. The error is a
// [*mirror.LostTrack] if they are not known.
func (c *Cutover) catchUp(ctx context.Context, ways []Way) (mirror.Result, error) {
	f := &catching{Cutover: c, ways: ways}
	err := mirror.CatchUp(ctx, f, maxIdle)
	return f.done, err
}

// catching is the [mirror.Feed] of a cutover.
type catching struct {
	*Cutover
	ways  []Way
	done  mirror.Result
	shown bool // what was saved last is in the stream, or will be
}

func (f *catching) Now(ctx context.Context) (bson.Timestamp, error) {
	now, _, err := f.DB.Stamp(ctx)
	return now, err
}

// Save saves once between two renames, unless the stream has nothing: readers find nothing meanwhile.
func (f *catching) Save(ctx context.Context) error {
	if f.shown && f.ways[0].Renamed {
		return nil
	}
	f.shown = true
	return f.save(ctx)
}

func (f *catching) Next(ctx context.Context) (changes.Batch, error) {
	b, err := f.DB.Next(ctx, f.Cutover.Cutover)
	f.shown = b.Events > 0
	switch {
	case b.End == nil, f.State == record.Switching, f.State == record.RollingBack: // the cutover renames
	case b.End.NS.Coll == "":
		b.Lost = "the database was dropped"
	default:
		b.Lost = fmt.Sprintf("%s was renamed, dropped or replaced by another program", b.End.NS.Coll)
	}
	return b, err
}

func (f *catching) Apply(ctx context.Context, b changes.Batch) (bool, error) {
	if b.Time.IsZero() {
		return false, nil
	}
	for i, w := range f.ways {
		done, err := f.changed(ctx, w, b)
		if err != nil {
			return false, err
		}
		if i == 0 || !f.ways[0].Renamed {
			f.done.Add(done, false)
		}
	}
	f.Stream.Token = b.At
	return true, nil
}

// changed compares the documents of one collection and its copy that changed, or are pending.
func (c *Cutover) changed(ctx context.Context, w Way, b changes.Batch) (mirror.Result, error) {
	ids, others := slices.Concat(b.IDs[w.Name], b.IDs[w.Away()]), slices.Clone(b.IDs[w.Comes()])
	for _, p := range c.Stream.Pending {
		if p.Collection == w.Name {
			ids, others = append(ids, p.ID), append(others, p.ID)
		}
	}
	if len(ids)+len(others) == 0 {
		return mirror.Result{}, nil
	}
	done, err := c.DB.Some(ctx, w, ids, others)
	if err != nil {
		return done, err
	}
	w.count(done)
	return done, c.pend(w, done)
}

// pend notes the documents of a collection that did not agree.
func (c *Cutover) pend(w Way, done mirror.Result) error {
	c.Stream.Pending = slices.DeleteFunc(c.Stream.Pending, func(p record.Pending) bool { return p.Collection == w.Name })
	if c.State != record.RollingBack && len(c.Stream.Pending)+len(done.Stuck) > maxPending {
		return stuck("more than %d documents of %s and %s cannot be brought to agree: %s", maxPending, w.Name, w.Comes(), done.Why())
	}
	for _, f := range done.Stuck {
		c.Stream.Pending = append(c.Stream.Pending, record.Pending{Collection: w.Name, ID: f.ID, Why: fmt.Sprintf("_id %s: %s", f.ID, f.Reason)})
	}
	return nil
}
