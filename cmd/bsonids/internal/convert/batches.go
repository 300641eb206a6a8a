package convert

import (
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"golang.org/x/time/rate"
)

// errNotBegun says that the work was stopped while a batch waited for its turn.
var errNotBegun = errors.New("not begun")

// inBatches reads p to its end, has plan make a batch of each page, and has several workers process the batches at the
// same time. Once ctx ends, or a batch fails, no further one is begun: process gets a context for waiting that ends with
// ctx, and one for the work, which is cancelled by another batch's failure alone. It returns the first error, and ctx's
// cause where not every batch was done.
func inBatches[B any](ctx context.Context, p *pages, t *tracker, workers int,
	plan func(number int, docs []bson.Raw) (B, error), process func(waiting, work context.Context, b B) error,
) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	batches := make(chan B, workers)
	var failure error
	var once sync.Once
	var running sync.WaitGroup
	for range max(1, workers) {
		running.Go(func() {
			for b := range batches {
				if reading.Err() != nil {
					continue
				}
				if err := process(reading, work, b); err != nil && !errors.Is(err, errNotBegun) {
					once.Do(func() { failure = err; stop(err); cancel(err) })
				}
			}
		})
	}
	read := func() error {
		for n := 0; ; n++ {
			docs, err := p.next(reading)
			if err != nil || len(docs) == 0 {
				return err
			}
			b, err := plan(n, docs)
			if err != nil {
				return err
			}
			t.begin(n, p.after)
			select {
			case batches <- b:
			case <-reading.Done():
				return context.Cause(reading)
			}
		}
	}
	err := read()
	close(batches)
	running.Wait()
	if failure != nil {
		return failure
	}
	// All may have been read when the work was stopped, and some of it still be waiting for its turn.
	if err == nil && !t.complete() {
		return context.Cause(ctx)
	}
	return err
}

// setUp fills in what the options leave open, and returns what keeps to their rate, nil where they have none.
func (o *Options) setUp() *rate.Limiter {
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	if o.Batch == 0 {
		o.Batch = batchSize
	}
	if o.Rate == 0 {
		return nil
	}
	// A batch waits as a whole, so it is no longer than half a second.
	o.Batch = max(1, min(o.Batch, o.Rate/2))
	return rate.NewLimiter(rate.Limit(o.Rate), o.Batch)
}

// turn waits until n more documents may be changed.
func turn(ctx context.Context, l *rate.Limiter, n int) error {
	if l == nil {
		return nil
	}
	err := l.WaitN(ctx, n)
	if ctx.Err() != nil {
		return errNotBegun
	}
	return err
}
