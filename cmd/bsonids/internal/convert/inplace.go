// Package convert changes UUIDs in a collection to another representation. A conversion
// can be stopped at any moment and never overwrites what another program wrote. It knows nothing of
// earlier ones: it reads everything from the beginning, and writes what is left.
package convert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

const (
	batchSize = 1000
	// attempts is the number of attempts to write a document that other programs keep changing.
	attempts = 5
	// mostPasses is the number of passes over a collection in which services write old values all the time.
	mostPasses = 3
	maxListed  = 10_000
	// logAhead is the number of batches whose entries in the undo log are brought to the disk at
	// once. A disk may take as long for that as a server for some batches.
	logAhead = 4
)

// Options are the options of a conversion.
type Options struct {
	Selection
	Workers  int          // the number of batches that are written at the same time
	Undo     *undolog.Log // nil for a copy
	SkipList *SkipList    // or nil
	Batch    int          // documents per batch; 1000 if 0
	// UUID is the UUID of the collection, or nil if the server gives none. Another collection of the
	// same name is not converted.
	UUID     *bson.Binary
	Copy     Copy
	Progress func(documents int)

	// Check is called before each write with the size of the undo log that has the old values of what is written. It returns
	// the time from which the limit of the write counts. An error stops the conversion. BatchTimeout limits the check
	// and the write together.
	Check        func(ctx context.Context, logged int64) (time.Time, error)
	BatchTimeout time.Duration // the time limit of a write; bulk.Timeout if 0
	// Halves is set if the server ends a write at its time limit. Then its batch is halved.
	Halves bool

	// Pace limits the load of all conversions that have it, Latency that of this one, and Patience
	// the time for which a lost or overloaded server is tried again. Each may be nil.
	Pace     *patience.Pace
	Latency  *patience.Latency
	Patience *patience.Patience

	Report func(Totals) // called after each batch
}

// Result describes what a conversion did.
type Result struct {
	// Totals has the documents that were changed or copied, and those that the last pass read and left.
	Totals
	// SkippedFor counts the skipped values by reason. It counts documents if the reason is not about a
	// value.
	SkippedFor rule.Tally
	// Late is the number of documents in which the last pass of a conversion in place has found something to convert that it
	// has not left, whether it has changed them or another program did: services write old values all the time, and may have
	// written more since. It is 0 if the last pass found nothing left to convert.
	Late int64

	// Verified is set if a copy is equal to its converted source, Proof has the last comparison, and
	// Conflicts the documents whose converted _id or unique key another document of the copy has. Proof has
	// them once the conversion is complete.
	Verified  bool
	Proof     Verified
	Conflicts []Skip
}

// runner converts in place.
type runner struct {
	*run
	coll    *mongo.Collection
	editor  *rule.Editor  // of the pass that reads
	and     bson.RawValue // Query as [filtered] returns it
	key     []string      // paths of the shard key
	orphans bool          // the server may match more documents than were addressed
}

type batch struct {
	documents int
	edits     []edit // after prepare, those that are to be written
	logged    int64  // the size of the undo log that has their entries
}

// InPlace converts the values of a collection, except those in _id. It reads the collection from its beginning, and again
// until a pass finds nothing to convert, or for the last time after some passes. If ctx ends, InPlace finishes the batches
// that it has started, and returns the error of ctx with the result.
func InPlace(ctx context.Context, coll *mongo.Collection, o Options) (Result, error) {
	r := &runner{run: newRun(coll, o), coll: coll, editor: rule.NewEditor(o.Conversion)}
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
	for range mostPasses {
		if err := r.pass(ctx); err != nil || r.res.Late == 0 {
			return r.res, err
		}
	}
	return r.res, nil
}

