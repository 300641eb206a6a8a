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
func (c *Cutover) ahead(ctx context.Context) error {
	return (&following{Cutover: c, ways: c.ways(false, true), before: -1}).follow(ctx)
}

// settle compares what has changed, or else everything, until the collections agree. Nobody but programs
// that bypass validation can write to them, and deletions: what these change later is found when the
// first of the collections has been renamed away. From then on, only the changes of this one are waited
// for.
func (c *Cutover) settle(ctx context.Context, ways []Way) error {
	return (&following{Cutover: c, ways: ways}).follow(ctx)
}

// inSpite counts the documents that were written to the new collections in spite of the fence, by programs that bypass
// validation, or while a server had dropped it. Where no stream tells, the collections are compared that had no fence.
func (c *Cutover) inSpite(ctx context.Context) error {
	if c.Stream != nil {
		if err := (&following{Cutover: c}).follow(ctx); err != nil {
			return err
		}
	}
	for _, w := range c.ways(true, false) {
		if (c.Stream == nil || !w.Checked) && w.Unfenced > 0 {
			w.Dry = true
			done, err := c.DB.Compare(ctx, w)
			if err != nil {
				return err
			}
			w.Compared.Written = done.Stays
		}
		if n := w.Compared.Written; n > 0 {
			c.Notice(fmt.Sprintf("%d documents of %s were written in spite of the fence: look at them before the release", n, w.Name))
		}
	}
	return nil
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

// forget makes the next comparison one of all documents.
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
	case n > w.Compared.Written:
		w.Compared.Written = n
		c.Notice(fmt.Sprintf("%d documents that were changed in the new collection of %s are not in the old one, only in %s: %s", n, w.Name, w.New, why))
	}
	return nil
}

// following compares all documents, and then what a change stream shows. Every document that changed before the saved position
// of the stream was compared after that, or is pending.
type following struct {
	*Cutover
	ways   []Way         // all busy, or none; without any, only what is written to new collections in place is looked at
	done   mirror.Result // since the stream had caught up, of the first way if it was renamed
	shown  bool          // what was saved last is in the stream, or will be
	passes int
	losses int
	before int64            // documents that had changed the last time
	never  []record.Pending // did not agree, whenever they were compared
}

// follow compares all documents, and then what changes, until it is enough, or once if there is no stream. It begins again if
// the stream has nothing for some time, not even what save writes.
func (f *following) follow(ctx context.Context) error {
	for {
		is, err := f.open(ctx)
		if err == nil {
			err = f.compare(ctx)
		}
		lost := ""
		for done := !is; err == nil && lost == ""; {
			if done {
				return nil
			}
			if lost, err = f.catchUp(ctx); err == nil && lost == "" {
				done, err = f.enough()
			}
		}
		if err != nil {
			return err
		}
		if again, err := f.lost(lost); err != nil || !again {
			return err
		}
	}
}

// catchUp applies what happened until now. The stream has passed this time when it shows something later.
// Changes that were read and not applied are read again after an error. lost is why it is not known what
// changed, or empty.
func (f *following) catchUp(ctx context.Context) (lost string, err error) {
	goal, _, err := f.DB.Stamp(ctx)
	if err != nil {
		return "", err
	}
	for nothing := 0; ; {
		if err := f.save(ctx); err != nil {
			return "", err
		}
		b, err := f.next(ctx)
		switch {
		case err != nil:
			return "", err
		case b.Lost != "":
			return b.Lost, nil
		case b.Time.IsZero():
			if nothing++; nothing > maxIdle {
				return "the change stream does not show what is written to the record", nil
			}
			continue
		}
		nothing = 0
		if err := f.apply(ctx, b); err != nil {
			return "", err
		}
		if b.Time.After(goal) {
			return "", f.save(ctx)
		}
	}
}

// open opens a stream and saves its position, unless there is one. It reports false if the server has none.
func (f *following) open(ctx context.Context) (bool, error) {
	if len(f.ways) == 0 {
		return true, nil
	}
	w := f.ways[0]
	switch whole := f.Stream == nil || !w.Checked; {
	case w.Busy || !whole:
	case w.Renamed:
		f.Notice(fmt.Sprintf("all documents of %s are compared again between the two renames: %s", w.Name, f.Untracked))
	default:
		f.Notice("all documents are compared behind the fence, and writes are refused for as long as that takes: " + f.Untracked)
	}
	if f.Stream == nil {
		if err := f.begin(ctx); err != nil {
			return false, err
		}
	}
	if w.Busy && f.Stream != nil {
		f.Untracked = ""
		return true, f.save(ctx)
	}
	return f.Stream != nil, nil
}

