package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// The reasons for which a run may not begin. An [*Error] wraps one of them.
var (
	ErrHeld       = errors.New("another run holds the collection")
	ErrUndone     = errors.New("the conversion was undone")
	ErrIncomplete = errors.New("the undo log lacks entries")
)

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
	undoSize  int64     // least size of the undo log
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

// judge applies the rules to the runs of the collection, which are sorted by epoch.
func judge(runs []*Run, want *Run, takeOver bool, now time.Time) (verdict, error) {
	var v verdict
	await := func(r *Run, until time.Time) {
		if hurts(r, want) && now.Before(until) {
			v.wait = append(v.wait, waiting{r, until})
		}
	}
	over := make(map[int64]time.Time) // when each run was taken over
	for _, r := range runs {
		for _, e := range r.TakesOver {
			if _, ok := over[e]; !ok {
				over[e] = r.Started
			}
		}
	}
	for _, r := range runs {
		if same(r, want) {
			v.undoSize = max(v.undoSize, r.UndoSize)
		}
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
		case same(r, want):
			return v, refuseFor(r, ErrHeld, "has not recorded its end", "; make sure that it has ended, and give --take-over")
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
func same(r, want *Run) bool {
	return r.Conversion == want.Conversion || r.UndoID != "" && r.UndoID == want.UndoID
}

// hurts reports whether a late write of r could match a value that want has written or restored. A
// run that resumes r has the undo log of r and writes the same values.
func hurts(r, want *Run) bool {
	if r.Switches() { // a run that continues it sends the same commands
		return r.Kind != want.Kind || !same(r, want)
	}
	if r.Into != "" {
		return r.Into == want.Into && !same(r, want)
	}
	return want.Kind == Undo || r.Kind == Undo // no conversion takes the values that another one makes
}

// undone returns an error if the record has an undo of the conversion that want goes on with.
func undone(runs []*Run, want *Run) error {
	for _, r := range runs {
		if want.Kind == Convert && r.Kind == Undo && r.Conversion == want.Conversion {
			return errUndone(r)
		}
	}
	return nil
}

// standing returns what the record has about the conversion of want, for [ledger.Judge], and its last run, or nil
// if it has none.
func standing(runs []*Run, want *Run) (r ledger.Record, last *Run) {
	for _, run := range runs {
		if run.Kind == Convert && run.Conversion == want.Conversion {
			last = run
			r.Size, r.Moves = max(r.Size, run.UndoSize), r.Moves+run.Updated.UnixMilli()
		}
	}
	if last != nil {
		r.Run, r.Place, r.Ended = last.By.Token, ledger.Place(last.Lock), last.Ended != nil
	}
	return r, last
}

// refuseLedger explains an error of package ledger about the run last.
func refuseLedger(err error, last *Run) error {
	text := "is not known to the ledger, which is an older copy; use the latest one"
	switch {
	case errors.Is(err, ledger.ErrMore):
		text = "has written more to its undo log than there is: the files are an older copy; use the latest ones"
	case errors.Is(err, ledger.ErrMoved):
		text = "goes on with another copy of the ledger; end that run first"
	}
	return refuseFor(last, err, text, "")
}

// sameCollection reports whether r has written the collection of want, as opposed to another one
// with the same name.
func sameCollection(r, want *Run) bool {
	return r.UUID == nil || want.UUID == nil || r.UUID.Equal(*want.UUID)
}

// overlap reports whether a field of one of the pairs may be one of the others.
func overlap(a, b []kinds.Pair) bool {
	return slices.ContainsFunc(a, func(p kinds.Pair) bool {
		return slices.ContainsFunc(b, func(q kinds.Pair) bool { return !disjoint(p.Fields, q.Fields) })
	})
}

// disjoint reports whether no path matches a field of both a and b. A pattern with * may overlap
// with any other.
func disjoint(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	for _, f := range slices.Concat(a, b) {
		if strings.Contains(f, "*") {
			return false
		}
	}
	return !slices.ContainsFunc(a, func(f string) bool { return slices.Contains(b, f) })
}
