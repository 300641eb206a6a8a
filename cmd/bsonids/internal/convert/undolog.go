package convert

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"crypto/rand"

	"github.com/gofrs/flock"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// An undo log has one line for each document, in canonical extended JSON, that says what is about to be changed. It is on
// the disk before the server is asked to change anything. A line whose change the server then didn't make, since another
// program was faster, stays; if the document was looked at again, a later line says so with "again".
//
//	{"bsonids":"undo log 1","id":"…","conversion":{…}}
//	{"_id":{"$oid":"…"},"changes":[{"path":"items.0.id","old":{"$binary":{…}},"new":{"$binary":{…}}}]}

const undoFormat = "undo log 1"

var errNoUndoLog = fmt.Errorf("not an undo log of this version: it doesn't begin with %q", undoFormat)

// Header is the first line of an undo log.
type Header struct {
	Format   string   `json:"bsonids"`
	ID       string   `json:"id"` // random, 16 hexadecimal digits
	Identity Identity `json:"conversion"`
}

// Entry is one further line.
type Entry struct {
	ID      bson.RawValue
	Changes []Change // without Field
	Again   bool     // earlier lines about the document are void
	from    byte
	to      byte
}

// UndoLog is an undo log that is written. It is safe for concurrent use.
type UndoLog struct {
	Header

	mu    sync.Mutex
	file  *os.File
	lock  *flock.Flock
	begin int64 // where the first entry is, or will be
	size  int64
	err   error // the first failure: nothing may be written to the server after it
}

// OpenUndoLog opens the undo log at path to append to it, or begins one. A log of another conversion, and one that
// another process writes, are errors.
func OpenUndoLog(path string, id Identity) (*UndoLog, error) {
	fail := func(err error) (*UndoLog, error) { return nil, fmt.Errorf("--undo %s: %w", path, err) }
	lock, err := lockFile(path)
	if err != nil {
		return fail(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fail(errors.Join(err, lock.Unlock()))
	}
	l := &UndoLog{file: file, lock: lock}
	if err := l.recover(id); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	return l, nil
}

// recover reads the header and cuts off a last line that was not written whole: nothing was changed on its account. What
// is no undo log of the conversion stays as it is.
func (l *UndoLog) recover(id Identity) error {
	whole, err := wholeLines(l.file)
	if err != nil {
		return err
	}
	if whole == 0 {
		if err := l.mayBegin(); err != nil {
			return err
		}
		var random [8]byte
		rand.Read(random[:])
		l.Header = Header{Format: undoFormat, ID: hex.EncodeToString(random[:]), Identity: id}
		b, err := json.Marshal(l.Header)
		if err != nil {
			return err
		}
		if _, err = l.append(append(b, '\n')); err != nil {
			return err
		}
		l.begin = l.size
		return syncDir(filepath.Dir(l.file.Name()))
	}
	if l.Header, l.begin, err = readHeader(bufio.NewReader(io.NewSectionReader(l.file, 0, whole))); err != nil {
		return err
	}
	if !l.Identity.equal(id) {
		return errors.New("it is the log of another conversion")
	}
	l.size = whole
	return l.file.Truncate(whole)
}

// mayBegin empties a file that has no whole line, and is an error where it holds anything but the beginning of a header.
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

// wholeLines returns how many octets the lines of f have that end.
func wholeLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// append writes b and waits until it is on the disk; it returns where b begins.
func (l *UndoLog) append(b []byte) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	start := l.size
	if _, l.err = l.file.WriteAt(b, start); l.err == nil {
		l.err = l.file.Sync()
	}
	if l.err != nil {
		return 0, fmt.Errorf("--undo: %w", l.err)
	}
	l.size += int64(len(b))
	return start, nil
}

// Append writes down what the plans are about to change; it returns where in the log that begins. An error means that
// none of it may be done.
func (l *UndoLog) Append(plans []Plan, c Conversion, again func(Plan) bool) (int64, error) {
	var b []byte
	for _, p := range plans {
		var err error
		if b, err = appendEntry(b, p, c.From.Subtype, c.To.Subtype, again(p)); err != nil {
			return 0, err
		}
		b = append(b, '\n')
	}
	return l.append(b)
}

// Size is where the next entry will begin, or after it.
func (l *UndoLog) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// Close closes the file.
func (l *UndoLog) Close() error { return errors.Join(l.file.Close(), l.lock.Unlock()) }

func appendEntry(b []byte, p Plan, from, to byte, again bool) ([]byte, error) {
	id, err := extJSON(p.ID)
	if err != nil {
		return nil, err
	}
	b = append(append(append(b, `{"_id":`...), id...), `,"changes":[`...)
	for i, ch := range slices.Concat(p.Changes, p.kept) {
		if i > 0 {
			b = append(b, ',')
		}
		path, err := json.Marshal(ch.Path)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `{"path":`...), path...)
		b = appendBinary(append(b, `,"old":`...), from, ch.Old)
		b = appendBinary(append(b, `,"new":`...), to, ch.New)
		b = append(b, '}')
	}
	b = append(b, ']')
	if again {
		b = append(b, `,"again":true`...)
	}
	return append(b, '}'), nil
}

