package record

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ErrTakenOver is the error of a run that must not write any more, because another run has taken
// over.
var ErrTakenOver = errors.New("another run has taken over from this one")

// signOfLife is the interval at which an idle run updates its document.
const signOfLife = 2 * time.Second

// Request describes a run that is about to begin.
type Request struct {
	Run      Run    // without the fields that Begin sets: ID, Epoch, TakesOver, By, times
	Version  string // of this program
	TakeOver bool   // take over from a run that has not ended
	LogSize  int64  // size of the undo log in bytes; 0 if there is none
	Ledger   Ledger // nil if there is none

	// May, which may be nil, is called when no other run is in the way, before the writes of earlier ones
	// are waited for. Its error ends the run.
	May func(ctx context.Context) error
	// Notice is called if a run has to wait for the writes of another run to end.
	Notice func(text string)
}

// Ledger knows the runs of a migration. A run is in the ledger before it is in the record, so that a
// ledger that lacks one is an older copy.
type Ledger interface {
	Knows(run string) bool
	Begin(run string) error
}

// Lock is a run that has begun. It is safe for concurrent use.
type Lock struct {
	coll *mongo.Collection
	stop context.CancelFunc
	live sync.WaitGroup
	need int64 // least size of the undo log, in bytes

	mu    sync.Mutex // held while the document is changed
	run   Run
	alive time.Time // when the last update of the document was sent
	wrote time.Time // when the first write may have begun
	ahead int64     // the last epoch that was checked
	// logSize is the size of the undo log in bytes. It is in the record before the first write.
	logSize int64
}

// Begin inserts the document of a new run, and waits until the writes of the runs that it takes
// over from have ended. The error is an [*Error] if the rules of the record forbid the run. The
// caller must call [Lock.End].
func Begin(ctx context.Context, db *mongo.Database, q Request) (*Lock, error) {
	coll, err := open(ctx, db)
	if err != nil {
		return nil, err
	}
	l := &Lock{coll: coll, run: q.Run}
	l.run.By = whoAmI(q.Version)
	var v verdict
	life := signs{tell: q.Notice}
	for {
		l.alive = time.Now()
		runs, err := read(ctx, coll, q.Run.Collection)
		if err != nil {
			return nil, err
		}
		now, err := Now(ctx, db)
		if err != nil {
			return nil, err
		}
		if v, err = judge(runs, &l.run, q.TakeOver, now); err != nil {
			_, never := judge(runs, &l.run, q.TakeOver, now.Add(time.Hour))
			if never == nil && life.wait(ctx, runs, now) {
				continue
			}
			return nil, err
		}
		if err := undone(runs, &l.run); err != nil {
			return nil, err
		}
		if err := l.mayBeCopy(ctx, runs, q); err != nil {
			return nil, err
		}
		v.wait = slices.DeleteFunc(v.wait, func(w waiting) bool {
			_, ok := idle.Load(w.run.By.Token)
			return ok
		})
		l.need = v.undoSize
		if err := l.Covers(q.LogSize); err != nil { // before the other run is made to stop
			return nil, err
		}
		l.run.Epoch = 1
		if n := len(runs); n > 0 {
			l.run.Epoch = runs[n-1].Epoch + 1
		}
		l.run.ID, l.run.TakesOver, l.run.Started, l.run.Updated = id(l.run.Collection, l.run.Epoch), v.takesOver, now, now
		if q.Ledger != nil && !q.Ledger.Knows(l.run.By.Token) {
			if err := q.Ledger.Begin(l.run.By.Token); err != nil {
				return nil, err
			}
		}
		if err = l.insert(ctx); err == nil {
			break
		}
		if !mongo.IsDuplicateKeyError(err) {
			idle.Store(l.run.By.Token, true) // the document may have been inserted
			return nil, err
		}
	}
	l.ahead = l.run.Epoch
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.live.Go(func() { l.showLife(work) })
	err = l.alone(ctx, &life)
	if err == nil && q.May != nil {
		err = q.May(ctx)
	}
	if err == nil {
		err = l.settle(ctx, v.wait, q)
	}
	if err != nil {
		return nil, errors.Join(err, l.End(err, time.Time{}))
	}
	return l, nil
}

// insert inserts the document of the run. An end of ctx does not interrupt it: the document might be
// there, and another run would wait for the writes of this one.
func (l *Lock) insert(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_, err := l.coll.InsertOne(ctx, l.run)
	return err
}

