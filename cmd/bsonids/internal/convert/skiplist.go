package convert

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// SkipList writes the values that a conversion leaves unchanged to a file, one JSON object per
// line:
//
//	{"collection":"shop.orders","_id":{"$oid":"…"},"path":"items.0.sku","value":{"$binary":{…}},"reason":"…"}
//
// A line has no path and no value if the reason is not about a value. A run that continues after it
// was killed may list a value twice. The file is opened at once, because a value must not be changed
// before it is known that others can be listed, and removed at the end if it is new and nothing was
// listed. A SkipList is safe for concurrent use. A nil SkipList lists nothing.
type SkipList struct {
	namespace, path string

	mu    sync.Mutex
	file  *os.File
	begun bool  // something was listed
	made  bool  // the file did not exist
	err   error // the first error
}

// OpenSkipList returns a list of values of the collection namespace in the file at path. If goOn is
// set, it appends to an existing file. Otherwise it returns an error if the file exists and is not
// empty.
func OpenSkipList(path, namespace string, goOn bool) (*SkipList, error) {
	l := &SkipList{namespace: namespace, path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		l.made = true
	case err != nil:
		return nil, &RecordError{SkipRecord, path, err}
	case !info.Mode().IsRegular():
		return nil, &RecordError{SkipRecord, path, errors.New("not a regular file")}
	case info.Size() > 0 && !goOn:
		return nil, &RecordError{SkipRecord, path, errors.New("the file is not empty; move it, or use another file")}
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// Path returns the name of the file.
func (l *SkipList) Path() string { return l.path }

// documents returns how many documents the file has values of. A document counts again when it was
// listed again later.
func (l *SkipList) documents() (n int64, err error) {
	if l == nil {
		return 0, nil
	}
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, &RecordError{SkipRecord, l.path, err}
	}
	defer f.Close()
	var last string
	for r := bufio.NewReader(f); ; {
		b, err := r.ReadBytes('\n')
		if err == io.EOF { // an incomplete line is removed when the file is written to
			return n, nil
		}
		if err != nil {
			return 0, &RecordError{SkipRecord, l.path, err}
		}
		var line struct {
			ID json.RawMessage `json:"_id"`
		}
		// A person may have edited the file: a line without an _id counts as one document.
		if err := json.Unmarshal(b, &line); err != nil || n == 0 || string(line.ID) != last {
			n, last = n+1, string(line.ID)
		}
	}
}

// Begun reports whether something has been listed.
func (l *SkipList) Begun() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// add lists values of one document. Err returns its error.
func (l *SkipList) add(id bson.RawValue, subtype byte, left []rule.Left) {
	if l != nil {
		l.Add(l.namespace, id, subtype, left)
	}
}

// Add lists values of one document of the collection namespace. The id is zero for what is not in a
// document. Err returns its error.
func (l *SkipList) Add(namespace string, id bson.RawValue, subtype byte, left []rule.Left) {
	if l == nil || len(left) == 0 {
		return
	}
	var b []byte
	for _, v := range left {
		line, err := skipLine(namespace, id, subtype, v)
		if err != nil {
			l.fail(err)
			return
		}
		b = append(append(b, line...), '\n')
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.begun = true
	if _, err := l.file.Write(b); err != nil {
		l.err = &RecordError{SkipRecord, l.path, err}
	}
}

func skipLine(namespace string, id bson.RawValue, subtype byte, v rule.Left) ([]byte, error) {
	doc, err := extJSON(id)
	if id.Type == 0 {
		doc, err = []byte("null"), nil
	}
	if err != nil {
		return nil, err
	}
	line := struct {
		Collection string          `json:"collection"`
		ID         json.RawMessage `json:"_id"`
		Path       *string         `json:"path,omitempty"`
		Value      json.RawMessage `json:"value,omitempty"`
		Reason     string          `json:"reason"`
	}{Collection: namespace, ID: doc, Reason: v.Reason}
	if !v.Document {
		line.Path = &v.Path
		if line.Value, err = storedJSON(subtype, v.Old, v.Value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(line)
}

func (l *SkipList) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = &RecordError{SkipRecord, l.path, err}
	}
}

// open opens the file and removes an incomplete last line.
func (l *SkipList) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		var whole int64
		if whole, err = wholeLines(f); err == nil {
			err = f.Truncate(whole)
		}
		if err == nil {
			_, err = f.Seek(whole, 0)
		}
		if err == nil {
			err = files.SyncDir(filepath.Dir(l.path))
		}
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		return &RecordError{SkipRecord, l.path, err}
	}
	l.file = f
	return nil
}

// Err returns the first error of the list. After an error, the caller must not record as done
// anything that the list should have.
func (l *SkipList) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Sync flushes the file to disk. It returns the first error of the list.
func (l *SkipList) Sync() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.begun {
		if err := l.file.Sync(); err != nil {
			l.err = &RecordError{SkipRecord, l.path, err}
		}
	}
	return l.err
}

// Close syncs and closes the file.
func (l *SkipList) Close() error {
	err := l.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	err = errors.Join(err, l.file.Close())
	if l.made && !l.begun {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}
