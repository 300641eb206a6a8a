package record

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
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

	// May, which may be nil, is called when no other run is in the way, before the writes of earlier ones
	// are waited for. Its error ends the run.
	May func(ctx context.Context) error
	// Notice is called if a run has to wait for the writes of another run to end.
	Notice func(text string)
}

// Lock is a run that has begun. It is safe for concurrent use.
type Lock struct {
	coll *mongo.Collection
	stop context.CancelFunc
	live sync.WaitGroup

	// log returns the size and the sum of the undo log. It is nil if there is none.
	log func() (size int64, sum uint32)

	intents sync.Mutex // held while an intent is written
	intent  intent     // the last one

	mu    sync.Mutex // held while the document is changed
	run   Run
	alive time.Time // when the last update of the document was sent
	wrote time.Time // when the first write may have begun
	ahead int64     // the last epoch that was checked
}

// intent is what the record has of the undo log, and that no other run had taken over when it was sent.
type intent struct {
	size int64
	sent time.Time
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
		if v, err = admit(runs, &l.run, q.TakeOver, now); err != nil {
			_, never := admit(runs, &l.run, q.TakeOver, now.Add(time.Hour))
			if never == nil && life.wait(ctx, runs, now) {
				continue
			}
			return nil, err
		}
		v.wait = slices.DeleteFunc(v.wait, func(w waiting) bool {
			_, ok := idle.Load(w.run.By.Token)
			return ok
		})
		l.run.Epoch = 1
		if n := len(runs); n > 0 {
			l.run.Epoch = runs[n-1].Epoch + 1
		}
		l.run.ID, l.run.TakesOver, l.run.Started, l.run.Updated = id(l.run.Collection, l.run.Epoch), v.takesOver, now, now
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
	err = l.later(ctx, v.wait)
	if err == nil {
		err = l.alone(ctx, &life)
	}
	if err == nil && q.May != nil {
		err = q.May(ctx)
	}
	if err == nil {
		err = l.settle(ctx, v.wait, q.Notice)
	}
	if err != nil {
		return nil, errors.Join(err, l.End(err, time.Time{}))
	}
	return l, nil
}

// later makes the time limits of the last batches of runs that are taken over count from now: until the document of this run was
// in the record, they did not know of it.
func (l *Lock) later(ctx context.Context, open []waiting) error {
	if len(open) == 0 {
		return nil
	}
	now, err := Now(ctx, l.coll.Database())
	for i, w := range open {
		if w.run.Ended == nil {
			open[i].until = w.until.Add(now.Sub(l.run.Started))
		}
	}
	return err
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

// Run returns the random id of the run.
func (l *Lock) Run() string { return l.run.By.Token }

// Started returns when the run began, by the server.
func (l *Lock) Started() time.Time { return l.run.Started }

// SetLog sets the undo log, of which the record has the size and the sum before what it has is changed.
func (l *Lock) SetLog(log func() (size int64, sum uint32)) { l.log = log }

// SetDiffers records that the copy still differs from its source.
func (l *Lock) SetDiffers(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set(ctx, bson.D{{Key: "differs", Value: true}})
}

// SetIntoUUID records the UUID of the copy.
func (l *Lock) SetIntoUUID(ctx context.Context, uuid *bson.Binary) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run.IntoUUID = uuid
	return l.set(ctx, bson.D{{Key: "intoUUID", Value: *uuid}})
}

// intentFor is for how long batches may begin on account of one intent.
const intentFor = time.Second

// Check is called before each write whose old values the undo log has up to the size logged, which is 0 if there is no log.
// It returns an error that wraps [ErrTakenOver] if another run has taken over, and otherwise the time from which the limit
// of the batch counts. One intent covers the batches of all workers that were in the log when it was sent.
func (l *Lock) Check(ctx context.Context, logged int64) (time.Time, error) {
	l.intents.Lock()
	defer l.intents.Unlock()
	if age := time.Since(l.intent.sent); l.intent.size >= logged && age < min(intentFor, l.run.BatchTimeout/4) {
		return l.intent.sent, nil
	}
	is := intent{sent: time.Now()}
	var log Log
	if l.log != nil {
		size, sum := l.log()
		is.size, log = size, Log{size, int64(sum)}
	}
	if err := l.intend(ctx, log); err != nil {
		return time.Time{}, err
	}
	l.intent = is
	return is.sent, nil
}

// CheckNow is [Lock.Check] for a command that changes no values. It never goes by an intent that was sent before.
func (l *Lock) CheckNow(ctx context.Context) error {
	l.intents.Lock()
	defer l.intents.Unlock()
	return l.intend(ctx, l.run.Log)
}

// intend makes the record have the log, and then looks whether it still has the run, and for runs that have taken over.
func (l *Lock) intend(ctx context.Context, log Log) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wrote.IsZero() {
		l.wrote = time.Now()
	}
	if log != l.run.Log || time.Since(l.alive) >= lease-signOfLife {
		if err := l.set(ctx, bson.D{{Key: "log", Value: log}}); err != nil {
			return err
		}
		l.run.Log = log
	}
	for {
		next := id(l.run.Collection, l.ahead+1)
		runs, err := find[*Run](ctx, l.coll, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{l.run.ID, next}}}}})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(runs, func(r *Run) bool { return r.By.Token == l.run.By.Token }) {
			return l.deleted()
		}
		i := slices.IndexFunc(runs, func(r *Run) bool { return r.ID == next })
		if i < 0 {
			return nil
		}
		if slices.Contains(runs[i].TakesOver, l.run.Epoch) {
			return refuse(ErrTakenOver, "another run has taken over from this one: %s", runs[i])
		}
		l.ahead++
	}
}

// deleted returns the error of a run whose document is not in the record any more.
func (l *Lock) deleted() error {
	return refuse(ErrTakenOver, "the document %s of this run in %s was deleted", l.run.ID, Name)
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
			_ = l.sign(ctx) // the next write detects an error
		}
	}
}

// sign writes the progress of the run at once. It waits for the answer when ctx ends, too: what ends the run is then not on its
// way to the server beside it.
func (l *Lock) sign(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
	defer cancel()
	return l.Beat(ctx)
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

// set updates the document of the run: the progress, and the
// fields. It sets the fields named in now to the time of the server. The caller holds l.mu.
//
// An update without an answer may reach the server late. It then changes nothing if a later one was there before.
func (l *Lock) set(ctx context.Context, fields bson.D, now ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	dates := bson.D{{Key: "updated", Value: true}}
	for _, f := range now {
		dates = append(dates, bson.E{Key: f, Value: true})
	}
	l.run.Change++
	fields = append(fields, bson.E{Key: "progress", Value: l.run.Progress}, bson.E{Key: "change", Value: l.run.Change})
	sent := time.Now()
	// A driver may send this one twice, so that the number may be there.
	earlier := bson.D{{Key: "_id", Value: l.run.ID}, {Key: "by.token", Value: l.run.By.Token}, {Key: "change", Value: bson.D{{Key: "$lte", Value: l.run.Change}}}}
	res, err := l.coll.UpdateOne(ctx, earlier, bson.D{{Key: "$set", Value: fields}, {Key: "$currentDate", Value: dates}})
	if err == nil && res.MatchedCount == 0 {
		err = l.deleted()
	}
	if err == nil {
		l.alive = sent
	}
	return err
}
