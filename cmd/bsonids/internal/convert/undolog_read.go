package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/gofrs/flock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// UndoReader reads an undo log entry by entry. It is not safe for concurrent use.
type UndoReader struct {
	Header
	file *os.File
	r    *bufio.Reader
	from int64 // offset of the first line that was read
	at   int64 // offset of the next line
	mark *Mark
	line int // number of lines read since from
	end  int64
	lock *flock.Flock // nil if other processes may write
}

// ReadUndoLogAlone is like ReadUndoLog and locks the log. A program that writes to the collection
// uses it. It returns an error if another process uses the log.
func ReadUndoLogAlone(path string) (*UndoReader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	lock, err := LockFile(path)
	if err != nil {
		return nil, &RecordError{UndoRecord, path, err}
	}
	u, err := ReadUndoLog(path)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	u.lock = lock
	return u, nil
}

// ReadUndoLog opens the undo log at path. The caller must close the reader.
func ReadUndoLog(path string) (*UndoReader, error) {
	if err := regular(path); err != nil {
		return nil, &RecordError{UndoRecord, path, err}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	u := &UndoReader{file: f}
	if u.end, err = wholeLines(f); err == nil {
		err = u.Rewind(0)
	}
	if err == nil {
		err = u.checkEnd()
	}
	if err != nil {
		return nil, &RecordError{UndoRecord, path, errors.Join(err, f.Close())}
	}
	return u, nil
}

// Covers returns an error if the log has another id, or fewer bytes, than was written. The id may be
// empty if it is not known.
func (u *UndoReader) Covers(id string, size int64) error {
	switch {
	case id != "" && u.ID != id:
		return u.fail(errors.New("it is another log than the one of the conversion"))
	case u.end < size:
		return u.fail(fmt.Errorf("it is cut off: %d bytes are left of %d", u.end, size))
	}
	return nil
}

// Whole is like Covers, and reads every entry.
func (u *UndoReader) Whole(id string, size int64) error {
	if err := u.Covers(id, size); err != nil {
		return err
	}
	for {
		if _, err := u.Next(); err == io.EOF {
			return u.Rewind(0)
		} else if err != nil {
			return err
		}
	}
}

// Rewind moves to the entry at offset, or to the first entry if offset is 0.
func (u *UndoReader) Rewind(offset int64) error {
	u.r = bufio.NewReader(io.NewSectionReader(u.file, 0, u.end))
	u.from, u.line = 0, 1
	var err error
	if u.Header, u.at, err = readHeader(u.r); err != nil {
		return err
	}
	if offset > u.end {
		return u.fail(fmt.Errorf("truncated: the size is %d bytes, and the entries to read begin at byte %d", u.end, offset))
	}
	if offset > 0 {
		u.from, u.at, u.line = offset, offset, 0
		u.r = bufio.NewReader(io.NewSectionReader(u.file, offset, u.end-offset))
	}
	return nil
}

// Next returns the next entry, or io.EOF after the last one. It ignores a last line that is
// incomplete, because no change was made on account of it.
func (u *UndoReader) Next() (Entry, error) {
	for {
		line, err := u.r.ReadBytes('\n')
		if err != nil {
			return Entry{}, err
		}
		offset := u.at
		u.at += int64(len(line))
		u.line++
		if u.Checked() {
			err = sealed(line[:len(line)-1], u.ID, offset)
		}
		if err == nil && bytes.HasPrefix(line, []byte(markPrefix)) {
			continue
		}
		var e Entry
		if err == nil {
			e, err = ParseEntry(line)
		}
		if err != nil {
			before, failure := u.linesBefore()
			return Entry{}, u.fail(errors.Join(fmt.Errorf("line %d: %w", before+u.line, err), failure))
		}
		e.offset = offset
		return e, nil
	}
}

// checkEnd checks the bytes after the last complete line, and reads the mark if that line is one.
func (u *UndoReader) checkEnd() error {
	if u.Checked() {
		tail, err := io.ReadAll(io.NewSectionReader(u.file, u.end, 64<<20))
		if err != nil {
			return err
		}
		if err := torn(tail, u.ID, u.end); err != nil {
			return err
		}
	}
	var err error
	u.mark, err = lastMark(u.file, u.end, u.Header)
	return err
}

// Undone returns the mark at the end of the log, or nil if there is none.
func (u *UndoReader) Undone() *Mark { return u.mark }

// Size returns the size of the log in bytes.
func (u *UndoReader) Size() int64 { return u.end }

// linesBefore returns the number of lines before the first that was read.
func (u *UndoReader) linesBefore() (int, error) {
	n := 0
	buf := make([]byte, 64<<10)
	for r := io.NewSectionReader(u.file, 0, u.from); ; {
		read, err := r.Read(buf)
		n += bytes.Count(buf[:read], []byte{'\n'})
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// Close closes the file.
func (u *UndoReader) Close() error {
	err := u.file.Close()
	if u.lock != nil {
		err = errors.Join(err, u.lock.Unlock())
	}
	return err
}

// voids reads the log and returns, for each document with lines that have "again", the offset of the
// last such entry. Earlier entries about the document are void.
func voids(u *UndoReader) (map[string]int64, error) {
	again := make(map[string]int64)
	for {
		e, err := u.Next()
		if err == io.EOF {
			return again, u.Rewind(0)
		}
		if err != nil {
			return nil, err
		}
		if e.Again {
			again[documents.Key(e.ID)] = e.offset
		}
	}
}

// unmet is a value of an entry that its document does not have as the entry says.
type unmet struct {
	id     bson.RawValue
	path   string
	offset int64 // of the entry
	reason string
}

// stillUnmet returns those of the values about whose paths no later entry is. That entry then tells
// what the document should have.
func stillUnmet(u *UndoReader, all []unmet) ([]unmet, error) {
	if len(all) == 0 {
		return nil, nil
	}
	last := make(map[string]map[string]int64)
	for _, o := range all {
		last[documents.Key(o.id)] = make(map[string]int64)
	}
	if err := u.Rewind(0); err != nil {
		return nil, err
	}
	for {
		e, err := u.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if of := last[documents.Key(e.ID)]; of != nil {
			for _, ch := range e.Changes {
				of[ch.Path] = e.offset
			}
		}
	}
	return slices.DeleteFunc(all, func(o unmet) bool { return last[documents.Key(o.id)][o.path] > o.offset }), nil
}

// entries calls f with batches of at most size entries that are not void. A batch never has two
// entries about one document, which two runs may have written.
func entries(u *UndoReader, size int, f func([]Entry) error) error {
	void, err := voids(u)
	if err != nil {
		return err
	}
	var b []Entry
	held := make(map[string]bool, size) // the documents in b
	for {
		e, err := u.Next()
		if err != nil && err != io.EOF {
			return err
		}
		id := documents.Key(e.ID)
		if len(b) == size || len(b) > 0 && (err == io.EOF || held[id]) {
			if err := f(b); err != nil {
				return err
			}
			b = nil
			clear(held)
		}
		if err == nil && e.offset >= void[id] {
			b = append(b, e)
			held[id] = true
		}
		if err == io.EOF {
			return nil
		}
	}
}
