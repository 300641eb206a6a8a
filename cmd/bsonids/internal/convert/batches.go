package convert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
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
	// plan makes a batch of at most size documents, or of as many as pace admits at once. A page may have
	// several batches.
	plan func(number int, docs []bson.Raw) (B, error)
	size int
	pace *patience.Pace
	// prepare is called with up to ahead batches that have been read meanwhile, for one group after
	// the other, and with one if there is a limit, which several at once would exceed. The context is for
	// waiting and ends with that of inBatches.
	prepare func(waiting context.Context, group []B) error
	ahead   int
	// process is called by several workers. The first context is as that of prepare. The second is
	// for the work and is canceled only if another batch fails.
	process func(waiting, work context.Context, b B) error
	workers int
}

// inBatches reads p to its end and passes its pages through the stages, all at the same time. If ctx
// ends or a batch fails, no further batch is prepared. If ctx ends, or a batch cannot be prepared, those
// that are prepared are processed. inBatches returns the first error, or the cause of ctx if not every
// batch was processed.
func inBatches[B any](ctx context.Context, p *documents.Pages, t *tracker, patient *patience.Patience, s stages[B]) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	workers := max(1, s.workers)
	batches, prepared := make(chan B, max(workers, s.ahead)), make(chan B, max(workers, s.ahead)-1)
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
				}
			}
		})
	}
	n := 0
	err := p.Each(reading, patient, func(docs []bson.Raw) error {
		for docs := range slices.Chunk(docs, s.pace.Batch(s.size)) {
			b, err := s.plan(n, docs)
			if err != nil {
				return err
			}
			last := docs[len(docs)-1].Lookup("_id")
			t.begin(n, bson.RawValue{Type: last.Type, Value: slices.Clone(last.Value)})
			select {
			case batches <- b:
			case <-reading.Done():
				return context.Cause(reading)
			}
			n++
		}
		return nil
	})
	close(batches)
	running.Wait()
	if failure != nil {
		return failure
	}
	// All batches may have been read, and some still waiting, when the work was stopped.
	if err == nil && !t.complete() {
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

// run is what conversions in place and into a copy share: the counts, how far they have come, and the state.
type run struct {
	Options
	tracker *tracker
	there   *presence // the collections of the run
	mu      sync.Mutex
	res     Result
	saved   time.Time
	// before has the counts of earlier runs for the documents up to the position from which this one
	// continues.
	before Totals
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
	r := &run{Options: o, tracker: newTracker(), there: &presence{patience: o.Patience, now: time.Now}, res: Result{SkippedFor: rule.Tally{}}}
	r.there.add(coll, o.UUID)
	return r
}

// continues begins where the state says that an earlier run has ended.
func (r *run) continues() {
	s := r.State
	r.tracker.position = s.Position.raw()
	r.before = Totals{Changed: s.Changed, Values: s.Values, Skipped: s.Skipped}
	r.res.Earlier = r.before
}

// leave counts and lists values of a document that are left unchanged. counts are those of its batch, or nil.
func (r *run) leave(id bson.RawValue, left []rule.Left, counts *Totals) {
	if len(left) == 0 {
		return
	}
	r.mu.Lock()
	r.res.Skipped++
	if counts != nil {
		counts.Skipped++
	}
	for _, l := range left {
		r.res.SkippedFor.Add(l.Reason, 1)
	}
	r.mu.Unlock()
	r.SkipList.add(id, left)
}

// report reports the counts of all runs.
func (r *run) report() {
	r.mu.Lock()
	all := r.res.All()
	r.mu.Unlock()
	r.Report(all)
}

// done notes that a batch is done. It saves the state when that is due.
func (r *run) done(ctx context.Context, batch int, n Totals) error {
	if err := r.SkipList.Err(); err != nil {
		return err
	}
	r.tracker.done(batch, n)
	r.mu.Lock()
	r.res.Read += n.Read
	due := time.Since(r.saved) >= checkpointEvery
	r.mu.Unlock()
	r.report()
	r.Progress(int(n.Read))
	if !due {
		return r.there.sometimes(ctx)
	}
	at := r.tracker.checkpoint(r.Undo.Size)
	if err := r.there.check(ctx); err != nil {
		return err
	}
	return r.saveAt(at)
}

// save saves how far the conversion has come.
func (r *run) save() error { return r.saveAt(r.tracker.checkpoint(r.Undo.Size)) }

func (r *run) saveAt(at checkpoint) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.State
	if r.Retry == nil { // a list is read from its beginning again
		if at.position.Type != 0 {
			s.Position = newPosition(at.position)
		}
		s.UndoOffset = at.offset
	}
	s.UndoSize = r.Undo.Size()
	at.counts.add(r.before)
	s.Changed, s.Values, s.Skipped = at.counts.Changed, at.counts.Values, at.counts.Skipped
	r.saved = time.Now()
	return s.Save()
}

// turn waits until n more documents may be written. It returns errNotBegun if ctx ends first.
func (o *Options) turn(ctx context.Context, n int) error {
	err := o.Pace.Wait(ctx, n)
	if ctx.Err() != nil {
		return errNotBegun
	}
	return err
}

// mayBegin calls Check before a write. The context it returns limits the time of the check and the
// write together.
func (o *Options) mayBegin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.BatchTimeout, bulk.Timeout))
	if o.Check == nil {
		return ctx, cancel, nil
	}
	if err := o.Check(patience.Undated(ctx), o.Undo.Size()); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, cancel, nil
}
