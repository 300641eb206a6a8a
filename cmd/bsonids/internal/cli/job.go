package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// job is a conversion that the flags describe.
type job struct {
	conversion convert.Conversion
	id         convert.Identity
	part       convert.Part
	query      bson.D
}

// job returns the conversion that the flags describe. The error is a usage error.
func (o *convertOptions) job() (j job, err error) {
	if j.conversion, j.id, err = o.conversion(); err != nil {
		return j, err
	}
	if j.part, err = convert.ParsePart(o.part); err != nil {
		return j, failure.Usagef("--part: %v", err)
	}
	if err := o.check(j.conversion); err != nil {
		return j, err
	}
	j.id.Part = j.part.String()
	if j.query, err = o.filter(); err != nil {
		return j, err
	}
	j.id.Query = o.query
	return j, nil
}

// outcome is how a conversion ended. One of inPlace and copied is set if the conversion began, and
// finished if an earlier run has completed it.
type outcome struct {
	about    report.Conversion
	inPlace  *convert.Result
	copied   *convert.Copied
	finished bool
	all      convert.Totals // with those of earlier runs
}

// convert carries out a conversion, or finds what it would change. The outcome is valid with an
// error, too.
func (o *convertOptions) convert(ctx context.Context, client *mongo.Client, j job) (out outcome, err error) {
	conv, id := j.conversion, j.id
	opts := convert.Options{Conversion: conv, Write: o.write, Workers: o.workers.value, Part: j.part, Batch: o.batch.value, Examples: o.examples.value,
		Query: j.query, Pace: o.load.pace, Patience: o.load.patience, Latency: o.load.latency()}
	out.about = report.Conversion{Identity: id, From: conv.From, To: conv.To, Write: o.write}
	again := func(f func() error) error { return o.load.patience.Do(ctx, f) }

	coll := client.Database(o.database).Collection(o.collection)
	var spec *mongo.CollectionSpecification
	err = again(func() (err error) {
		if o.follow {
			if coll, err = o.followed(ctx, client.Database(o.database)); err != nil {
				return err
			}
		}
		if spec, err = o.mayConvert(ctx, coll); err != nil {
			return err
		}
		if o.follow {
			if err := mayFollow(convert.CanFollow(ctx, coll, spec)); err != nil {
				return err
			}
		}
		return matching(ctx, coll, conv)
	})
	if err != nil {
		return out, err
	}

	opts.UUID = spec.UUID
	if o.write && o.state != "" {
		if opts.State, err = convert.OpenState(o.state, id); err != nil {
			return out, fileError(err, "%v", nameFlag(err))
		}
		state := opts.State
		defer func() { err = errors.Join(err, state.Close()) }()
		if err := opts.State.Bind(spec.UUID); err != nil {
			return out, fileError(err, "%v", nameFlag(err))
		}
		if err := again(func() error { return o.checkUndone(ctx, coll, opts.State) }); err != nil {
			return out, err
		}
		if opts.State.Done && o.retry == "" && !o.follow {
			out.finished = true
			out.all = convert.Totals{Changed: opts.State.Changed, Values: opts.State.Values, Skipped: opts.State.Skipped}
			return out, nil
		}
	}
	var run *claim
	if o.write {
		err := again(func() (err error) {
			run, err = o.begin(ctx, coll, conv, id, spec, opts.State)
			return err
		})
		if err != nil {
			return out, err
		}
		run.patience = o.load.patience
		defer func() {
			failed := err
			if err == nil && o.follow {
				failed = errFollowed
			}
			err = errors.Join(err, run.end(failed))
		}()
		opts.Check, opts.Report, opts.BatchTimeout = run.check, run.report, o.batchTimeout
		opts.Halves = o.halves
	}
	if opts.SkipList, err = o.openSkipList(opts.State); err != nil {
		return out, err
	}
	if opts.SkipList != nil {
		defer func() { err = errors.Join(err, opts.SkipList.Close()) }()
		if opts.State != nil && o.retry == "" {
			opts.State.SkipList = absolute(opts.SkipList.Path()) // saved with what is listed
		}
	}
	out.about.SkipList = opts.SkipList
	if o.retry != "" {
		if err := o.again(&opts); err != nil {
			return out, err
		}
	} else {
		d, err := o.decision(ctx, coll, opts, id, spec)
		if err != nil {
			return out, err
		}
		opts.Conversion.Judge = d.Judge(conv.From.Order)
		out.about.Decision, out.about.References, out.about.Earlier = d.Decision, d.references, d.earlier
		if o.write {
			if err := again(func() error { return run.decided(ctx, d.Decision) }); err != nil {
				return out, err
			}
		}
	}
	if o.write && o.undoLog != "" {
		if opts.Undo, err = convert.OpenUndoLog(o.undoLog, id, absolute(o.state), o.written(run, opts.State)); err != nil {
			return out, fileError(err, "%v", nameFlag(err))
		}
		defer func() { err = errors.Join(err, opts.Undo.Close()) }()
		if err := again(func() error { return run.undoLog(ctx, o.undoLog, opts.Undo) }); err != nil {
			return out, err
		}
	}

	var total int64
	err = again(func() (err error) {
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return out, err
	}
	copying := func() {}
	if opts.Progress = o.advance; opts.Progress == nil {
		bar := o.progress(total, "converting", o.database+"."+o.collection)
		copying = sync.OnceFunc(bar.Done)
		defer copying()
		opts.Progress = bar.Add
	}
	start := time.Now()
	if o.follow && o.write {
		var end func()
		opts.Follow, end = o.following(run, copying)
		defer end()
	}
	if o.into != "" {
		res, err := convert.Into(ctx, coll, client.Database(o.database).Collection(o.into), opts)
		out.copied = &res
		out.all = convert.Totals{Changed: res.Earlier + res.Documents, Values: res.EarlierValues + res.Values, Skipped: res.Skipped}
		if opts.State != nil {
			out.all.Skipped = max(res.Skipped, opts.State.Skipped)
		}
		if opts.Follow != nil && res.Stream.CaughtUp && errors.Is(err, context.Canceled) {
			err = nil // this is how a copy that follows its source ends
		}
		return out, err
	}
	res, err := convert.InPlace(ctx, coll, opts)
	out.inPlace = &res
	out.all = convert.Totals{Changed: res.Earlier + res.Documents, Values: res.EarlierValues + res.Values, Skipped: res.Skipped}
	if opts.State != nil {
		out.all.Skipped = max(res.Skipped, opts.State.Skipped)
	}
	out.about.Took = time.Since(start)
	return out, err
}

// mayConvert detects, before anything is changed, what would make the conversion fail later.
func (o *convertOptions) mayConvert(ctx context.Context, coll *mongo.Collection) (*mongo.CollectionSpecification, error) {
	spec, err := server.FindCollection(ctx, coll)
	if err != nil {
		return nil, err
	}
	if spec.Type == "view" || spec.Type == "timeseries" {
		return nil, failure.Usagef("cannot convert %s.%s, because it is a %s", o.database, o.collection, spec.Type)
	}
	if o.write {
		if err := o.notGuarded(ctx, coll, spec.UUID, o.to.Subtype, o.into != ""); err != nil {
			return nil, err
		}
	}
	if o.write && o.into == "" {
		// No document has this _id. The update changes nothing, and the server rejects it if the
		// user lacks the privilege to update.
		_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
	}
	return spec, err
}

// written returns the size in bytes that the undo log has at least, by the record and the state file.
func (o *convertOptions) written(run *claim, state *convert.StateFile) (size int64) {
	if run.lock != nil {
		size = run.lock.Needs()
	}
	if state != nil && state.UndoID != "" {
		size = max(size, state.UndoSize)
	}
	return size
}
