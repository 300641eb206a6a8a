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
	ErrTwice      = errors.New("the collection was converted before")
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

// judge applies the rules to the runs of the collection, which are sorted by epoch. [conflict] handles
// runs that have ended.
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
		switch same := same(r, want); {
		case slices.Contains(want.Knows, r.Conversion) && (r.locks(want) || takeOver || r.expired(now)):
		case r.Switches() && (takeOver || r.expired(now)):
		case r.Switches():
			return v, refuseFor(r, ErrHeld, "has not ended", wait)
		case same && (r.locks(want) || takeOver): // want has the files of r, which no other process uses, or copies
		case same:
			return v, refuseFor(r, ErrHeld, "has not recorded its end", "; make sure that it has ended, and give --take-over")
		case r.filesTell() && sameCollection(r, want) && takeOver:
			return v, refuseFor(r, ErrHeld, "has not ended, and only its files show which values are converted", "; continue it with APPLY --take-over")
		case r.filesTell() && sameCollection(r, want):
			return v, refuseFor(r, ErrHeld, "has not ended", "; wait for it, or continue it with APPLY, and --take-over on another machine")
		case takeOver, r.expired(now):
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

// filesTell reports whether only the files of the run distinguish converted values from others.
// Values on a skip list are converted only if they are still as listed, and --into converts copies.
func (r *Run) filesTell() bool { return r.SameSubtype() && !r.Retry && r.Into == "" }

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
	if want.Kind == Undo || r.Kind == Undo {
		return true
	}
	makes := func(p kinds.Pair) bool { // values that r converts
		from, _ := p.Subtypes()
		return slices.ContainsFunc(want.Pairs, func(w kinds.Pair) bool { _, to := w.Subtypes(); return to == from })
	}
	return !same(r, want) && (r.SameSubtype() || slices.ContainsFunc(r.Pairs, makes))
}

// conflict returns an error if earlier runs, as [history] returns them, may have left the values that want
// converts in an order other than that of --from. Values of one subtype do not show whether they
// were converted.
func conflict(runs []*Run, want *Run) error {
	if want.Kind == Undo || want.Switches() || want.Retry && !want.SameSubtype() {
		return nil
	}
	var all []*past // in the order of their last runs: one may have gone on after another one
	of := make(map[string]*past)
	for _, r := range runs {
		p := of[r.Conversion]
		if p == nil {
			p = &past{}
			of[r.Conversion] = p
		}
		if r.Kind == Undo {
			p.undo = r
			continue
		}
		killed := r.Ended == nil && r.IntoUUID != nil // it may have copied more than it has told
		p.last, p.wrote = r, p.wrote || r.UndoSize > 0 || r.Into != "" && r.Progress.Changed > 0 || killed
		all = append(slices.DeleteFunc(all, func(o *past) bool { return o == p }), p)
	}
	mine := of[want.Conversion]
	if mine != nil && mine.undo != nil {
		return errUndone(mine.undo)
	}
	all = slices.DeleteFunc(all, func(p *past) bool {
		return p == mine || !p.wrote || slices.Contains(want.Knows, p.last.Conversion)
	})
	for _, p := range want.Pairs {
		if from, _ := p.Subtypes(); from != legacySubtype {
			continue
		}
		if err := twice(p, want, all, mine != nil); err != nil {
			return err
		}
	}
	return nil
}

// past is what the record has about an earlier conversion.
type past struct {
	last  *Run // that converts
	undo  *Run // the last one; nil if there is none
	wrote bool
}

// twice returns an error if an earlier conversion may have left values of the fields of the pair in another order than
// that of the pair. It looks at the pairs that made values of subtype 3. One that made them of other values left all in
// its order.
func twice(p kinds.Pair, want *Run, all []*past, resumes bool) error {
	for _, c := range slices.Backward(all) {
		r, u := c.last, c.undo
		takes := func(o kinds.Pair) bool { // all values of subtype 3 out of it
			from, to := o.Subtypes()
			return from == legacySubtype && to != legacySubtype && covers(o.Fields, p.Fields)
		}
		// A copy in which the collection was found is as its run says.
		done := r.Outcome == Done || r.Into != ""
		if slices.ContainsFunc(r.Pairs, takes) && u == nil && done && !r.Retry && r.Progress.Skipped == 0 && r.Filter == "" {
			return nil // it left no values of subtype 3 that a conversion had made
		}
		made := slices.DeleteFunc(slices.Clone(r.Pairs), func(o kinds.Pair) bool {
			from, to := o.Subtypes()
			return to != legacySubtype || from != to && o.To == p.From || disjoint(o.Fields, p.Fields)
		})
		if len(made) == 0 {
			continue
		}
		switch leaves := func(o kinds.Pair) bool { return o.To == p.From && covers(o.Fields, p.Fields) }; {
		case u != nil && u.Outcome == Done && (u.Progress.Skipped == 0 || r.Undone != nil && r.Undone.Complete), r.Retry && (want.Retry || resumes):
			continue
		case u != nil:
			return refuseFor(u, ErrTwice, "was not finished: some values are in one order and some in the other", "; finish it with UNDO")
		case !done && !r.Retry:
			return refuseFor(r, ErrTwice, "was not finished, and only its files show which values are converted", "; continue it with APPLY, or undo it with UNDO")
		case want.Retry: // it converts only what is as it was listed
			continue
		case r.Retry, r.Progress.Skipped > 0, r.Filter != "", len(made) > 1, !leaves(made[0]):
			if r.Into != "" {
				return refuseFor(r, ErrTwice, "has made the copy "+r.Into+", whose values this conversion would convert again", "; if a cutover has put it in place, undo that first with UNDO")
			}
			return refuseFor(r, ErrTwice, "has converted values that this conversion would convert again", "; undo it first with UNDO")
		}
		return nil // it left the values in the order of --from
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
		text = "has written more to its undo log than there is: the files are an older copy; only the latest undo log shows which values are converted"
	case errors.Is(err, ledger.ErrMoved):
		text = "goes on with another copy of the ledger; end that run first"
	}
	return refuseFor(last, err, text, "")
}

const legacySubtype = 3

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

// covers reports whether a contains all fields of b.
func covers(a, b []string) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(f string) bool { return !slices.Contains(a, f) })
}
