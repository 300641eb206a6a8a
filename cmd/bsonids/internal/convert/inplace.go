package convert

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

const (
	batchSize = 1000
	// attempts is the number of attempts to write a document that other programs keep changing.
	attempts = 5
	// checkpointEvery is the interval at which the state is written during a conversion.
	checkpointEvery = time.Second
	maxListed       = 10_000
	// logAhead is the number of batches whose entries in the undo log are brought to the disk at
	// once. A disk may take as long for that as a server for some batches.
	logAhead = 4
)

// Options are the options of a conversion.
type Options struct {
	Selection
	Workers  int // the number of batches that are written at the same time
	State    *State
	Undo     *UndoLog  // nil for a copy
	SkipList *SkipList // or nil
	Retry    *Retry    // the values to convert; nil for all. The conversion consumes it.
	Batch    int       // documents per batch; 1000 if 0
	// UUID is the UUID of the collection, or nil if the server gives none. Another collection of the
	// same name is not converted.
	UUID     *bson.Binary
	Progress func(documents int)

	// Check is called before each write with the size of the undo log in bytes. An error stops the
	// conversion. BatchTimeout limits the check and the write together.
	Check        func(ctx context.Context, undoSize int64) error
	BatchTimeout time.Duration // the time limit of a write; bulk.Timeout if 0
	// Halves is set if the server ends a write at its time limit. Then its batch is halved.
	Halves bool

	// Pace limits the load of all conversions that have it, Latency that of this one, and Patience
	// the time for which a lost or overloaded server is tried again. Each may be nil.
	Pace     *patience.Pace
	Latency  *patience.Latency
	Patience *patience.Patience

	Report func(Totals) // called after each batch
	// Bound is called with the UUID of a copy, if the server gives one, before documents are written to it. It may be nil.
	Bound func(ctx context.Context, uuid *bson.Binary) error
}

// Result describes what a conversion did.
type Result struct {
	Totals         // of this run; Changed counts the documents that were changed or copied
	Earlier Totals // of earlier runs. Without an undo log, one that was killed may have changed more.
	// SkippedFor counts the skipped values by reason. It counts documents if the reason is not about a
	// value.
	SkippedFor rule.Tally

	// Verified is set if a copy is equal to its converted source, Proof has the last comparison, and
	// Conflicts the documents whose converted _id or unique key another document of the copy has. Proof has
	// them once the conversion is complete.
	Verified  bool
	Proof     Verified
	Conflicts []Skip
}

// All returns the counts of all runs.
func (r Result) All() Totals {
	all := r.Totals
	all.add(r.Earlier)
	return all
}

// runner converts in place.
type runner struct {
	*run
	coll    *mongo.Collection
	and     bson.RawValue // Query as [filtered] returns it
	key     []string      // paths of the shard key
	orphans bool          // the server may match more documents than were addressed

	// inFlight has the undo log entries of an earlier run about documents that the state does not
	// record as done. An entry is removed when its document is read again.
	inFlight map[string]Entry
}

type batch struct {
	number int
	plans  []Planned // after prepare, those that are to be written
	counts *Totals
}

// InPlace converts the values of a collection, except those in _id. If ctx ends, InPlace finishes
// the batches that it has started, saves the state, and returns the error of ctx with the result.
// It also saves the state after any other error.
func InPlace(ctx context.Context, coll *mongo.Collection, o Options) (Result, error) {
	r := &runner{run: newRun(coll, o), coll: coll}
	var err error
	if r.and, err = filtered(o.Query); err != nil {
		return r.res, err
	}
	err = o.Patience.Do(ctx, func() (err error) {
		router, err := server.RouterOf(ctx, coll.Database())
		// The number of matched documents then does not prove that each update matched.
		r.orphans = router != nil && router.CountsOrphans()
		return err
	})
	if err != nil {
		return r.res, err
	}
	if r.key, err = shardKey(ctx, coll, o.Patience); err != nil {
		return r.res, err
	}
	// The pages are not smaller than usual if the batches are: some servers read the whole collection
	// for each page.
	p := &documents.Pages{Collection: coll, Projection: withKey(o.Conversion.Projection(), r.key), Filter: o.Query, Size: int64(max(r.Batch, batchSize))}
	if o.Retry != nil {
		p.Filter, p.Projection = o.Retry.Filter(), nil
	}
	if err := r.resume(ctx, p); err != nil {
		return r.res, err
	}
	err = inBatches(ctx, p, r.tracker, r.Patience, stages[batch]{r.plan, r.Batch, r.Pace, r.prepare, logAhead, r.process, r.Workers})
	err = r.there.after(ctx, err)
	if o.Retry != nil && err == nil {
		o.Retry.rest(func(id bson.RawValue, left []rule.Left) { r.leave(id, left, nil) })
		err = r.SkipList.Err()
	}
	o.State.Done = err == nil
	// What was done with a collection that is gone was done with no document.
	if lost := (*LostError)(nil); !errors.As(err, &lost) {
		err = errors.Join(err, r.save())
	}
	return r.res, err
}

