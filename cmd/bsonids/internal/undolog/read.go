package undolog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
)

// Name is what an error calls a log.
const Name = "the undo log"

// Reader reads a log entry by entry. It is not safe for concurrent use.
type Reader struct {
	Header
	// Undone is set if an undo has restored the values.
	Undone *Undone

	path  string
	file  *os.File
	r     *journal.Reader
	begin int64 // offset of the first entry
	end   int64 // offset after the last whole record
	index int   // in [Logs]
	// glanced is set if the log was not read through: end is that of the file, and neither Undone nor void is known.
	glanced bool
	// void has, for each document of an entry with "again", the offset of the last such entry. Earlier entries about the
	// document are void.
	void map[string]int64
}

// Open opens the log at path, and reads it through. A torn record at the end is ignored, because no change was made on
// account of it. The caller must close the reader.
func Open(path string) (*Reader, error) { return open(path, os.O_RDONLY, (*Reader).scan) }

// glance opens the log at path, and reads its header alone.
func glance(path string) (*Reader, error) { return open(path, os.O_RDONLY, (*Reader).glance) }

// open opens the log at path, and reads it.
func open(path string, flags int, read func(*Reader) error) (*Reader, error) {
	err := files.Regular(path)
	u := &Reader{path: path, void: make(map[string]int64)}
	if err == nil {
		u.file, err = os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, u.fail(err)
	}
	if err := read(u); err != nil {
		return nil, u.fail(errors.Join(err, u.Close()))
	}
	u.start()
	return u, nil
}

func (u *Reader) fail(err error) error { return &files.Error{What: Name, Path: u.path, Err: err} }

// errUnmade is the error of a log without a first record.
var errUnmade = errors.New("not an undo log: it is empty, or it has no whole record")

// readHeader returns the header and the offset of its end.
func readHeader(f journal.File) (h Header, begin int64, err error) {
	first, begin, err := journal.Begin(f, format)
	switch {
	case errors.Is(err, journal.ErrFormat):
		return h, 0, ErrFormat
	case err != nil:
		return h, 0, err
	case first == nil:
		return h, 0, errUnmade
	}
	if err := json.Unmarshal(first, &h); err != nil || h.Run == "" {
		return h, 0, ErrFormat
	}
	return h, begin, nil
}

// glance reads the header, and takes the whole file for whole records.
func (u *Reader) glance() (err error) {
	u.glanced = true
	if u.Header, u.begin, err = readHeader(u.file); err != nil {
		return err
	}
	info, err := u.file.Stat()
	if err == nil {
		u.end = info.Size()
	}
	return err
}

// scan reads the log through. It finds the header, what is void, whether the values are restored, and the end.
func (u *Reader) scan() (err error) {
	if u.Header, u.begin, err = readHeader(u.file); err != nil {
		return err
	}
	u.end, err = journal.Whole(u.file, u.Run, u.begin, func(record []byte, at int64) error {
		switch {
		case len(record) > 0 && record[0] == undoneRecord:
			u.Undone = &Undone{}
			if err := json.Unmarshal(record[1:], u.Undone); err != nil {
				return fmt.Errorf("the record at byte %d: %w", at, err)
			}
		case len(record) > 1 && record[0] == entryRecord && record[1] == flagAgain:
			e, err := u.entry(record, at)
			u.void[documents.Key(e.ID)] = at
			return err
		}
		return nil
	})
	return err
}

// entry is like [ParseEntry], with the place of the record.
func (u *Reader) entry(record []byte, at int64) (e Entry, err error) {
	if e, err = ParseEntry(record); err != nil {
		return Entry{}, fmt.Errorf("the record at byte %d: %w", at, err)
	}
	e.At = Place{u.index, at}
	return e, nil
}

// Path returns the path of the file.
func (u *Reader) Path() string { return u.path }

// Covers returns an error if the log has fewer whole bytes than was written, or others; of one that [Glance] has opened, only if the file has
// fewer. A log may have more: its run was
// killed before it told.
func (u *Reader) Covers(written Extent) error {
	if u.end < written.Size {
		return u.fail(fmt.Errorf("it is cut off or damaged: %d bytes are whole of %d that were written", u.end, written.Size))
	}
	if written.Size == 0 || u.glanced {
		return nil
	}
	sum, err := journal.Sum(u.file, written.Size)
	if err == nil && sum != written.Sum {
		err = fmt.Errorf("its first %d bytes are not those that were written", written.Size)
	}
	if err != nil {
		return u.fail(err)
	}
	return nil
}

// start moves to the first entry.
func (u *Reader) start() { u.r = journal.NewReader(u.file, u.Run, u.begin, u.end) }

// Next returns the next entry, or io.EOF after the last one.
func (u *Reader) Next() (Entry, error) {
	for {
		record, offset, err := u.r.Next()
		if err == io.EOF {
			return Entry{}, err
		}
		if err == nil && len(record) > 0 && record[0] == undoneRecord {
			continue
		}
		var e Entry
		if err == nil {
			e, err = u.entry(record, offset)
		}
		if err != nil {
			return Entry{}, u.fail(err)
		}
		return e, nil
	}
}

// Size returns the size of the whole records in bytes.
func (u *Reader) Size() int64 { return u.end }

// Close closes the file.
func (u *Reader) Close() error { return u.file.Close() }

// all calls f for the entries, also for those that are void.
func (u *Reader) all(f func(Entry) error) error {
	u.start()
	for {
		e, err := u.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(e)
		}
		if err != nil {
			return err
		}
	}
}

// each calls f for the entries that are not void.
func (u *Reader) each(f func(Entry) error) error {
	return u.all(func(e Entry) error {
		if len(u.void) > 0 && e.At.Offset < u.void[documents.Key(e.ID)] {
			return nil
		}
		return f(e)
	})
}
