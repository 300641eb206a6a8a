package cutover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	for try := 0; ; try++ {
		if c.Stream == nil {
			at, why, err := c.DB.Position(ctx)
			if err != nil {
				return err
			}
			if why != "" {
				c.Untracked = why
				break
			}
			c.Stream, c.Untracked = &record.Position{Token: at}, ""
		}
		if err := c.save(ctx); err != nil {
			return err
		}
		err := c.compareAll(ctx)
		if err == nil {
			err = c.rounds(ctx)
		}
		var lost *mirror.LostTrack
		if err == nil {
			break
		}
		if !errors.As(err, &lost) {
			return err
		}
		c.forget()
		if try > 0 {
			c.Untracked = lost.Why
			break
		}
		c.Notice("the comparison begins again, while services can write: " + lost.Error())
	}
	return nil
}

// forget makes the next comparison one of all documents.
func (c *Cutover) forget() {
	c.Stream = nil
	for i := range c.Collections {
		c.Collections[i].Checked = false
	}
}

// compareAll compares the documents of the collections that were not compared since the stream began.
func (c *Cutover) compareAll(ctx context.Context) error {
	if _, err := c.inPlace(ctx, c.way(0, true).start()); err != nil {
		return err
	}
	for i := range c.Collections {
		w := c.way(i, true)
		if w.Checked {
			continue
		}
		done, err := c.DB.Compare(ctx, w)
		if err != nil {
			return err
		}
		w.count(done)
		w.Compared.Documents, w.Checked = done.Documents, true
		if err := c.pend(w, done); err != nil {
			return err
		}
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// rounds compares what changed until few documents are left, or as many as before. Documents that do not
// agree each time never will.
func (c *Cutover) rounds(ctx context.Context) error {
	before := int64(-1)
	var never []record.Pending
	for round := 0; ; round++ {
		n, _, err := c.catchUp(ctx, true)
		if err != nil {
			return err
		}
		if round == 0 {
			never = slices.Clone(c.Stream.Pending)
		}
		never = slices.DeleteFunc(never, func(p record.Pending) bool { return !slices.ContainsFunc(c.Stream.Pending, p.Equal) })
		done := n <= few || before >= 0 && n > before/2 || round >= maxRounds
		switch {
		case len(never) > 0 && round >= maxPasses:
			return c.cannotAgree()
		case len(never) == 0 && done:
			return nil
		}
		before = n
	}
}

// cannotAgree returns the error about the pending documents.
func (c *Cutover) cannotAgree() error {
	p := c.Stream.Pending[0]
	return stuck("%d documents of %s and their copies cannot be brought to agree: %s, %s", len(c.Stream.Pending), strings.Join(c.Names(), ", "), p.Collection, p.Why)
}

// behind compares what has changed when nobody but programs that bypass validation can write any more,
// and deletions. What these change later is found when the collection is renamed.
func (c *Cutover) behind(ctx context.Context) error {
	for pass := 0; c.Stream != nil; pass++ {
		_, done, err := c.catchUp(ctx, false)
		if lost := (*mirror.LostTrack)(nil); errors.As(err, &lost) {
			c.forget()
			c.Untracked = lost.Why
			break
		}
		if err != nil {
			return err
		}
		if done.Changed() > 0 && pass < maxPasses {
			continue
		}
		if len(c.Stream.Pending) > 0 {
			return c.cannotAgree()
		}
		for i := range c.Collections {
			c.Collections[i].After = c.Stream.Token
		}
		return nil
	}
	c.Notice("all documents are compared behind the fence, and writes are refused for as long as that takes: " + c.Untracked)
	for i := range c.Collections {
		if err := c.agree(ctx, c.way(i, false)); err != nil {
			return err
		}
	}
	return nil
}

// catchUp compares the documents that changed until now, and those that are pending. It returns their
// number. The error is a [*mirror.LostTrack] if they are not known.
func (c *Cutover) catchUp(ctx context.Context, busy bool) (n int64, all mirror.Result, err error) {
	f := &catching{Cutover: c, busy: busy}
	err = mirror.CatchUp(ctx, f, maxIdle)
	return f.done.Documents, f.done, err
}

// catching is the [mirror.Feed] of a cutover.
type catching struct {
	*Cutover
	busy bool
	done mirror.Result
}

func (f *catching) Now(ctx context.Context) (bson.Timestamp, error) {
	now, _, err := f.DB.Stamp(ctx)
	return now, err
}

func (f *catching) Save(ctx context.Context) error { return f.save(ctx) }

func (f *catching) Next(ctx context.Context) (changes.Batch, error) {
	return f.DB.Next(ctx, f.Cutover.Cutover)
}

func (f *catching) Apply(ctx context.Context, b changes.Batch) (bool, error) {
	if b.Time.IsZero() {
		return false, nil
	}
	for i := range f.Collections {
		done, err := f.changed(ctx, f.way(i, f.busy), b)
		if err != nil {
			return false, err
		}
		f.done.Add(done, false)
	}
	f.Stream.Token = b.At
	return true, nil
}

// changed compares the documents of one collection and its copy that changed, or are pending.
func (c *Cutover) changed(ctx context.Context, w Way, b changes.Batch) (mirror.Result, error) {
	ids, others := b.IDs[w.Name], b.IDs[w.Comes()]
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
	if !w.Busy {
		w.Compared.Behind += done.Documents
	}
	return done, c.pend(w, done)
}

// pend notes the documents of a collection that did not agree.
func (c *Cutover) pend(w Way, done mirror.Result) error {
	c.Stream.Pending = slices.DeleteFunc(c.Stream.Pending, func(p record.Pending) bool { return p.Collection == w.Name })
	for _, f := range done.Stuck {
		c.Stream.Pending = append(c.Stream.Pending, record.Pending{Collection: w.Name, ID: f.ID, Why: fmt.Sprintf("_id %s: %s", f.ID, f.Reason)})
	}
	if len(c.Stream.Pending) > maxPending {
		return stuck("more than %d documents of %s and %s cannot be brought to agree: %s", maxPending, w.Name, w.Comes(), done.Why())
	}
	return nil
}
