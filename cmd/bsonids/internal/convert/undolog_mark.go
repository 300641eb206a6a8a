package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// lastMark returns the last line of a log of size bytes if it is a mark, and nil otherwise.
func lastMark(f *os.File, size int64, h Header) (*Mark, error) {
	b := make([]byte, min(size, 1024)) // a mark is shorter
	if _, err := f.ReadAt(b, size-int64(len(b))); err != nil && err != io.EOF {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	i := bytes.LastIndexByte(b, '\n') + 1
	line := b[i:]
	if i == 0 || !bytes.HasPrefix(line, []byte(markPrefix)) {
		return nil, nil
	}
	if h.Checked() {
		if err := sealed(line, h.ID, size-1-int64(len(line))); err != nil {
			return nil, err
		}
	}
	var m Mark
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// Mark appends a mark to the log: that undo began at the time at, or, if done is set, that it
// finished. It flushes the log to disk. The reader must come from ReadUndoLogAlone.
func (u *UndoReader) Mark(at time.Time, done bool) error {
	m := Mark{undoBegun, at.UTC().Format(time.RFC3339)}
	if done {
		m.Undo = undoDone
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if u.Checked() {
		line = seal(line, u.ID, u.end)
	}
	line = append(line, '\n')
	f, err := os.OpenFile(u.file.Name(), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(line, u.end)
		if err == nil {
			err = f.Truncate(u.end + int64(len(line)))
		}
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return u.fail(err)
	}
	u.mark, u.end = &m, u.end+int64(len(line))
	return u.Rewind(0)
}

// MarkState records in the state file of the conversion that undo began to restore its values. It
// does nothing if the file does not exist, belongs to another conversion, or is in use by a process
// whose conversion was taken over: the log and the record of conversions have the mark.
func (u *UndoReader) MarkState(at time.Time) error {
	if u.State == "" {
		return nil
	}
	b, err := os.ReadFile(u.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &RecordError{StateRecord, u.State, err}
	}
	if s, err := ParseState(b); err != nil || s.UndoID != u.ID {
		return nil
	}
	s, err := OpenState(u.State, u.Identity)
	if errors.Is(err, errInUse) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if s.UndoID != u.ID {
		return nil
	}
	s.Undone = at.UTC().Format(time.RFC3339)
	return s.Save()
}
