// Package apply converts collections: one, or all of a plan. It takes the lock of each, decides which
// values are converted, opens the files, and resumes what an earlier run has begun.
package apply

import (
	"context"
	"errors"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Options describe the conversion of one collection.
type Options struct {
	Conversion rule.Conversion
	ID         convert.Identity
	Part       convert.Part
	Division   string // as of plan.Plan.Division
	Query      bson.D // nil for all documents

	// Follow makes a copy follow its source until the context ends. It is nil if the copy does not. Its Record
	// and Beat are set when the conversion begins.
	Follow *convert.Follow

	plan.Files // UndoLog is empty for a copy
	// Listed are the files of the conversion that has listed the values to convert. They are empty for all values.
	Listed plan.Files
	// Others are the files of conversions of the collection with other filters: the values that they have made
	// are neither converted nor listed.
	Others []plan.Files
	Again  bool // the new collection is the copy of an earlier conversion

	Workers, Batch int
	Advance        func(documents int) // is called with the progress
}

func (o *Options) namespace() string { return o.ID.Database + "." + o.ID.Collection }

// Outcome is how the conversion of a collection ended. Result is set if it began, and Finished if an earlier run
// has completed it.
type Outcome struct {
	Result   *convert.Result
	Finished bool
	SkipList *convert.SkipList // nil if it was not opened
	All      convert.Totals    // with those of earlier runs
}

// worker converts one collection.
type worker struct {
	*migration.Session
	Options
	db    *mongo.Database
	coll  *mongo.Collection
	spec  *mongo.CollectionSpecification
	state *convert.StateFile
	held  bool // the record does not have that the run has ended
}

// Collection converts a collection as was decided in its state file. The outcome is valid with an error, too.
func Collection(ctx context.Context, s *migration.Session, o Options) (out Outcome, err error) {
	w := &worker{Session: s, Options: o, db: s.Client.Database(o.ID.Database)}
	return w.convert(ctx)
}

func (w *worker) convert(ctx context.Context) (out Outcome, err error) {
	if err := w.Do(ctx, func() error { return w.find(ctx) }); err != nil {
		return out, err
	}
	if err := w.open(ctx); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, w.close(err)) }()
	if err := w.Do(ctx, func() error { return w.copyGone(ctx) }); err != nil {
		return out, err
	}
	if w.state.Done && w.Follow == nil {
		if err := w.logged(); err != nil {
			return out, err
		}
		out.Finished = true
		out.All = convert.Totals{Changed: w.state.Changed, Values: w.state.Values, Skipped: w.state.Skipped}
		return out, w.tell(ctx, out.All)
	}
	opts := convert.Options{Conversion: w.Conversion, Workers: w.Workers, Part: w.Part, Batch: w.Batch, State: w.state,
		Query: w.Query, Pace: w.Pace, Patience: w.Patience, Latency: new(patience.Latency), UUID: w.spec.UUID}
	var run *migration.Claim
	if err = w.Do(ctx, func() (err error) { // the result, which the deferred function reads
		run, err = w.begin(ctx, opts)
		return err
	}); err != nil {
		return out, err
	}
	defer func() {
		failed := err
		switch {
		case err == nil && w.Follow != nil:
			failed = errFollowed
		case err != nil && ctx.Err() != nil:
			failed = context.Cause(ctx)
		}
		end := run.End(failed)
		w.held = end != nil
		err = errors.Join(err, end)
	}()
	opts.Check, opts.Report, opts.BatchTimeout, opts.Halves = run.Check, run.Report, w.BatchTimeout, w.Halves
	if opts.Made, err = w.made(); err != nil {
		return out, err
	}
	var has *convert.Listed
	if w.state.Decisions != nil {
		has = &convert.Listed{}
		*has = w.state.Listed
	}
	if opts.SkipList, err = convert.OpenSkipList(w.SkipList, w.namespace(), has); err != nil {
		return out, migration.FileError(err)
	}
	defer func() { err = errors.Join(err, opts.SkipList.Close()) }()
	if err := w.state.Lists(opts.SkipList); err != nil {
		return out, migration.FileError(err)
	}
	out.SkipList = opts.SkipList
	if err := w.judge(&opts); err != nil {
		return out, err
	}
	if w.UndoLog != "" {
		atLeast := run.LogSize()
		if w.state.UndoID != "" {
			atLeast = max(atLeast, w.state.UndoSize)
		}
		if opts.Undo, err = convert.OpenUndoLog(w.UndoLog, w.ID, migration.Absolute(w.State), atLeast); err != nil {
			return out, migration.FileError(err)
		}
		defer func() { err = errors.Join(err, opts.Undo.Close()) }()
		if err := w.Do(ctx, func() error { return migration.OfRecord(run.SetUndoID(ctx, opts.Undo.ID)) }); err != nil {
			return out, err
		}
	}
	return out, w.carryOut(ctx, run, opts, &out)
}

