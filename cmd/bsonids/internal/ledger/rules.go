package ledger

import "errors"

// Place is the file of a ledger: what identifies its machine, its device and its inode. An empty Place is
// not known.
type Place string

// Record is what the record in the database has about a conversion.
type Record struct {
	Run   string // the last run; empty if there is none
	Place Place  // of the ledger of that run
	Size  int64  // in bytes, of the undo log before the last batch that was sent
	Moves int64  // how often the record was written
	Ended bool   // that run has recorded its end: it writes no more, whatever has its ledger
}

// Have is what a run that is about to begin has.
type Have struct {
	Ledger interface{ Knows(run string) bool }
	Place  Place
	Size   int64 // of the undo log, in bytes
}

// The reasons for which a run may not begin.
var (
	ErrOlder = errors.New("the record names a run that the ledger does not know: the ledger is an older copy")
	ErrMore  = errors.New("the record names more of the undo log than there is: the files are an older copy")
	ErrMoved = errors.New("another run, with another copy of the ledger, writes to the record")
)

// Judge compares the record with what a run has. The error is [ErrOlder] or [ErrMore] if the run may
// not begin. If wait is true, the ledger is not the file that the record names, and may be a copy: the
// run must wait for as long as a run may be silent, and then ask [Again].
//
// A run that may begin writes its id to the ledger, and then, if the record is still as it was judged,
// to the record. It is therefore known to the ledger whenever it is in the record.
func Judge(h Have, r Record) (wait bool, err error) {
	switch {
	case r.Run == "":
		return false, nil
	case !h.Ledger.Knows(r.Run):
		return false, ErrOlder
	case h.Size < r.Size:
		return false, ErrMore
	}
	return !r.Ended && (r.Place != h.Place || h.Place == ""), nil
}

// Again is like [Judge] after a wait. was is the record before it. The error is [ErrMoved] if the
// record was written meanwhile.
func Again(h Have, was, is Record) error {
	if was.Moves != is.Moves {
		return ErrMoved
	}
	_, err := Judge(h, is)
	return err
}
