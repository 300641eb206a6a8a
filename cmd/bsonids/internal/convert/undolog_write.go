package convert

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

// UndoLog is an undo log that is open for writing. It is safe for concurrent use, except that the entries of earlier
// runs are read before the first is written.
type UndoLog struct {
	*UndoReader

	size atomic.Int64 // of the records that are on the disk

	mu sync.Mutex // held while records are written
	w  *journal.Writer
	b  []byte // the records that are written
}

// OpenUndoLog opens the undo log at path for appending, or creates one. h is its header. The caller has locked the
// directory, and the ledger has the id. OpenUndoLog returns an error if the log has another id or fewer bytes than
// atLeast. It cuts a torn tail off, because no change was made on account of it. It does not modify a file that is not a
// whole undo log with the header.
func OpenUndoLog(path string, h Header, atLeast int64) (*UndoLog, error) {
	u, err := readUndoLog(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if err = lacks(0, atLeast); atLeast == 0 {
			err = makeUndoLog(path, h)
		}
		if err != nil {
			return nil, &RecordError{UndoRecord, path, err}
		}
		u, err = readUndoLog(path, os.O_RDWR)
	}
	if err != nil {
		return nil, err
	}
	l := &UndoLog{UndoReader: u}
	l.size.Store(u.end)
	if err = u.Covers(h.ID, atLeast); err == nil {
		if l.w, err = journal.NewWriter(u.file, u.ID, u.end); err == nil {
			return l, nil
		}
		err = u.fail(err)
	}
	return nil, errors.Join(err, u.Close())
}

// makeUndoLog makes a log without entries.
func makeUndoLog(path string, h Header) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	first, _ := json.Marshal(h) // which has strings only
	_, err = journal.Create(file, undoFormat, h.ID, first)
	return errors.Join(err, file.Close(), files.SyncDir(filepath.Dir(path)))
}

// Append writes an entry for each of the plans. They are on the disk when it returns. If it returns
// an error, none of the changes may be made.
func (l *UndoLog) Append(plans []Planned, again func(Planned) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = l.b[:0]
	ends := make([]int, len(plans))
	for i, p := range plans {
		l.b = appendEntry(l.b, p, again(p))
		ends[i] = len(l.b)
	}
	if err := l.w.Append(l.b, ends); err != nil {
		return l.fail(err)
	}
	l.size.Store(l.w.Size())
	return nil
}

// Size returns the size in bytes of the records that are on the disk. The next entry begins at this
// offset or later. A nil log has none.
func (l *UndoLog) Size() int64 {
	if l == nil {
		return 0
	}
	return l.size.Load()
}
