package migrate

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// step is one conversion of a plan, and how it ended.
type step struct {
	plan.Step
	conversion string // its name in the record
	what       Described
	of         *Application

	released  error       // says when its copy was released, which a cutover has put in place; nil if none was
	last      *record.Run // the last one that has changed something or made a copy; nil if there is none
	decisions []decide.Decision
	documents int64 // about how many there are to read

	// Set while it is carried out.
	*session.Session
	coll  *mongo.Collection
	spec  *mongo.CollectionSpecification
	begun bool

	result          AppliedStep
	values, changed int64 // in this run
	err             error
}

// errLate is why a run stops that services have kept busy.
var errLate = errors.New("services write old values all the time: the last pass found some, and there may be more")

// run carries out the step as was decided, and notes how it ended. advance is called with the
// progress.
func (st *step) run(ctx context.Context, advance func(documents int)) {
	st.Session = st.of.Child(st.of.plan.Namespace(st.Collection))
	st.err = st.convert(ctx, advance)
	if st.err != nil && st.begun {
		st.result.Status = Stopped
	}
}

// done reports whether the step has made its copy, which equals its converted source, or a cutover has exchanged it.
func (st *step) done() bool {
	if st.Into == "" || st.last == nil {
		return false
	}
	if x, _ := st.of.recorded.Exchange(st.conversion); x != nil {
		return true
	}
	last := st.of.recorded.Last(st.conversion)
	return last.Outcome == record.Done && !last.Differs && slices.EqualFunc(last.Pairs, st.Pairs, kinds.Pair.Equal)
}

func (st *step) convert(ctx context.Context, advance func(documents int)) (err error) {
	if st.released != nil {
		st.result = st.of.recorded.Step(st.conversion, st.Task)
		return nil
	}
	if err := st.Do(ctx, func() error { return st.find(ctx) }); err != nil {
		return err
	}
	var known bool // the copy is that of an earlier run
	var gone string
	if st.Into != "" {
		if err := st.Do(ctx, func() (err error) { known, gone, err = st.copied(ctx); return err }); err != nil {
			return err
		}
	}
	if st.done() && gone == "" {
		st.result = st.of.recorded.Step(st.conversion, st.Task)
		return nil
	}
	opts := convert.Options{Selection: st.what.Selection, Workers: st.of.Workers, Batch: st.of.Batch,
		Pace: st.Pace, Patience: st.Patience, Latency: new(patience.Latency), UUID: st.spec.UUID, Progress: advance}
	opts.Conversion = slices.Clone(opts.Conversion)
	if err := opts.Conversion.Decide(st.decisions); err != nil {
		return failure.Usagef("%s: %v", st.of.Dir, err)
	}
	opts.Copy.Begun = known
	var run *session.Claim
	if err = st.Do(ctx, func() (err error) { // the result, which the deferred function reads
		run, err = st.begin(ctx, opts, gone)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		failed := err
		switch {
		case err != nil && ctx.Err() != nil:
			failed = context.Cause(ctx)
		case err == nil && st.result.Late > 0:
			failed = errLate
		}
		err = errors.Join(err, run.End(failed))
	}()
	opts.Check, opts.Report, opts.BatchTimeout, opts.Halves = run.Check, progressOf(run), st.BatchTimeout, st.Halves
	opts.Copy.Bound = func(ctx context.Context, uuid *bson.Binary) error {
		if known && !st.of.recorded.HasCopy(st.conversion, uuid) { // since it was looked for
			return &failure.Error{Kind: failure.Failed, Text: st.of.plan.Namespace(st.Into) + " is another collection than the copy that was begun, which was dropped or renamed"}
		}
		return run.SetIntoUUID(ctx, uuid)
	}
	if opts.SkipList, err = convert.CreateSkipList(st.SkipList(st.of.Dir), st.of.plan.Namespace(st.Collection)); err != nil {
		return files.FileError(err)
	}
	defer func() {
		err = errors.Join(err, opts.SkipList.Close())
		if opts.SkipList.Begun() {
			st.result.SkipList = opts.SkipList.Path()
		}
	}()
	if st.Into != "" {
		return st.copy(ctx, opts, run)
	}
	if err := await(ctx, st.Session, st.of.unanswered[st.Collection]); err != nil {
		return err
	}
	head := undolog.Header{Run: run.Run(), Started: run.Started(), Database: st.what.Database, Task: st.Task, Limit: st.BatchTimeout}
	if st.spec.UUID != nil {
		head.CollectionUUID = hex.EncodeToString(st.spec.UUID.Data)
	}
	opts.Undo = undolog.New(st.of.Dir, head)
	defer func() { err = errors.Join(err, opts.Undo.Close()) }()
	run.SetLog(func() (int64, uint32) { is := opts.Undo.Extent(); return is.Size, is.Sum })
	res, err := convert.InPlace(ctx, st.coll, opts)
	st.note(res)
	if err == nil && res.Late > 0 {
		st.result.Status, st.result.Late = Stopped, res.Late
	}
	return err
}

// copy makes the copy.
func (st *step) copy(ctx context.Context, opts convert.Options, run *session.Claim) error {
	res, err := convert.Into(ctx, st.coll, st.of.db.Collection(st.Into), opts)
	st.note(res)
	if err != nil || res.Verified {
		return err
	}
	st.result.Status, st.result.Findings = Unverified, append(res.Conflicts, res.Proof.Skips...)
	return st.Do(ctx, func() error { return run.SetDiffers(ctx) })
}

// note notes what this run did, and what all have done.
func (st *step) note(res convert.Result) {
	a := &st.result
	st.begun, st.values, st.changed = true, res.Values, res.Changed
	a.Status, a.Values, a.Documents, a.Skipped, a.SkippedFor = Done, res.Values, res.Changed, res.Skipped, res.SkippedFor
	if st.Into == "" {
		before := st.of.recorded.Step(st.conversion, st.Task)
		a.Values, a.Documents = a.Values+before.Values, a.Documents+before.Documents
	}
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
	if st.Into == "" {
		// No document has this _id. The update changes nothing, and the server rejects it if the
		// user lacks the privilege to update.
		_, err := st.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: bson.NewObjectID()}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}})
		return err
	}
	return nil
}