// pass reads the collection once, and converts what is left. What an earlier pass has left is counted and listed anew.
func (r *runner) pass(ctx context.Context) error {
	r.mu.Lock()
	r.res.Read, r.res.Skipped, r.res.SkippedFor = 0, 0, rule.Tally{}
	r.res.Late = 0
	r.mu.Unlock()
	r.SkipList.Restart()
	// The pages are not smaller than usual if the batches are: some servers read the whole collection
	// for each page.
	p := &documents.Pages{Collection: r.coll, Projection: withKey(r.Conversion.Projection(), r.key), Filter: r.Query, Size: int64(max(r.Batch, batchSize))}
	err := inBatches(ctx, p, r.Patience, stages[batch]{r.batchOf, r.Batch, r.Pace, r.prepare, logAhead, r.process, r.Workers})
	err = r.there.after(ctx, err)
	return errors.Join(err, r.SkipList.Sync())
}

// batchOf returns the batch of a page.
func (r *runner) batchOf(docs []bson.Raw) (batch, error) {
	b := batch{documents: len(docs)}
	for i, doc := range docs {
		p, err := r.planOf(doc, r.editor.Edits)
		if err != nil {
			p = rule.Edits{ID: doc.Lookup("_id"), Skipped: []rule.Left{{Document: true, Reason: err.Error()}}}
		}
		if len(p.Changes)+len(p.Skipped)+len(p.InID) > 0 {
			if b.edits == nil { // most pages have none, or many
				b.edits = make([]edit, 0, len(docs)-i)
			}
			b.edits = append(b.edits, edit{Edits: p})
		}
	}
	return b, nil
}

// prepare writes the entries of the batches to the undo log, while earlier batches are processed.
func (r *runner) prepare(waiting context.Context, group []batch) error {
	n := 0
	for i := range group {
		b := &group[i]
		write := b.edits[:0]
		for _, p := range b.edits {
			r.note(p)
			if r.mayWrite(p) {
				write = append(write, p)
			}
		}
		b.edits = write
		if len(write) == 0 {
			continue
		}
		// A batch that is in the log is also processed. It waits for its turn before.
		if err := r.turn(waiting, len(write)); err != nil {
			return err
		}
		n += len(write)
	}
	if n == 0 {
		return nil
	}
	if err := r.log(group...); err != nil {
		return err
	}
	logged := r.Undo.Extent().Size
	for i := range group {
		group[i].logged = logged
	}
	if r.Check != nil { // while earlier batches are in flight; each asks again, and gets the error
		ctx, cancel := context.WithTimeout(waiting, cmp.Or(r.BatchTimeout, bulk.Timeout))
		defer cancel()
		_, _ = r.Check(patience.Undated(ctx), logged)
	}
	return nil
}

// log writes entries of the edits of batches to the undo log.
func (r *runner) log(batches ...batch) error {
	n := 0
	for _, b := range batches {
		n += len(b.edits)
	}
	entries := make([]undolog.Entry, 0, n)
	for _, b := range batches {
		for _, p := range b.edits {
			e := undolog.Entry{ID: p.ID, Changes: p.Changes, Again: p.again}
			if len(p.kept) > 0 {
				e.Changes = slices.Concat(p.Changes, p.kept)
			}
			entries = append(entries, e)
		}
	}
	return r.Undo.Append(entries)
}

// process writes one batch.
func (r *runner) process(waiting, ctx context.Context, b batch) error {
	if len(b.edits) > 0 {
		if err := r.write(waiting, ctx, b.edits, b.logged); err != nil {
			return err
		}
	}
	return r.done(ctx, b.documents)
}

// edit is how one document is edited.
type edit struct {
	rule.Edits
	// kept has the changes that were made on account of an earlier entry of the undo log. They are
	// logged again and not made again.
	kept []rule.Change
	// again is set if an earlier entry of the undo log about the document is void.
	again bool
	// keyLeft is set if the server did not change the shard key, and its values are listed.
	keyLeft bool
}

// keep adds to p.kept the earlier changes, from an entry of the undo log, whose new values are in doc
// now: they were made before another program wrote. The entry that voids the earlier one must restore them too.
func (p *edit) keep(doc bson.Raw, earlier []rule.Change) {
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
func (r *runner) mayWrite(p edit) bool {
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

// changed counts a document whose values were changed.
func (r *runner) changed(changes []rule.Change) {
	r.count(Totals{Changed: 1, Values: int64(len(changes))})
	r.late()
}

// late counts a document in which something was found to convert, and in which nothing of it is left.
func (r *runner) late() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Late++
}
