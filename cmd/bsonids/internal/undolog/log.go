package undolog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

// Ext is the end of the name of a log, which begins with the id of its run.
const Ext = ".undo"

// Path returns the path of the log of a run in the directory dir.
func Path(dir, run string) string { return filepath.Join(dir, run+Ext) }

// Extent is how much of a log is on the disk.
type Extent struct {
	Size int64  // in bytes
	Sum  uint32 // CRC-32C of these bytes
}

// Log is a log that its run writes. The file is made with the first entries. A Log is safe for concurrent use.
type Log struct {
	path   string
	header Header

	mu   sync.Mutex // held while records are written
	file *os.File   // nil before the first entries
	w    *journal.Writer
	b    []byte // the records that are written
	end  Extent
}

// New returns the log of a new run in the directory dir.
func New(dir string, h Header) *Log { return &Log{path: Path(dir, h.Run), header: h} }

// Path returns the path of the file, which may not exist yet.
func (l *Log) Path() string { return l.path }

// Append writes entries, whose places do not count. They are on the disk when it returns. If it returns an error, none of
// the changes may be made.
func (l *Log) Append(entries []Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		if err := l.create(); err != nil {
			return &files.Error{What: Name, Path: l.path, Err: err}
		}
	}
	l.b = l.b[:0]
	ends := make([]int, len(entries))
	for i, e := range entries {
		l.b = appendEntry(l.b, e)
		ends[i] = len(l.b)
	}
	if err := l.w.Append(l.b, ends); err != nil {
		return &files.Error{What: Name, Path: l.path, Err: err}
	}
	l.end = Extent{l.w.Size(), l.w.Sum()}
	return nil
}

// create makes the file, which no other run has made.
func (l *Log) create() error {
	file, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	first, err := json.Marshal(l.header)
	if err == nil {
		l.w, err = journal.Create(file, format, l.header.Run, first)
	}
	if err = errors.Join(err, files.SyncDir(filepath.Dir(l.path))); err != nil {
		return errors.Join(err, file.Close(), os.Remove(l.path))
	}
	l.file = file
	return nil
}

// Extent returns what is on the disk: nothing before the first entries, and of a nil log.
func (l *Log) Extent() Extent {
	if l == nil {
		return Extent{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Close closes the file, if there is one.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// Undone is the record that an undo appends when it has restored the values of a log.
type Undone struct {
	By string    `json:"undoneBy"` // the id of its run
	At time.Time `json:"at"`       // by the server
}

// MarkUndone appends to the log at path that its values are restored. A log that says so already is left, and so is one with a
// damaged end, which may have old values: the error then wraps [journal.ErrDamaged].
func MarkUndone(path string, u Undone) error {
	r, err := open(path, os.O_RDWR, (*Reader).scan)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if r.Undone != nil {
		return nil
	}
	w, err := journal.NewWriter(r.file, r.Run, r.end)
	if err != nil {
		return r.fail(err)
	}
	b, err := json.Marshal(u)
	if err != nil {
		return r.fail(err)
	}
	if err := w.Append(append([]byte{undoneRecord}, b...), []int{len(b) + 1}); err != nil {
		return r.fail(err)
	}
	return nil
}