// copied reports whether the copy is one that an earlier run has begun, or why that is gone, if there was one. If the server gives
// no UUIDs, a collection of the name may be another one, which is not written.
func (st *step) copied(ctx context.Context) (known bool, gone string, err error) {
	spec, err := server.Specification(ctx, st.of.db.Collection(st.Into))
	if err != nil || st.last == nil {
		return false, "", err
	}
	if x, _ := st.of.recorded.Exchange(st.conversion); x != nil { // it has another name
		return true, "", nil
	}
	switch {
	case spec.Name == "":
	case spec.UUID == nil && !st.done():
		return false, "the server gives no UUIDs of collections, so that nothing tells whether this is the copy that was begun: drop it, and give the command again", nil
	case st.of.recorded.HasCopy(st.conversion, spec.UUID):
		return true, "", nil
	}
	st.Warn("%s is not there any more: it is made again", st.of.plan.Namespace(st.Into))
	why, err := st.of.unsharded(ctx, st.Step)
	if err == nil && why != "" {
		err = failure.Usagef("the copy was dropped, and is to be made again: %s", why)
	}
	return false, "the copy that was begun was dropped or renamed", err
}

// begin begins the run in the record.
func (st *step) begin(ctx context.Context, opts convert.Options, gone string) (*session.Claim, error) {
	run := record.Run{Kind: record.Convert, Task: st.Task, UUID: st.spec.UUID, Conversion: st.conversion, Decisions: st.decisions}
	documents, err := st.coll.EstimatedDocumentCount(ctx)
	if err != nil {
		return nil, err
	}
	run.Progress.Documents = documents
	if err := st.Limit(ctx, st.of.db, st.Collection); err != nil {
		return nil, err
	}
	return st.Claim(ctx, st.of.db, record.Request{Run: run, May: func(ctx context.Context) error {
		// Another migration may have converted values since the record was read, or a cutover may have begun. None can begin now.
		now, err := readRecord(ctx, st.of.db)
		if err == nil {
			err = now.notFenced(st.of.plan.Database, st.Task)
		}
		if err == nil {
			err = now.notReleased(st.of.plan.Database, st.Task, st.conversion)
		}
		if err == nil {
			err = st.of.clashWith(ctx, st, now)
		}
		if err != nil || st.Into == "" {
			return err
		}
		err = convert.MayCopy(ctx, st.coll, st.of.db.Collection(st.Into), opts)
		if err != nil && gone != "" {
			err = fmt.Errorf("%s: %w", gone, err)
		}
		return err
	}})
}

// progressOf returns a function that records the progress of a run.
func progressOf(run *session.Claim) func(convert.Totals) {
	return func(t convert.Totals) {
		run.Progress(func(p *record.Progress) {
			p.Read, p.Changed, p.Values, p.Skipped = t.Read, t.Changed, t.Values, t.Skipped
		})
	}
}