func appendBinary(b []byte, subtype byte, octets [16]byte) []byte {
	b = append(b, `{"$binary":{"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, octets[:])
	return fmt.Appendf(b, `","subType":"%02x"}}`, subtype)
}

// extJSON returns v in canonical extended JSON, on one line.
func extJSON(v bson.RawValue) ([]byte, error) {
	b, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		return nil, err
	}
	return b[len(`{"v":`) : len(b)-1], nil
}

// keepsID reports whether an _id comes back from extended JSON as it went in. Text that is not UTF-8 and some unusual
// numbers don't.
func keepsID(v bson.RawValue) bool {
	switch v.Type {
	case bson.TypeObjectID, bson.TypeInt32, bson.TypeInt64, bson.TypeDateTime, bson.TypeBoolean:
		return true
	}
	p := Plan{ID: v, Changes: []Change{{Path: "a"}}}
	line, err := appendEntry(nil, p, 3, 4, false)
	if err != nil {
		return false
	}
	e, err := ParseEntry(line)
	return err == nil && e.ID.Equal(v)
}

// keepsPaths reports whether the paths come back from JSON, which is UTF-8, as they went in.
func keepsPaths(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(ch Change) bool { return !utf8.ValidString(ch.Path) })
}

// ParseEntry reads one line of an undo log. The error says what is wrong with it.
func ParseEntry(line []byte) (Entry, error) {
	var doc struct {
		ID      bson.RawValue `bson:"_id"`
		Changes []struct {
			Path string
			Old  bson.Binary
			New  bson.Binary
		}
		Again bool
	}
	if err := bson.UnmarshalExtJSON(line, true, &doc); err != nil {
		return Entry{}, fmt.Errorf("not a line of an undo log: %w", err)
	}
	if doc.ID.Type == 0 || len(doc.Changes) == 0 {
		return Entry{}, errors.New("not a line of an undo log: no _id or no changes")
	}
	e := Entry{ID: doc.ID, Again: doc.Again, from: doc.Changes[0].Old.Subtype, to: doc.Changes[0].New.Subtype}
	for _, ch := range doc.Changes {
		if ch.Path == "" || len(ch.Old.Data) != 16 || len(ch.New.Data) != 16 || ch.Old.Subtype != e.from || ch.New.Subtype != e.to {
			return Entry{}, errors.New("not a line of an undo log: a change without path, or not of 16 octets")
		}
		e.Changes = append(e.Changes, Change{Path: ch.Path, Old: [16]byte(ch.Old.Data), New: [16]byte(ch.New.Data)})
	}
	return e, nil
}

// readHeader returns the header and where it ends.
func readHeader(r *bufio.Reader) (Header, int64, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return Header{}, 0, errors.New("not an undo log: it has no first line")
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil || h.Format != undoFormat || h.ID == "" {
		return Header{}, 0, errNoUndoLog
	}
	return h, int64(len(line)), nil
}

// UndoReader reads an undo log entry by entry. It is not safe for concurrent use.
type UndoReader struct {
	Header
	file *os.File
	r    *bufio.Reader
	from int64 // where the first line is that was read
	line int   // how many were read since
	end  int64
	lock *flock.Flock // nil where others may write
}

// ReadUndoLogAlone is ReadUndoLog for what writes to the collection: a log that another process writes is an error.
func ReadUndoLogAlone(path string) (*UndoReader, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	u, err := ReadUndoLog(path)
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	u.lock = lock
	return u, nil
}

// ReadUndoLog opens the undo log at path. Close it.
func ReadUndoLog(path string) (*UndoReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	u := &UndoReader{file: f}
	if u.end, err = wholeLines(f); err == nil {
		err = u.Rewind(0)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, f.Close()))
	}
	return u, nil
}

// Rewind goes to the first entry, or to the one at offset.
func (u *UndoReader) Rewind(offset int64) error {
	u.r = bufio.NewReader(io.NewSectionReader(u.file, 0, u.end))
	u.from, u.line = 0, 1
	var err error
	if u.Header, _, err = readHeader(u.r); err != nil {
		return err
	}
	if offset > u.end {
		return fmt.Errorf("it ends at %d, before the entries from %d on", u.end, offset)
	}
	if offset > 0 {
		u.from, u.line = offset, 0
		u.r = bufio.NewReader(io.NewSectionReader(u.file, offset, u.end-offset))
	}
	return nil
}

// Next returns the next entry, and io.EOF after the last one. A last line without an end is left out: nothing was
// changed on its account.
func (u *UndoReader) Next() (Entry, error) {
	line, err := u.r.ReadBytes('\n')
	if err != nil {
		return Entry{}, err
	}
	u.line++
	e, err := ParseEntry(line)
	if err != nil {
		before, failure := u.linesBefore()
		return Entry{}, errors.Join(fmt.Errorf("line %d: %w", before+u.line, err), failure)
	}
	return e, nil
}

// linesBefore returns how many lines there are before the first that was read.
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
