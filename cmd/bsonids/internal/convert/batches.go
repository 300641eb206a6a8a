package convert

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// errNotBegun reports that the work was stopped while a batch waited for the rate limit.
var errNotBegun = errors.New("not begun")

// inBatches reads p to its end, calls plan for each page to make a batch, and processes the batches
// with several workers. If ctx ends or a batch fails, no further batch is started. The first
// context of process is for waiting and ends with ctx. The second context is for the work and is
// canceled only if another batch fails. inBatches returns the first error, or the cause of ctx if
// not every batch was processed.
func inBatches[B any](ctx context.Context, p *documents.Pages, t *tracker, workers int, patient *patience.Patience,
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
			var docs []bson.Raw
			err := patient.Do(reading, func() (err error) {
				docs, err = p.Next(reading)
				return err
			})
			if err != nil || len(docs) == 0 {
				return err
			}
			b, err := plan(n, docs)
			if err != nil {
				return err
			}
			t.begin(n, p.After)
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
	// All batches may have been read, and some still waiting, when the work was stopped.
	if err == nil && !t.complete() {
		return context.Cause(ctx)
	}
	return err
}

// setUp sets the defaults of the options.
func (o *Options) setUp() {
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	if o.Batch == 0 {
		o.Batch = batchSize
	}
	o.Batch = o.Pace.Batch(o.Batch)
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
	var size int64
	if o.Undo != nil {
		size = o.Undo.Size()
	}
	if err := o.Check(patience.Undated(ctx), size); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, cancel, nil
}