// plan returns the batch of a page.
func (r *runner) plan(number int, docs []bson.Raw) (batch, error) {
	b := batch{number: number, counts: new(Totals)}
	for _, doc := range docs {
		b.counts.Read++
		p, err := r.planOf(doc)
		if err != nil {
			p = rule.Plan{ID: doc.Lookup("_id"), Skipped: []rule.Left{{Document: true, Reason: err.Error()}}}
		}
		plan := Planned{Plan: p, counts: b.counts}
		if r.Retry != nil {
			r.Retry.limit(&plan.Plan, doc, r.Conversion)
		}
		r.reconsider(&plan, doc)
		if len(plan.Changes)+len(plan.Skipped)+len(plan.InID) > 0 {
			b.plans = append(b.plans, plan)
		}
	}
	if r.inFlight != nil && len(r.inFlight) == 0 {
		r.inFlight = nil
		r.tracker.release(number)
	}
	return b, nil
}

// prepare writes the entries of the batches to the undo log, while earlier batches are processed.
func (r *runner) prepare(waiting context.Context, group []batch) error {
	var plans []Planned
	for i := range group {
		b := &group[i]
		write := b.plans[:0]
		for _, p := range b.plans {
			r.note(p)
			if r.mayWrite(p) {
				write = append(write, p)
			}
		}
		b.plans = write
		if len(write) == 0 {
			continue
		}
		// A batch that is in the log is also processed. It waits for its turn before.
		if err := r.turn(waiting, len(write)); err != nil {
			return err
		}
		r.tracker.log(b.number, r.Undo.Size)
		plans = append(plans, write...)
	}
	if len(plans) == 0 {
		return nil
	}
	return r.Undo.Append(plans, func(p Planned) bool { return p.again })
}

// process writes one batch.
func (r *runner) process(waiting, ctx context.Context, b batch) error {
	if len(b.plans) > 0 {
		if err := r.write(waiting, ctx, b.plans); err != nil {
			return err
		}
	}
	return r.done(ctx, b.number, *b.counts)
}

// Planned is the plan for one document.
type Planned struct {
	rule.Plan
	// kept has the changes that were made on account of an earlier entry of the undo log. They are
	// logged again and not made again.
	kept []rule.Change
	// again is set if an earlier entry of the undo log about the document is void.
	again bool
	// keyLeft is set if the server did not change the shard key, and its values are listed.
	keyLeft bool
	counts  *Totals // of the batch of the document; nil if nothing is counted
}

// keep adds to p.kept the earlier changes, from an entry of the undo log, whose new values are in doc
// now: they were made before another program wrote, or before an earlier run was killed. The entry that
// voids the earlier one must restore them too.
func (p *Planned) keep(doc bson.Raw, earlier []rule.Change) {
	p.again = true
	made := make(map[string]bool, len(p.Changes))
	for _, ch := range p.Changes {
		made[ch.Path] = true
	}
	held := rule.HeldBy(doc, len(earlier))
	for _, done := range earlier {
		if !made[done.Path] && held.HasNew(done) {
			p.kept = append(p.kept, done)
		}
	}
}

// mayWrite reports whether p has changes, and whether an update can hold them. If it cannot, mayWrite
// skips the document.
func (r *runner) mayWrite(p Planned) bool {
	switch {
	case len(p.Changes) == 0:
		return false
	case p.Size() > bulk.MaxUpdate:
		r.skipPlan(p, "the document has too many values for one update; convert into a new collection")
	default:
		return true
	}
	return false
}

// count counts a document that this run, or an earlier one, has changed: in the totals of that run, and of the batch.
func (r *runner) count(run, batch *Totals, changes []rule.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := Totals{Changed: 1, Values: int64(len(changes))}
	run.add(n)
	if batch != nil {
		batch.add(n)
	}
}
