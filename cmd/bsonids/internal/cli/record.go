package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// recordFlags holds the flags, of the commands that write, for the record of conversions.
type recordFlags struct {
	noRecord, unrecorded bool
	takeOver             bool
	batchTimeout         time.Duration // 0 for the default of the server
	halves               bool          // the server ends a batch at its time limit, so that a smaller one is tried
}

func (f *recordFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.noRecord, "no-record", false, "do not use "+record.Name+", which prevents two conversions of a collection at the same time")
	flags.BoolVar(&f.takeOver, "take-over", false, "take over from a run that has not ended, after its last writes have ended")
	flags.DurationVar(&f.batchTimeout, "batch-timeout", 0, "time limit for a batch, and for how long a server may carry out one of a run that was lost; by default 30s if the server ends a batch at its limit, and 5m otherwise")
	cmd.MarkFlagsMutuallyExclusive("no-record", "take-over")
}

func (f *recordFlags) check() error {
	if f.batchTimeout != 0 && (f.batchTimeout < time.Second || f.batchTimeout > time.Hour) {
		return failure.Usagef("--batch-timeout must be from 1s to 1h")
	}
	return nil
}

// limit sets the time limit of a batch, unless a flag has set it. It asks the server whether it ends what
// exceeds its limit: only then is nothing lost if the limit is short.
func (f *recordFlags) limit(ctx context.Context, db *mongo.Database, collection string) error {
	if f.halves {
		return nil
	}
	enforced, err := server.EnforcesTime(ctx, db.Collection(collection))
	if err != nil {
		return err
	}
	f.halves = enforced
	switch {
	case f.batchTimeout != 0:
	case enforced:
		f.batchTimeout = bulk.Enforced
	default:
		f.batchTimeout = bulk.Timeout
	}
	return nil
}

// claim is the lock of a command that writes. A claim without a lock does nothing.
type claim struct {
	lock     *record.Lock
	patience *patience.Patience // for the end of the run; may be nil

	mu     sync.Mutex
	totals record.Progress
}

// claim begins a run in the record of the database.
func (c *console) claim(ctx context.Context, db *mongo.Database, f *recordFlags, run record.Run, logSize int64, ledger record.Ledger) (*claim, error) {
	if !run.Switches() {
		if err := f.limit(ctx, db, run.Collection); err != nil {
			return nil, err
		}
	}
	if f.noRecord {
		return &claim{}, nil
	}
	run.BatchTimeout = f.batchTimeout
	locked := run.State
	if run.Kind == record.Undo {
		locked = run.UndoLog
	}
	if locked != "" {
		if id := record.FileID(convert.LockPath(locked)); id != "" {
			run.Files = []string{id}
		}
	}
	v, _ := build()
	lock, err := record.Begin(ctx, db, record.Request{Run: run, Version: v, TakeOver: f.takeOver, LogSize: logSize, Ledger: ledger,
		Notice: func(text string) { c.warn("%s", text) }})
	if err != nil {
		return nil, nameRecord(err)
	}
	return &claim{lock: lock, totals: run.Progress}, nil
}

// nameRecord turns an error with which the record rejects a run into a usage error, and explains
// what a missing privilege is needed for.
func nameRecord(err error) error {
	var refused *record.Error
	if errors.As(err, &refused) && !errors.Is(err, record.ErrTakenOver) {
		return failure.Usagef("%s%s", refused.Text, remedy(refused))
	}
	if failure.Means(err, failure.Unauthorized) {
		e := failure.Explain(err, "")
		return &failure.Error{Kind: e.Kind, Text: e.Text + "; conversions are recorded in " + record.Name + ", unless --no-record is given", Err: err}
	}
	return err
}

// remedy returns what to do about a run that may not begin, as the rest of the sentence.
func remedy(e *record.Error) string {
	r := e.Run
	if r == nil {
		r = &record.Run{}
	}
	files := commandLine([]string{"--state", r.State, "--undo-log", r.UndoLog})
	undo := commandLine([]string{"bsonids", "undo", r.UndoLog, "--write"})
	const lastResort = "; as a last resort, if you know the byte order of all values, give --no-record --confirm-unrecorded"
	switch e.Remedy {
	case record.TakeOver:
		return "; make sure that it has ended, and give --take-over"
	case record.Wait:
		return "; wait for it, or give --take-over if its process has ended"
	case record.WaitOnly:
		return "; wait for it"
	case record.GiveFiles:
		return "; with --take-over, give " + files
	case record.Resume:
		return "; wait for it, or continue it with " + files + ", and --take-over on another machine"
	case record.FinishUndo:
		return "; finish it with " + undo + lastResort
	case record.FinishFirst:
		return "; continue it with " + files + ", or undo it with " + undo + lastResort
	case record.UndoFirst:
		return "; undo it first with " + undo + lastResort
	case record.StartAnew:
		return "; start again with a new state file and a new undo log"
	}
	return ""
}