// made returns the values that conversions with other filters have made. The error names an undo log that lacks
// some.
func (w *worker) made() (*convert.Values, error) {
	if len(w.Others) == 0 {
		return nil, nil
	}
	var logs []string
	for _, f := range w.Others {
		s, err := convert.ReadState(f.State)
		if err == nil {
			err = migration.LogOf(s).In(f.UndoLog)
		}
		if err != nil {
			return nil, migration.IncompleteLogs(migration.Nameless(err), "values would be converted twice", err)
		}
		logs = append(logs, f.UndoLog)
	}
	return convert.ReadNew(logs)
}

// close closes the state file. A new one is removed if the conversion was refused before it began.
func (w *worker) close(failed error) error {
	if failed != nil && !w.held && !w.state.Begun() && failure.Explain(failed, "").Kind == failure.Usage {
		return w.state.Discard()
	}
	return w.state.Close()
}

// find finds the collection, and detects, before anything is changed, what would make the conversion fail
// later.
func (w *worker) find(ctx context.Context) (err error) {
	w.coll = w.db.Collection(w.ID.Collection)
	if w.Follow != nil {
		if w.coll, err = sourceOf(ctx, w.db, w.Options); err != nil {
			return err
		}
	}
	if w.spec, err = server.FindCollection(ctx, w.coll); err != nil {
		return err
	}
	if w.spec.Type == "view" || w.spec.Type == "timeseries" {
		return failure.Usagef("cannot convert %s, because it is a %s", w.namespace(), w.spec.Type)
	}
	if err := migration.NotGuarded(ctx, w.coll, w.spec.UUID, w.Conversion, false, w.ID.Into != ""); err != nil {
		return err
	}
	if w.ID.Into == "" {
		// No document has this _id. The update changes nothing, and the server rejects it if the
		// user lacks the privilege to update.
		_, err := w.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
		if err != nil {
			return err
		}
	}
	return migration.Matching(ctx, w.coll, w.Conversion)
}

// open opens the state file. The error is a usage error if the conversion was undone.
func (w *worker) open(ctx context.Context) (err error) {
	if w.state, err = convert.OpenState(w.State, w.ID); err != nil {
		return migration.FileError(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.state.Discard())
		}
	}()
	if err := w.state.Bind(w.spec.UUID); err != nil {
		return migration.FileError(err)
	}
	if w.state.Undone != "" {
		return failure.Usagef("the state file %s: the conversion was undone on %s; make a plan in a new directory", w.State, w.state.Undone)
	}
	if w.Again && !w.state.Created {
		w.state.Created = true
		if err := w.state.Save(); err != nil {
			return err
		}
	}
	if w.state.Conversion == "" {
		return nil
	}
	return w.Do(ctx, func() error { return record.CheckUndone(ctx, w.db, w.coll.Name(), w.state.Conversion) })
}

// begin begins the run in the record.
func (w *worker) begin(ctx context.Context, opts convert.Options) (*migration.Claim, error) {
	id := w.ID
	run := record.Run{Kind: record.Convert, Collection: id.Collection, UUID: w.spec.UUID, Conversion: ledger.NewID(),
		Pairs: id.Pairs, Into: id.Into, Part: id.Part, Division: w.Division,
		Query: id.Query, Retry: w.Listed.State != "", State: migration.Absolute(w.State), UndoLog: migration.Absolute(w.UndoLog)}
	for _, f := range w.Others {
		s, err := convert.ReadState(f.State)
		if err != nil {
			return nil, migration.FileError(err)
		}
		run.Knows = append(run.Knows, s.Conversion)
	}
	if w.state.Conversion == "" {
		w.state.Conversion = run.Conversion
		if err := w.state.Save(); err != nil {
			return nil, err
		}
	}
	run.Conversion, run.UndoID = w.state.Conversion, w.state.UndoID
	documents, err := w.coll.EstimatedDocumentCount(ctx)
	if err != nil {
		return nil, err
	}
	run.Progress.Documents = w.Part.Count(documents)
	var logSize int64
	if w.UndoLog != "" {
		if info, err := os.Stat(w.UndoLog); err == nil {
			logSize = info.Size()
		}
	}
	if w.Listed.State == "" {
		run.Decisions = w.state.Decisions
	}
	return w.Claim(ctx, w.db, record.Request{Run: run, LogSize: logSize, Ledger: w.state, Agree: w.agree, May: func(ctx context.Context) error {
		if id.Into == "" {
			return nil
		}
		return convert.MayCopy(ctx, w.coll, w.db.Collection(id.Into), opts)
	}})
}

// carryOut converts.
func (w *worker) carryOut(ctx context.Context, run *migration.Claim, opts convert.Options, out *Outcome) error {
	opts.Progress = w.Advance
	if w.Follow != nil {
		opts.Follow = w.followed(run)
	}
	var res convert.Result
	var err error
	if w.ID.Into == "" {
		res, err = convert.InPlace(ctx, w.coll, opts)
	} else {
		res, err = convert.Into(ctx, w.coll, w.db.Collection(w.ID.Into), opts)
	}
	if opts.Follow != nil && res.Stream != nil && res.Stream.CaughtUp && errors.Is(err, context.Canceled) {
		err = nil // this is how a copy that follows its source ends
	}
	out.Result, out.All = &res, res.All()
	return err
}