// compare compares all documents, unless they were compared since the stream began.
func (f *following) compare(ctx context.Context) error {
	if len(f.ways) == 0 {
		return nil
	}
	switch w := f.ways[0]; {
	case w.Renamed:
		return f.compareAll(ctx, f.ways[:1])
	case w.Busy && f.Stream == nil: // that is for behind the fence
		return nil
	case w.Busy:
		if _, err := f.inPlace(ctx, origin); err != nil {
			return err
		}
	}
	if err := f.compareAll(ctx, f.ways); err != nil {
		return err
	}
	for _, w := range f.ways {
		if !w.Busy {
			break
		}
		// An earlier run may have compared the documents. Behind the fence, what has changed since must not take long.
		if err := f.DB.Index(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// enough reports whether to end, when everything that had happened was applied. While services write, what changed is compared
// until few documents are left, or as many as before. Documents that do not agree each time never will.
func (f *following) enough() (bool, error) {
	if len(f.ways) == 0 {
		return true, nil
	}
	pass, last, ways := f.passes, f.done, f.ways
	f.passes, f.done = pass+1, mirror.Result{}
	if !ways[0].Busy {
		if last.Changed() > 0 && pass < maxPasses-1 {
			return false, nil
		}
		if ways[0].Renamed {
			ways = ways[:1]
		}
		return true, errors.Join(f.pendingStay(ways), ways[0].unsettled(last))
	}
	if pass == 0 {
		f.never = slices.Clone(f.Stream.Pending)
	}
	f.never = slices.DeleteFunc(f.never, func(p record.Pending) bool { return !slices.ContainsFunc(f.Stream.Pending, p.Equal) })
	n := last.Documents
	little := n <= few || f.before >= 0 && n > f.before/2 || pass >= maxRounds
	if f.before = n; len(f.never) > 0 && pass >= maxPasses {
		return false, f.pendingStay(ways)
	}
	return len(f.never) == 0 && little, nil
}

// lost is called if it is not known what changed. It reports whether to begin again.
func (f *following) lost(why string) (bool, error) {
	f.losses++
	f.forget(why)
	if len(f.ways) == 0 {
		return false, nil
	}
	f.passes, f.before, f.done = 0, -1, mirror.Result{}
	switch busy := f.ways[0].Busy; {
	case busy && f.losses == 1:
		f.Notice("the comparison begins again, while services can write: it is not known what has changed: " + why)
	case busy: // everything is compared behind the fence
		return false, nil
	case f.losses == maxPasses:
		return false, fail("it is not known what has changed: %s", why)
	}
	return true, nil
}

// save saves the position, which the stream shows, so that it tells how far it has come also if nothing else changes. It
// saves once between two renames, unless the stream has nothing: readers find nothing meanwhile.
func (f *following) save(ctx context.Context) error {
	if f.shown && len(f.ways) > 0 && f.ways[0].Renamed {
		return nil
	}
	f.shown = true
	return f.Cutover.save(ctx)
}

// next returns what happened behind the position.
func (f *following) next(ctx context.Context) (changes.Batch, error) {
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

// apply compares the documents that changed, and those that are pending, and moves the position.
func (f *following) apply(ctx context.Context, b changes.Batch) error {
	for i, w := range f.ways {
		done, err := f.changed(ctx, w, b)
		if err != nil {
			return err
		}
		if i == 0 || !f.ways[0].Renamed {
			f.done.Add(done, false)
		}
	}
	for i := range f.Collections {
		if x := &f.Collections[i]; f.State == record.Switching && x.InAt != nil {
			if err := f.watch(ctx, Way{Exchange: x, Back: true, Dry: true}, b); err != nil {
				return err
			}
		}
	}
	f.Stream.Token = b.At
	return nil
}

// watch notes the documents that were written to a new collection in place.
func (f *following) watch(ctx context.Context, w Way, b changes.Batch) error {
	ids, others := f.ids(w, b)
	if len(ids)+len(others) == 0 {
		return nil
	}
	done, err := f.DB.Some(ctx, w, ids, others)
	if err != nil {
		return err
	}
	done.Stuck = done.Stuck[:min(len(done.Stuck), maxPending)]
	f.note(w, done)
	w.Compared.Written = done.Stays
	return nil
}

// changed compares the documents of one collection and its copy that changed, or are pending.
func (c *Cutover) changed(ctx context.Context, w Way, b changes.Batch) (mirror.Result, error) {
	ids, others := c.ids(w, b)
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

// ids returns the _ids of the documents that have changed or are pending: of the collection that leads, and of the one that comes.
func (c *Cutover) ids(w Way, b changes.Batch) (ids, others []bson.RawValue) {
	ids, others = slices.Concat(b.IDs[w.Name], b.IDs[w.Away()]), slices.Clone(b.IDs[w.Comes()])
	for _, p := range c.Stream.Pending {
		if p.Collection == w.Name {
			ids, others = append(ids, p.ID), append(others, p.ID)
		}
	}
	return ids, others
}

// pend notes the documents of a collection that did not agree. The error says that they are too many.
func (c *Cutover) pend(w Way, done mirror.Result) error {
	c.note(w, done)
	if c.State != record.RollingBack && len(c.Stream.Pending) > maxPending {
		return stuck("more than %d documents of %s and %s cannot be brought to agree: %s", maxPending, w.Name, w.Comes(), done.Why())
	}
	return nil
}

// note notes the documents of a collection that did not agree instead of those that did not before.
func (c *Cutover) note(w Way, done mirror.Result) {
	c.Stream.Pending = slices.DeleteFunc(c.Stream.Pending, func(p record.Pending) bool { return p.Collection == w.Name })
	for _, f := range done.Stuck {
		c.Stream.Pending = append(c.Stream.Pending, record.Pending{Collection: w.Name, ID: f.ID, Why: fmt.Sprintf("_id %s: %s", f.ID, f.Reason)})
	}
}
