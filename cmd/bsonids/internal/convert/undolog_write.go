package convert

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
)

// UndoLog is an undo log that is open for writing. It is safe for concurrent use.
type UndoLog struct {
	Header

	file  *os.File
	lock  *flock.Flock
	begin int64        // offset of the first entry
	size  atomic.Int64 // of the lines that are on the disk

	mu  sync.Mutex // held while lines are written
	b   []byte     // the lines that are written
	err error      // the first error; nothing may be written to the server after it
}

// OpenUndoLog opens the undo log at path for appending, or creates one whose header has the path of
// the state file. It returns an error if the log is of another conversion, if another process uses
// it, or if undo has marked it.
func OpenUndoLog(path string, id Identity, state string) (*UndoLog, error) {
	fail := func(err error) (*UndoLog, error) { return nil, &RecordError{UndoRecord, path, err} }
	lock, err := LockFile(path)
	if err != nil {
		return fail(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(errors.Join(err, lock.Unlock()))
	}
	l := &UndoLog{file: file, lock: lock}
	if err := l.recover(id, state); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	return l, nil
}

// recover reads the header and removes an incomplete last line, because no change was made on
// account of it. It does not modify a file that is not an undo log of the conversion.
func (l *UndoLog) recover(id Identity, state string) error {
	whole, err := wholeLines(l.file)
	if err != nil {
		return err
	}
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if whole == 0 {
		if err := l.mayBegin(); err != nil {
			return err
		}
		var random [8]byte
		rand.Read(random[:])
		l.Header = Header{Format: undoFormat, ID: hex.EncodeToString(random[:]), Identity: id, State: state}
		b, err := json.Marshal(l.Header)
		if err != nil {
			return err
		}
		if err = l.append(b, []int{len(b)}); err != nil {
			return err
		}
		l.begin = l.Size()
		return syncDir(filepath.Dir(l.file.Name()))
	}
	if l.Header, l.begin, err = readHeader(bufio.NewReader(io.NewSectionReader(l.file, 0, whole))); err != nil {
		return err
	}
	if !l.Identity.equal(id) {
		return errors.New("it belongs to another conversion")
	}
	if !l.Checked() {
		return errors.New("it has no checksums, because an older version started the conversion; finish it with that version, or undo it")
	}
	tail := make([]byte, size-whole)
	if _, err := l.file.ReadAt(tail, whole); err != nil && err != io.EOF {
		return err
	}
	if err := torn(tail, l.ID, whole); err != nil {
		return err
	}
	m, err := lastMark(l.file, whole, l.Header)
	if err != nil {
		return err
	}
	if m != nil {
		return fmt.Errorf("%s; start again with a new state file and a new undo log", m)
	}
	l.size.Store(whole)
	return l.file.Truncate(whole)
}

// mayBegin truncates a file without a complete line. It returns an error if the file has anything
// but the beginning of a header.
func (l *UndoLog) mayBegin() error {
	begin, err := json.Marshal(Header{Format: undoFormat})
	if err != nil {
		return err
	}
	begin = begin[:bytes.Index(begin, []byte(`,"id":"`))]
	held := make([]byte, len(begin))
	n, err := l.file.ReadAt(held, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if !bytes.HasPrefix(begin, held[:n]) {
		return errNoUndoLog
	}
	return l.file.Truncate(0)
}

// append writes lines with their checksums and flushes them to disk. Each line is in lines, from
// the end of the line before.
func (l *UndoLog) append(lines []byte, ends []int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	start, id := l.Size(), l.ID
	if start == 0 {
		id = "" // the checksum of the header is verified before the id is known
	}
	l.b = l.b[:0]
	at := 0
	for _, end := range ends {
		l.b = append(appendSealed(l.b, lines[at:end], id, start+int64(len(l.b))), '\n')
		at = end
	}
	if _, l.err = l.file.WriteAt(l.b, start); l.err == nil {
		l.err = l.file.Sync()
	}
	if l.err != nil {
		l.err = &RecordError{UndoRecord, l.file.Name(), l.err}
		return l.err
	}
	l.size.Store(start + int64(len(l.b)))
	return nil
}

// Append writes an entry for each of the plans. They are on the disk when it returns. If it returns
// an error, none of the changes may be made.
func (l *UndoLog) Append(plans []Plan, c Conversion, again func(Plan) bool) error {
	var lines []byte
	ends := make([]int, len(plans))
	for i, p := range plans {
		var err error
		if lines, err = appendEntry(lines, p, c.From.Subtype, c.To.Subtype, again(p)); err != nil {
			return err
		}
		ends[i] = len(lines)
	}
	return l.append(lines, ends)
}

// Size returns the size in bytes of the lines that are on the disk. The next entry begins at this
// offset or later.
func (l *UndoLog) Size() int64 { return l.size.Load() }

// Close closes the file and unlocks it.
func (l *UndoLog) Close() error { return errors.Join(l.file.Close(), l.lock.Unlock()) }
