package convert

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// SkipList writes the values that a conversion leaves unchanged to a file, one JSON object per
// line:
//
//	{"collection":"shop.orders","_id":{"$oid":"…"},"path":"items.0.sku","value":{"$binary":{…}},"reason":"…"}
//
// A line has no path and no value if the reason is not about a value. What an earlier run has listed is
// not listed again. The file is opened at once, because a value must not be changed before it is known
// that others can be listed, and removed at the end if it is new and nothing was listed. A SkipList is
// safe for concurrent use. A nil SkipList lists nothing.
type SkipList struct {
	namespace, path string

	mu      sync.Mutex
	file    *os.File
	earlier *hashset.Set // what the file had when it was opened
	size    int64
	sum     hash.Hash // of the file
	begun   bool      // something was listed
	made    bool      // the file did not exist
	err     error     // the first error
}

// Listed is what a list has on the disk.
type Listed struct {
	Size int64  `json:"skipListSize,omitempty"` // in bytes
	Sum  string `json:"skipListSum,omitempty"`  // SHA-256 of these bytes, in hexadecimal digits; empty if there are none
}

// OpenSkipList returns a list of values of the collection namespace in the file at path. If has is not
// nil, an earlier run has listed so much, and perhaps more: OpenSkipList appends to the file, and returns
// an error if that is missing or was changed. Otherwise it returns an error if the file exists and is
// not empty.
func OpenSkipList(path, namespace string, has *Listed) (*SkipList, error) {
	l := &SkipList{namespace: namespace, path: path, earlier: hashset.New(), sum: sha256.New()}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		l.made = true
	case err != nil:
		return nil, &RecordError{SkipRecord, path, err}
	case !info.Mode().IsRegular():
		return nil, &RecordError{SkipRecord, path, errors.New("not a regular file")}
	case info.Size() > 0 && has == nil:
		return nil, &RecordError{SkipRecord, path, errors.New("the file is not empty; move it, or use another file")}
	}
	if has == nil {
		has = &Listed{}
	}
	if err := l.open(*has); err != nil {
		return nil, &RecordError{SkipRecord, path, err}
	}
	return l, nil
}

// Path returns the name of the file.
func (l *SkipList) Path() string { return l.path }

// documents returns how many documents the file has values of. A document counts again when it was
// listed again later.
func (l *SkipList) documents() (int64, error) {
	if l == nil {
		return 0, nil
	}
	return ListedBeside(l.path, l.namespace, l.listed(), nil)
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
		if !l.earlier.Has(about(line)) {
			b = append(append(b, line...), '\n')
		}
	}
	l.begun = true
	if l.err != nil || len(b) == 0 {
		return
	}
	if _, err := l.file.Write(b); err != nil {
		l.fail(err)
		return
	}
	l.sum.Write(b)
	l.size += int64(len(b))
}

// about returns the part of a line that is not the reason, which is last.
func about(line []byte) []byte {
	if i := bytes.LastIndex(line, []byte(`,"reason":`)); i >= 0 {
		return line[:i]
	}
	return line
}

func skipLine(namespace string, id bson.RawValue, v rule.Left) ([]byte, error) {
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
		if line.Value, err = extJSON(v.Value.Raw()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(line)
}

// fail keeps the first error. The caller holds l.mu.
func (l *SkipList) fail(err error) {
	if l.err == nil {
		l.err = &RecordError{SkipRecord, l.path, err}
	}
}

// open opens the file, reads it, and removes an incomplete last line. It changes nothing if the file
// does not begin with what it has.
func (l *SkipList) open(has Listed) error {
	if l.made && has.Size > 0 {
		return fmt.Errorf("it is missing: an earlier run has listed values in it; %s", putBack)
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = l.read(f, has); err == nil {
		err = f.Truncate(l.size)
	}
	if err == nil {
		_, err = f.Seek(l.size, io.SeekStart)
	}
	if err == nil {
		err = files.SyncDir(filepath.Dir(l.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	return nil
}

const putBack = "put the file back as that run left it, or begin again with new files, after an undo if there is an undo log"

// read reads the complete lines of f.
func (l *SkipList) read(f io.Reader, has Listed) error {
	same := has.Size == 0
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		l.sum.Write(line)
		l.size += int64(len(line))
		l.earlier.Add(about(line))
		if l.size == has.Size {
			same = l.listed() == has
		}
	}
	if !same {
		return fmt.Errorf("it was cut off or changed: its first %d bytes are not those that an earlier run has listed; %s", has.Size, putBack)
	}
	return nil
}

// listed returns what the file has. The caller holds l.mu.
func (l *SkipList) listed() Listed {
	if l.size == 0 {
		return Listed{}
	}
	return Listed{l.size, hex.EncodeToString(l.sum.Sum(nil))}
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

// Listed returns what the list has on the disk, after it has brought it there.
func (l *SkipList) Listed() (Listed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed(), l.sync()
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
