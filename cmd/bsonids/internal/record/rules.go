package record

import (
	"errors"
	"fmt"
	"time"
)

// ErrHeld is wrapped by the [*Error] of a run that may not begin while another one has not ended.
var ErrHeld = errors.New("another run holds the collection")

// Error explains in one sentence why a run may not begin.
type Error struct {
	Text   string
	Err    error
	Remedy string // what a person can do, as the rest of the sentence; APPLY and UNDO stand for the commands of the other run
	Run    *Run   // the other run, if the remedy is about it
}

// wait is the remedy against a run that may be in progress.
const wait = "; wait for it, or give --take-over if its process has ended"

func (e *Error) Error() string { return e.Text }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func refuse(reason error, format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), Err: reason}
}

// refuseFor returns an [Error] about the run r.
func refuseFor(r *Run, reason error, text, remedy string) error {
	return &Error{Text: r.String() + " " + text, Err: reason, Remedy: remedy, Run: r}
}

// lease is how long a run may write after the last update of its document, which is a sign of life. A
// run that has shown none for so long has ended, or updates its document before it writes again, and
// then finds the one that took over. Neither the name of a machine nor the number of a process shows
// that a run has ended: two containers may share both.
const lease = 6 * time.Second

// expired reports whether the lease of a run that has not recorded its end is over.
func (r *Run) expired(now time.Time) bool { return now.After(r.Updated.Add(lease)) }

// verdict is the result of applying the rules to a run that is about to begin.
type verdict struct {
	takesOver []int64
	wait      []waiting // runs whose writes must end first
}

// waiting is a run that may have sent a batch to which there was no answer.
type waiting struct {
	run   *Run
	until time.Time // when the time limit of the batch is over
}

// unanswered returns until when a server may carry out a batch of the run, which sends none after the
// time end.
func (r *Run) unanswered(end time.Time) time.Time {
	if last := r.Updated.Add(lease); last.Before(end) {
		end = last
	}
	return end.Add(r.BatchTimeout)
}

// there returns the first time that is known at which the record had the document of the run, which is read now. A server may
// take long to insert it: that was after it began.
func (r *Run) there(now time.Time) time.Time {
	switch {
	case r.Ended != nil:
		return *r.Ended
	case r.Updated.After(r.Started):
		return r.Updated
	}
	return now
}

// admit applies the rules to the runs of the collection, which are sorted by epoch.
func admit(runs []*Run, want *Run, takeOver bool, now time.Time) (verdict, error) {
	var v verdict
	await := func(r *Run, until time.Time) {
		if hurts(r, want) && now.Before(until) {
			v.wait = append(v.wait, waiting{r, until})
		}
	}
	over := make(map[int64]time.Time) // when each run was taken over, at the latest
	for _, r := range runs {
		for _, e := range r.TakesOver {
			if _, ok := over[e]; !ok {
				over[e] = r.there(now)
			}
		}
	}
	for _, r := range runs {
		if r.Ended != nil {
			if r.Lost > 0 {
				await(r, r.Ended.Add(-r.Lost).Add(r.BatchTimeout))
			}
			continue
		}
		if since, ok := over[r.Epoch]; ok {
			await(r, r.unanswered(since))
			continue
		}
		switch {
		case r.Switches() && (takeOver || r.expired(now)):
		case r.Switches():
			return v, refuseFor(r, ErrHeld, "has not ended", wait)
		case r.locks(want), takeOver: // want has the directory of r, which no other process uses, or a copy
		case r.expired(now):
		default:
			return v, refuseFor(r, ErrHeld, "has not ended", wait)
		}
		await(r, r.unanswered(now))
		v.takesOver = append(v.takesOver, r.Epoch)
	}
	return v, nil
}

// locks reports whether the runs have the lock of one directory, which only one process can have.
func (r *Run) locks(want *Run) bool { return r.Lock != "" && r.Lock == want.Lock }

// same reports whether both runs belong to the same conversion, or to its undo.
func same(r, want *Run) bool { return r.Conversion == want.Conversion }

// hurts reports whether a late write of r could match a value that want has written or restored.
func hurts(r, want *Run) bool {
	if r.Switches() { // a run that continues it sends the same commands
		return r.Kind != want.Kind || !same(r, want)
	}
	if r.Into != "" {
		return r.Into == want.Into && !same(r, want)
	}
	return want.Kind == Undo || r.Kind == Undo // no conversion takes the values that another one makes
}
