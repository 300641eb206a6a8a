package apply

import (
	"context"
	"errors"
	"os"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// step is one conversion of a plan, and how it ended.
type step struct {
	plan.Step
	plan.Files // UndoLog is empty for a copy
	// before is the step that this one goes on from.
	before plan.Step
	what   migration.Described
	of     *Planned

	fresh     bool  // nothing is decided about it
	documents int64 // about how many there are to read

	// Set while it is carried out.
	*migration.Session
	coll  *mongo.Collection
	spec  *mongo.CollectionSpecification
	state *convert.State // in the ledger
	begun bool

	result          report.AppliedStep
	values, changed int64 // in this run
	err             error
}

// run carries out the step as was decided, and notes how it ended. advance is called with the
// progress.
func (st *step) run(ctx context.Context, advance func(documents int)) {
	st.Session = st.of.Child(st.of.plan.Namespace(st.Collection))
	st.err = st.convert(ctx, advance)
	if st.err != nil && st.begun {
		st.result.Status = report.Stopped
	}
}

func (st *step) convert(ctx context.Context, advance func(documents int)) (err error) {
	if err := st.Do(ctx, func() error { return st.find(ctx) }); err != nil {
		return err
	}
	if st.Into != "" {
		made := st.of.state.Of(st.Step).Conversion
		if err := st.Do(ctx, func() error { return migration.NotReleased(ctx, st.of.db, st.Collection, st.Into, made) }); err != nil {
			return err
		}
	}
	if err := st.open(); err != nil {
		return err
	}
	if err := st.Do(ctx, func() error { return record.CheckUndone(ctx, st.of.db, st.coll.Name(), st.state.Conversion) }); err != nil {
		return err
	}
	if err := st.Do(ctx, func() error { return st.copyGone(ctx) }); err != nil {
		return err
	}
	opts := convert.Options{Selection: st.what.Selection, Workers: st.of.Workers, Batch: st.of.Batch, State: st.state,
		Pace: st.Pace, Patience: st.Patience, Latency: new(patience.Latency), UUID: st.spec.UUID, Progress: advance}
	opts.Conversion = slices.Clone(opts.Conversion)
	if st.state.Done {
		return st.tell(ctx, opts)
	}
	var run *migration.Claim
	if err = st.Do(ctx, func() (err error) { // the result, which the deferred function reads
		run, err = st.begin(ctx, opts)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		failed := err
		if err != nil && ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
		err = errors.Join(err, run.End(failed))
	}()
	opts.Check, opts.Report, opts.Bound, opts.BatchTimeout, opts.Halves = run.Check, run.Report, run.SetIntoUUID, st.BatchTimeout, st.Halves
	if err := st.judge(&opts); err != nil {
		return err
	}
	list, err := convert.OpenSkipList(st.SkipList, st.of.plan.Namespace(st.Collection), &st.state.Listed)
	if err != nil {
		return migration.FileError(err)
	}
	opts.SkipList = list
	defer func() {
		st.state.Lists(nil)
		err = errors.Join(err, list.Close())
		if list.Begun() {
			st.result.SkipList = list.Path()
		}
	}()
	st.state.Lists(list)
	if st.UndoLog != "" {
		if err := st.state.BeginUndoLog(); err != nil {
			return migration.FileError(err)
		}
		opts.Undo, err = convert.OpenUndoLog(st.UndoLog, convert.Header{ID: st.state.UndoID, Database: st.what.Database, Task: st.Task}, max(run.LogSize(), st.state.UndoSize))
		if err != nil {
			return migration.FileError(err)
		}
		defer func() { err = errors.Join(err, opts.Undo.Close()) }()
		if err := st.Do(ctx, func() error { return migration.OfRecord(run.SetUndoID(ctx, opts.Undo.ID)) }); err != nil {
			return err
		}
	}
	return st.pass(ctx, opts)
}

// pass converts, and notes the result.
func (st *step) pass(ctx context.Context, opts convert.Options) (err error) {
	var res convert.Result
	if st.Into == "" {
		res, err = convert.InPlace(ctx, st.coll, opts)
	} else {
		res, err = convert.Into(ctx, st.coll, st.of.db.Collection(st.Into), opts)
	}
	a, all := &st.result, res.All()
	st.begun, st.values, st.changed = true, res.Values, res.Changed
	a.Status, a.Values, a.Documents, a.Skipped, a.SkippedFor = report.DoneStep, all.Values, all.Changed, all.Skipped, res.SkippedFor
	if err == nil && st.Into != "" && !res.Verified {
		a.Status, a.Findings = report.Unverified, append(res.Conflicts, res.Proof.Skips...)
	}
	return err
}

// find finds the collection, and detects, before anything is changed, what would make the conversion fail
// later.
func (st *step) find(ctx context.Context) (err error) {
	st.coll = st.of.db.Collection(st.Collection)
	if st.spec, err = server.FindCollection(ctx, st.coll); err != nil {
		return err
	}
	if st.spec.Type == "view" || st.spec.Type == "timeseries" {
		return failure.Usagef("cannot convert %s, because it is a %s", st.of.plan.Namespace(st.Collection), st.spec.Type)
	}
	if err := migration.NotFenced(ctx, st.of.db, st.Collection); err != nil {
		return err
	}
	if st.Into == "" {
		// No document has this _id. The update changes nothing, and the server rejects it if the
		// user lacks the privilege to update.
		_, err := st.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
		if err != nil {
			return err
		}
	}
	return migration.Matching(ctx, st.coll, st.what.Conversion)
}

// open finds the state of the step, and binds it to the collection.
func (st *step) open() error {
	st.state = st.of.state.Of(st.Step)
	if err := st.state.Bind(st.spec.UUID); err != nil {
		return migration.FileError(err)
	}
	if st.Again && !st.state.Created { // the new collection is the copy of an earlier conversion
		was, _ := st.earlier()
		st.state.Created, st.state.CopyUUID = true, was.CopyUUID
		return st.state.Save()
	}
	return nil
}

// judge sets what is converted: by the decision in the ledger, or by a list of values.
func (st *step) judge(opts *convert.Options) error {
	if err := opts.Conversion.Decide(st.state.Decisions); err != nil {
		return failure.Usagef("%s: %v", st.of.Dir, err)
	}
	if st.Listed {
		var err error
		if opts.Retry, err = st.retry(opts.Conversion, st.state.Decisions); err != nil {
			return err
		}
	}
	return nil
}

// retry returns the values of a list that the step converts, and sets the judges for them.
func (st *step) retry(c rule.Conversion, decisions []decide.Decision) (*convert.Retry, error) {
	s, list := st.earlier()
	r, err := convert.ReadListed(list, st.of.plan.Namespace(st.Collection), s.Listed, c)
	for i, p := range st.Pairs {
		c[i].Judge = decide.Retry(&decisions[i], c[i].From, p.Trust)
	}
	return r, migration.FileError(err)
}

// begin begins the run in the record.
func (st *step) begin(ctx context.Context, opts convert.Options) (*migration.Claim, error) {
	run := record.Run{Kind: record.Convert, Task: st.Task, UUID: st.spec.UUID, Conversion: st.state.Conversion, UndoID: st.state.UndoID,
		IntoUUID: convert.UUID(st.state.CopyUUID), UndoLog: migration.Absolute(st.UndoLog)}
	documents, err := st.coll.EstimatedDocumentCount(ctx)
	if err != nil {
		return nil, err
	}
	run.Progress.Documents = documents
	var logSize int64
	if info, err := os.Stat(st.UndoLog); err == nil {
		logSize = info.Size()
	}
	if !st.Listed {
		run.Decisions = st.state.Decisions
	}
	return st.Claim(ctx, st.of.db, record.Request{Run: run, LogSize: logSize, Ledger: st.state, May: func(ctx context.Context) error {
		if st.Into == "" {
			return nil
		}
		return convert.MayCopy(ctx, st.coll, st.of.db.Collection(st.Into), opts)
	}})
}

// copyGone makes a copy that is complete be made again if it was dropped. One that the record does not have is compared again,
// so that a cutover finds it there.
func (st *step) copyGone(ctx context.Context) error {
	if st.Into == "" || !st.state.Done {
		return nil
	}
	dropped, err := migration.Dropped(ctx, st.of.db, []string{st.state.Conversion}, st.Into)
	if err != nil {
		return err
	}
	if len(dropped) == 0 {
		runs, err := record.Copies(ctx, st.of.db, st.Collection)
		if err != nil || slices.ContainsFunc(runs, func(r *record.Run) bool { return r.Conversion == st.state.Conversion }) {
			return err
		}
		st.state.CopyGone()
		return st.state.Save()
	}
	st.Warn("%s is not there any more: it is made again", st.of.plan.Namespace(st.Into))
	if why, err := st.of.unsharded(ctx, st.Step); err != nil {
		return err
	} else if why != "" {
		return failure.Usagef("the copy was dropped, and is to be made again: %s", why)
	}
	st.state.CopyGone()
	return st.state.Save()
}

// tell notes that an earlier run has completed the conversion. The error says that its undo log lacks entries. A
// copy may lack its end in the record, for which the cutover waits: that run was killed after it had saved its
// state. tell then makes the record have it, with a run of its own.
func (st *step) tell(ctx context.Context, opts convert.Options) error {
	if st.UndoLog != "" {
		if err := migration.LogOf(st.Collection, st.state).In(st.UndoLog); err != nil {
			return migration.IncompleteLogs("the conversion is done, and nothing restores its values", err)
		}
	}
	did := convert.Totals{Changed: st.state.Changed, Values: st.state.Values, Skipped: st.state.Skipped}
	st.result.Status, st.result.Values, st.result.Documents, st.result.Skipped = report.DoneStep, did.Values, did.Changed, did.Skipped
	if st.Into == "" {
		return nil
	}
	var run *migration.Claim
	err := st.Do(ctx, func() error {
		runs, err := record.Copies(ctx, st.of.db, st.Collection)
		for _, r := range runs {
			if run == nil && r.Conversion == st.state.Conversion && r.Outcome != record.Done {
				run, err = st.begin(ctx, opts)
			}
		}
		return err
	})
	if err != nil || run == nil {
		return err
	}
	run.Report(did)
	return run.End(nil)
}
