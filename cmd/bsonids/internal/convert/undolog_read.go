package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/journal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// UndoReader reads an undo log entry by entry. It is not safe for concurrent use.
type UndoReader struct {
	Header
	file  *os.File
	r     *journal.Reader
	begin int64 // offset of the first entry
	end   int64 // offset after the last whole record
	void  voids
}

// voids has, for each document of an entry with "again", the offset of the last such entry. Earlier entries about
// the document are void.
type voids map[string]int64

// ReadUndoLog opens the undo log at path, and reads it through. A torn record at the end is ignored,
// because no change was made on account of it. The caller must close the reader.
func ReadUndoLog(path string) (*UndoReader, error) { return readUndoLog(path, os.O_RDONLY) }

func readUndoLog(path string, flags int) (*UndoReader, error) {
	err := files.Regular(path)
	u := &UndoReader{void: make(voids)}
	if err == nil {
		u.file, err = os.OpenFile(path, flags, 0)
	}
	if err != nil {
		return nil, &RecordError{UndoRecord, path, err}
	}
	if err := u.scan(); err != nil {
		return nil, u.fail(errors.Join(err, u.Close()))
	}
	u.start()
	return u, nil
}

// unmade is the error of a log without a first record, which a process that was killed while it made the log has left. It is
// as if there were none.
type unmade struct{}

func (unmade) Error() string        { return "not an undo log: it is empty, or it has no whole record" }
func (unmade) Is(target error) bool { return target == fs.ErrNotExist }

// readHeader returns the header and the offset of its end.
func readHeader(f journal.File) (h Header, begin int64, err error) {
	first, begin, err := journal.Begin(f, undoFormat)
	switch {
	case errors.Is(err, journal.ErrFormat):
		return h, 0, errNoUndoLog
	case err != nil:
		return h, 0, err
	case first == nil:
		return h, 0, unmade{}
	}
	if err := json.Unmarshal(first, &h); err != nil || h.ID == "" {
		return h, 0, errNoUndoLog
	}
	return h, begin, nil
}

// scan reads the log through. It finds the header, what is void, and the end.
func (u *UndoReader) scan() (err error) {
	if u.Header, u.begin, err = readHeader(u.file); err != nil {
		return err
	}
	u.end, err = journal.Whole(u.file, u.ID, u.begin, func(record []byte, at int64) (err error) {
		if len(record) < 2 || record[0] != entryRecord || record[1] != flagAgain {
			return nil
		}
		e, err := parseEntryAt(record, at)
		u.void[documents.Key(e.ID)] = at
		return err
	})
	return err
}

// parseEntryAt is like [ParseEntry], with the offset of the record.
func parseEntryAt(record []byte, at int64) (e Entry, err error) {
	if e, err = ParseEntry(record); err != nil {
		return Entry{}, fmt.Errorf("the record at byte %d: %w", at, err)
	}
	e.offset = at
	return e, nil
}

// Covers returns an error if the log has another id, or fewer whole bytes, than was written. The id may
// be empty if it is not known.
func (u *UndoReader) Covers(id string, size int64) error {
	switch {
	case id != "" && u.ID != id:
		return u.fail(errors.New("it is another log than the one of the conversion"))
	case u.end < size:
		return u.fail(lacks(u.end, size))
	}
	return nil
}

func lacks(end, size int64) error {
	return fmt.Errorf("it is cut off or damaged: %d bytes are whole of %d that were written", end, size)
}

// start moves to the first entry.
func (u *UndoReader) start() { u.r = journal.NewReader(u.file, u.ID, u.begin, u.end) }

// Rewind moves to the entry at offset, or to the first entry if offset is 0.
func (u *UndoReader) Rewind(offset int64) error {
	offset = max(offset, u.begin)
	if offset > u.end {
		return u.fail(fmt.Errorf("truncated: the size is %d bytes, and the entries to read begin at byte %d", u.end, offset))
	}
	u.r = journal.NewReader(u.file, u.ID, offset, u.end)
	return nil
}

// Next returns the next entry, or io.EOF after the last one.
func (u *UndoReader) Next() (Entry, error) {
	record, offset, err := u.r.Next()
	if err == io.EOF {
		return Entry{}, err
	}
	var e Entry
	if err == nil {
		e, err = parseEntryAt(record, offset)
	}
	if err != nil {
		return Entry{}, u.fail(err)
	}
	return e, nil
}

// Size returns the size of the whole records in bytes.
func (u *UndoReader) Size() int64 { return u.end }

// Close closes the file.
func (u *UndoReader) Close() error { return u.file.Close() }

// each calls f for the entries that are not void.
func (u *UndoReader) each(f func(Entry) error) error {
	u.start()
	for {
		e, err := u.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil && (len(u.void) == 0 || e.offset >= u.void[documents.Key(e.ID)]) {
			err = f(e)
		}
		if err != nil {
			return err
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
	u.start()
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

// entries calls f with batches of at most size entries that are not void, and of about as many bytes as one update.
// A batch never has two entries about one document, which two runs may have written.
func entries(u *UndoReader, size int, f func([]Entry) error) error {
	var b []Entry
	held := make(map[string]bool, size) // the documents in b
	err := u.each(func(e Entry) error {
		id := documents.Key(e.ID)
		if len(b) == size || held[id] || len(b) > 0 && e.offset-b[0].offset > bulk.MaxUpdate {
			if err := f(b); err != nil {
				return err
			}
			b = nil
			clear(held)
		}
		b = append(b, e)
		held[id] = true
		return nil
	})
	if err != nil || len(b) == 0 {
		return err
	}
	return f(b)
}

// eachIn returns what of returns for each of the entries whose document there is, by their offsets.
func eachIn[T any](ctx context.Context, coll *mongo.Collection, all []Entry, of func(e Entry, doc bson.Raw) T) (map[int64]T, error) {
	ids, about := make([]bson.RawValue, len(all)), make(map[string][]Entry, len(all))
	for i, e := range all {
		key := documents.Key(e.ID)
		ids[i], about[key] = e.ID, append(about[key], e)
	}
	found := make(map[int64]T, len(all))
	err := documents.EachByID(ctx, coll, ids, nil, nil, func(docs []bson.Raw) error {
		for _, doc := range docs {
			for _, e := range about[documents.Key(doc.Lookup("_id"))] {
				found[e.offset] = of(e, doc)
			}
		}
		return nil
	})
	return found, err
}

// wayBack returns the plan that restores the values of the entry in doc, and the changes that it cannot
// restore.
func (e Entry) wayBack(doc bson.Raw) (p rule.Plan, lost []rule.Change, err error) {
	p.ID = e.ID
	p.Changes, lost, err = rule.WayBack(doc, e.Changes)
	return p, lost, err
}
