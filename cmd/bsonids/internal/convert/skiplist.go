package convert

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// SkipList writes the values that a conversion leaves unchanged to a file, one JSON object per
// line:
//
//	{"collection":"shop.orders","_id":{"$oid":"…"},"path":"items.0.sku","value":{"$binary":{…}},"reason":"…"}
//
// A line has no path and no value if the reason is not about a value. Each run lists anew what is left. Until it ends, the
// list has another name, and the one of the run before stays. The file is made at once, because a value must not be changed
// before it is known that others can be listed. A SkipList is safe for concurrent use. A nil SkipList lists nothing.
type SkipList struct {
	namespace, path string

	mu    sync.Mutex
	file  *os.File
	begun bool  // something was listed
	err   error // the first error
}

// newEnd follows the name of a list until its run ends.
const newEnd = ".new"

// skipName is what an error calls a list.
const skipName = "the skip list"

// CreateSkipList returns a list of values of the collection namespace, which takes the place of the file at path when it is
// closed.
func CreateSkipList(path, namespace string) (*SkipList, error) {
	path = files.Target(path)
	l := &SkipList{namespace: namespace, path: path}
	for _, name := range []string{path, path + newEnd} {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return nil, &files.Error{What: skipName, Path: name, Err: errors.New("not a regular file")}
		}
	}
	var err error
	if l.file, err = os.OpenFile(path+newEnd, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, &files.Error{What: skipName, Path: path, Err: err}
	}
	return l, nil
}

// Path returns the name of the file.
func (l *SkipList) Path() string { return l.path }

// Begun reports whether something has been listed.
func (l *SkipList) Begun() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// Restart makes the list empty.
func (l *SkipList) Restart() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.file.Truncate(0)
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	if l.begun = false; err != nil {
		l.fail(err)
	}
}

// add lists values of one document. Err returns its error.
func (l *SkipList) add(id bson.RawValue, left []rule.Left) {
	if l != nil {
		l.Add(l.namespace, id, left)
	}
}

// Add lists values of one document of the collection namespace. The id is zero for what is not in a
// document. Err returns its error.
func (l *SkipList) Add(namespace string, id bson.RawValue, left []rule.Left) {
	if l == nil || len(left) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var b []byte
	for _, v := range left {
		line, err := skipLine(namespace, id, v)
		if err != nil {
			l.fail(err)
			return
		}
		b = append(append(b, line...), '\n')
	}
	if l.begun = true; l.err != nil {
		return
	}
	if _, err := l.file.Write(b); err != nil {
		l.fail(err)
	}
}

func skipLine(namespace string, id bson.RawValue, v rule.Left) ([]byte, error) {
	doc, err := documents.ExtJSON(id)
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
		if line.Value, err = documents.ExtJSON(v.Value.Raw()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(line)
}

// fail keeps the first error. The caller holds l.mu.
func (l *SkipList) fail(err error) {
	if l.err == nil {
		l.err = &files.Error{What: skipName, Path: l.path, Err: err}
	}
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
	return l.sync()
}

func (l *SkipList) sync() error {
	if l.err == nil && l.begun {
		if err := l.file.Sync(); err != nil {
			l.fail(err)
		}
	}
	return l.err
}

// Close syncs and closes the file, and gives it its name. If nothing was listed, no list is left.
func (l *SkipList) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := errors.Join(l.sync(), l.file.Close())
	switch {
	case err != nil:
		return err
	case l.begun:
		err = os.Rename(l.path+newEnd, l.path)
	default:
		err = errors.Join(remove(l.path), remove(l.path+newEnd))
	}
	if err = errors.Join(err, files.SyncDir(filepath.Dir(l.path))); err != nil {
		return &files.Error{What: skipName, Path: l.path, Err: err}
	}
	return nil
}

// Discard closes the list and removes it. The one of the run before stays.
func (l *SkipList) Discard() error {
	return errors.Join(l.file.Close(), remove(l.path+newEnd))
}

// remove removes the file at path, if there is one.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