// Covers returns an error if the undo log, whose size is in bytes, lacks entries that runs of the
// conversion have written.
func (l *Lock) Covers(size int64) error {
	if size < l.need {
		return refuse(ErrIncomplete, "the undo log has %d bytes, but an earlier run has written %d; use the latest one", size, l.need)
	}
	return nil
}

// LogSize returns the size in bytes that the undo log has at least.
func (l *Lock) LogSize() int64 { return l.need }

// SetUndoID records the id of the undo log.
func (l *Lock) SetUndoID(ctx context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.UndoID = id
	return l.set(ctx, bson.D{{Key: "undoId", Value: id}})
}

// SetIntoUUID records the UUID of the copy.
func (l *Lock) SetIntoUUID(ctx context.Context, uuid *bson.Binary) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.IntoUUID = uuid
	return l.set(ctx, bson.D{{Key: "intoUUID", Value: *uuid}})
}

// Check returns an error that wraps [ErrTakenOver] if another run has taken over. Call it before
// each write, with the size of the undo log in bytes, or 0 if there is none. The deadline of ctx
// must not be later than that of the batch.
func (l *Lock) Check(ctx context.Context, undoSize int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote.IsZero() {
		l.wrote = time.Now()
	}
	l.logSize = max(l.logSize, undoSize)
	if l.logSize > 0 && l.run.UndoSize == 0 || time.Since(l.alive) >= lease-signOfLife {
		if err := l.set(ctx, nil); err != nil {
			return err
		}
	}
	for {
		var next Run
		err := l.coll.FindOne(ctx, bson.D{{Key: "_id", Value: id(l.run.Collection, l.ahead+1)}},
			options.FindOne().SetProjection(bson.D{{Key: "decisions", Value: 0}})).Decode(&next)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil
		}
		if err != nil {
			return err
		}
		if slices.Contains(next.TakesOver, l.run.Epoch) {
			return refuse(ErrTakenOver, "another run has taken over from this one: %s", &next)
		}
		l.ahead++
	}
}

// Progress changes the progress of the run, which the next update writes.
func (l *Lock) Progress(change func(p *Progress)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.run.Progress)
}

// Beat writes the progress of the run at once.
func (l *Lock) Beat(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set(ctx, nil)
}

// showLife updates the document periodically.
func (l *Lock) showLife(ctx context.Context) {
	tick := time.NewTicker(signOfLife)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = l.Beat(ctx) // the next write detects an error
		}
	}
}

// End records that every write of the run has been answered, except those that were sent before the time
// lost, which is zero if there are none. failed is the error that stopped the run, or nil if it is done.
func (l *Lock) End(failed error, lost time.Time) error {
	l.stop()
	l.live.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	end := bson.D{{Key: "outcome", Value: Done}}
	if failed != nil {
		end = bson.D{{Key: "outcome", Value: Stopped}, {Key: "reason", Value: failed.Error()}}
	}
	if ago := time.Since(lost); !l.wrote.IsZero() && lost.After(l.wrote) && ago < l.run.BatchTimeout {
		end = append(end, bson.E{Key: "lost", Value: max(ago, 1)})
	}
	err := l.set(ctx, end, "ended")
	if err != nil && l.wrote.IsZero() {
		idle.Store(l.run.By.Token, true)
	}
	return err
}

// set updates the document of the run: the progress, the size of the undo log if there is one, and the
// fields. It sets the fields named in now to the time of the server. The caller holds l.mu.
func (l *Lock) set(ctx context.Context, fields bson.D, now ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dates := bson.D{{Key: "updated", Value: true}}
	for _, f := range now {
		dates = append(dates, bson.E{Key: f, Value: true})
	}
	fields = append(fields, bson.E{Key: "progress", Value: l.run.Progress})
	if l.logSize > 0 {
		fields = append(fields, bson.E{Key: "undoSize", Value: l.logSize})
	}
	sent := time.Now()
	res, err := l.coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: l.run.ID}}, bson.D{{Key: "$set", Value: fields}, {Key: "$currentDate", Value: dates}})
	if err == nil && res.MatchedCount == 0 {
		err = refuse(ErrTakenOver, "the document %s of this run in %s was deleted", l.run.ID, Name)
	}
	if err == nil {
		l.alive, l.run.UndoSize = sent, l.logSize
	}
	return err
}