func (c *claim) check(ctx context.Context, undoSize int64) error {
	if c.lock == nil {
		return nil
	}
	return c.lock.Check(ctx, undoSize)
}

// report records the progress of a conversion.
func (c *claim) report(t convert.Totals) {
	if c.lock == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.Read, c.totals.Changed, c.totals.Values, c.totals.Skipped = t.Read, t.Changed, t.Values, t.Skipped
	c.lock.Progress(c.totals)
}

// follow records how a copy follows its source.
func (c *claim) follow(f convert.Followed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.totals.Stream = &record.Stream{LagSeconds: f.LagSeconds, CaughtUp: f.CaughtUp, Pending: f.Pending}
	c.lock.Progress(c.totals)
}

// undoLog records the undo log.
func (c *claim) undoLog(ctx context.Context, path string, l *convert.UndoLog) error {
	if c.lock == nil {
		return nil
	}
	return nameRecord(c.lock.Undo(ctx, absolute(path), l.ID, record.FileID(convert.LockPath(path))))
}

// decided records which values are converted.
func (c *claim) decided(ctx context.Context, decision any) error {
	if c.lock == nil {
		return nil
	}
	return c.lock.Decided(ctx, decision)
}

// undone records that the conversion was undone, or is being undone.
func (c *claim) undone(ctx context.Context, complete bool) error {
	if c.lock == nil {
		return nil
	}
	return c.lock.MarkUndone(ctx, complete)
}

// end ends the run with the error of the command. A run that skipped documents is done.
func (c *claim) end(failed error) error {
	if c.lock == nil {
		return nil
	}
	if errors.Is(failed, failure.ErrIncomplete) {
		failed = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.patience.Do(context.Background(), func() error { return c.lock.End(c.totals, failed, c.patience.Lost()) })
}

// absolute returns the absolute path, for a user on another machine.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// begin begins a conversion in the record.
func (o *convertOptions) begin(ctx context.Context, coll *mongo.Collection, conv convert.Conversion, id convert.Identity,
	spec *mongo.CollectionSpecification, state *convert.StateFile,
) (*claim, error) {
	run := record.Run{Kind: record.Convert, Collection: id.Collection, UUID: spec.UUID, Conversion: record.NewConversion(),
		From: id.From, To: id.To, FromSubtype: conv.From.Subtype, ToSubtype: conv.To.Subtype, Fields: id.Fields, Into: id.Into, Part: id.Part,
		Query: id.Query, Retry: o.retry != "", State: absolute(o.state), UndoLog: absolute(o.undoLog)}
	if state != nil && !o.noRecord && o.retry == "" {
		if state.Conversion == "" {
			state.Conversion = run.Conversion
			if err := state.Save(); err != nil {
				return nil, err
			}
		}
		run.Conversion, run.UndoID = state.Conversion, state.UndoID
	}
	var err error
	if run.Progress.Documents, err = coll.EstimatedDocumentCount(ctx); err != nil {
		return nil, err
	}
	var logSize int64
	if o.undoLog != "" {
		if info, err := os.Stat(o.undoLog); err == nil {
			logSize = info.Size()
		}
	}
	var ledger record.Ledger
	if state != nil && o.retry == "" {
		ledger = state
	}
	return o.claim(ctx, coll.Database(), &o.recordFlags, run, logSize, ledger)
}

// checkUndone returns a usage error if the conversion of the state file was undone.
func (o *convertOptions) checkUndone(ctx context.Context, coll *mongo.Collection, state *convert.StateFile) error {
	if state.Undone != "" {
		return failure.Usagef("--state %s: the conversion was undone on %s; start again with a new state file and a new undo log", o.state, state.Undone)
	}
	if o.noRecord || state.Conversion == "" {
		return nil
	}
	return nameRecord(record.CheckUndone(ctx, coll.Database(), coll.Name(), state.Conversion))
}
