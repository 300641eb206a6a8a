package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

// UndoLog is an undo log that is open for writing. It is safe for concurrent use.
type UndoLog struct {
	Header

	file  *os.File
	begin int64        // offset of the first entry
	size  atomic.Int64 // of the records that are on the disk

	mu sync.Mutex // held while records are written
	w  *journal.Writer
	b  []byte // the records that are written
}

// OpenUndoLog opens the undo log at path for appending, or creates one. h is its header. The caller has locked the
// directory, and the ledger has the id. OpenUndoLog returns an error if the log has another id or fewer bytes than
// atLeast, or if undo has marked it.
func OpenUndoLog(path string, h Header, atLeast int64) (*UndoLog, error) {
	fail := func(err error) (*UndoLog, error) { return nil, &RecordError{UndoRecord, path, err} }
	if err := files.Regular(path); err != nil {
		return fail(err)
	}
	flags := os.O_RDWR
	if atLeast == 0 {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) && atLeast > 0 {
		err = lacks(0, atLeast)
	}
	if err != nil {
		return fail(err)
	}
	l := &UndoLog{file: file}
	if err := l.recover(h, atLeast); err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	return l, nil
}

// recover reads the log through and cuts a torn tail off, because no change was made on account of it.
// It does not modify a file that is not a whole undo log with the header.
func (l *UndoLog) recover(h Header, atLeast int64) error {
	f := l.file
	var err error
	if l.Header, l.begin, err = readHeader(f); err != nil {
		return err
	}
	if l.begin == 0 {
		if atLeast > 0 {
			return lacks(0, atLeast)
		}
		l.Header = h
		first, _ := json.Marshal(h) // which has strings only
		if l.w, err = journal.Create(f, undoFormat, h.ID, first); err != nil {
			return err
		}
		l.begin = l.w.Size()
		l.size.Store(l.begin)
		return files.SyncDir(filepath.Dir(f.Name()))
	}
	if l.ID != h.ID {
		return errAnotherLog
	}
	m, _, end, err := scanLog(f, l.Header, l.begin)
	switch {
	case err != nil:
		return err
	case end < atLeast:
		return lacks(end, atLeast)
	case m != nil:
		return fmt.Errorf("%s; make a plan in a new directory", m)
	}
	l.size.Store(end)
	l.w, err = journal.NewWriter(f, l.ID, end)
	return err
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
		return &RecordError{UndoRecord, l.file.Name(), err}
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

// Close closes the file.
func (l *UndoLog) Close() error { return l.file.Close() }
