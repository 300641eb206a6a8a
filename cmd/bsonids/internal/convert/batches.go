package convert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// errNotBegun reports that the work was stopped while a batch waited for the rate limit.
var errNotBegun = errors.New("not begun")

// stages are what is done with the batches of a collection.
type stages[B any] struct {
	// batch makes a batch of at most size documents, or of as many as pace admits at once. A page may have
	// several batches.
	batch func(docs []bson.Raw) (B, error)
	size  int
	pace  *patience.Pace
	// prepare is called with up to ahead batches that have been read meanwhile, for one group after
	// the other, and with one if there is a limit, which several at once would exceed. The context is for
	// waiting and ends with that of inBatches.
	prepare func(waiting context.Context, group []B) error
	ahead   int
	// process is called by several workers. The first context is as that of prepare. The second is
	// for the work and is canceled only if another batch fails; a write that has begun is finished nevertheless.
	process func(waiting, work context.Context, b B) error
	workers int
}

// inBatches reads p to its end and passes its pages through the stages, all at the same time. If ctx
// ends or a batch fails, no further batch is prepared. If ctx ends, or a batch cannot be prepared, those
// that are prepared are processed. inBatches returns the first error, or the cause of ctx if not every
// batch was processed.
func inBatches[B any](ctx context.Context, p *documents.Pages, patient *patience.Patience, s stages[B]) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	workers := max(1, s.workers)
	batches, prepared := make(chan B, max(workers, s.ahead)), make(chan B, max(workers, s.ahead)-1)
	var done atomic.Int64 // batches
	var failure error
	var once sync.Once
	fail := func(err error) { once.Do(func() { failure = err; stop(err); cancel(err) }) }
	var running sync.WaitGroup
	running.Go(func() {
		defer close(prepared)
		for b := range batches {
			group := []B{b}
			if !s.pace.Limited() {
				group = waitingIn(batches, group, s.ahead)
			}
			if reading.Err() != nil {
				continue
			}
			switch err := s.prepare(reading, group); {
			case err == nil:
				for _, b := range group {
					prepared <- b
				}
			case !errors.Is(err, errNotBegun): // nothing is wrong with what is processed
				once.Do(func() { failure = err; stop(err) })
			}
		}
	})
	for range workers {
		running.Go(func() {
			for b := range prepared {
				if work.Err() != nil {
					continue
				}
				_ = s.pace.Hold(reading) // what is prepared is processed if ctx ends
				if err := s.process(reading, work, b); err != nil {
					fail(err)
				} else {
					done.Add(1)
				}
			}
		})
	}
	begun := int64(0)
	err := p.Each(reading, patient, func(docs []bson.Raw) error {
		for docs := range slices.Chunk(docs, s.pace.Batch(s.size)) {
			b, err := s.batch(docs)
			if err != nil {
				return err
			}
			begun++
			select {
			case batches <- b:
			case <-reading.Done():
				return context.Cause(reading)
			}
		}
		return nil
	})
	close(batches)
	running.Wait()
	if failure != nil {
		return failure
	}
	// All batches may have been read, and some still waiting, when the work was stopped.
	if err == nil && done.Load() < begun {
		return context.Cause(ctx)
	}
	return err
}

// waitingIn appends what waits in the channel to group, up to most batches in total.
func waitingIn[B any](batches <-chan B, group []B, most int) []B {
	for len(group) < most {
		select {
		case b, ok := <-batches:
			if !ok {
				return group
			}
			group = append(group, b)
		default:
			return group
		}
	}
	return group
}

// run is what conversions in place and into a copy share: the counts, and whether the collections are there.
type run struct {
	Options
	there *presence // the collections of the run
	mu    sync.Mutex
	res   Result
}

// Totals are the numbers of documents and of values that a conversion has read, changed or left unchanged.
type Totals struct{ Read, Changed, Values, Skipped int64 }

func (t *Totals) add(o Totals) {
	t.Read, t.Changed, t.Values, t.Skipped = t.Read+o.Read, t.Changed+o.Changed, t.Values+o.Values, t.Skipped+o.Skipped
}

func newRun(coll *mongo.Collection, o Options) *run {
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	if o.Report == nil {
		o.Report = func(Totals) {}
	}
	if o.Batch == 0 {
		o.Batch = batchSize
	}
	r := &run{Options: o, there: &presence{patience: o.Patience, now: time.Now}, res: Result{SkippedFor: rule.Tally{}}}
	r.there.add(coll, o.UUID)
	return r
}

// leave counts and lists values of a document that are left unchanged.
func (r *run) leave(id bson.RawValue, left []rule.Left) {
	if len(left) == 0 {
		return
	}
	r.mu.Lock()
	r.res.Skipped++
	for _, l := range left {
		r.res.SkippedFor.Add(l.Reason, 1)
	}
	r.mu.Unlock()
	r.SkipList.add(id, left)
}

// count counts documents that were changed, and their values.
func (r *run) count(n Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Totals.add(n)
}

// report reports the counts.
func (r *run) report() {
	r.mu.Lock()
	all := r.res.Totals
	r.mu.Unlock()
	r.Report(all)
}

// done notes that the documents of a batch are done.
func (r *run) done(ctx context.Context, documents int) error {
	if err := r.SkipList.Err(); err != nil {
		return err
	}
	r.count(Totals{Read: int64(documents)})
	r.report()
	r.Progress(documents)
	return r.there.sometimes(ctx)
}

// turn waits until n more documents may be written. It returns errNotBegun if ctx ends first.
func (o *Options) turn(ctx context.Context, n int) error {
	err := o.Pace.Wait(ctx, n)
	if ctx.Err() != nil {
		return errNotBegun
	}
	return err
}

// mayBegin calls Check before a write whose old values end at the offset logged of the undo log. The context that it
// returns limits the time from the check to the end of the write.
func (o *Options) mayBegin(ctx context.Context, logged int64) (context.Context, context.CancelFunc, error) {
	limit, checked := cmp.Or(o.BatchTimeout, bulk.Timeout), time.Now()
	if o.Check != nil {
		checking, cancel := context.WithDeadline(ctx, checked.Add(limit))
		var err error
		checked, err = o.Check(patience.Undated(checking), logged)
		cancel()
		if err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithDeadline(ctx, checked.Add(limit))
	return ctx, cancel, nil
}
