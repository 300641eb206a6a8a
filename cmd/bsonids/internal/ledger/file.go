package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// File is a ledger in a file that no other process can open. It is safe for concurrent use.
type File struct {
	*Ledger
	path string
	lock *flock.Flock
	file *os.File
}

// OpenFile opens the ledger at path, or creates one if the file does not exist. The caller must close it.
func OpenFile(path string) (*File, error) {
	lock, err := files.Lock(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: files.Target(path), lock: lock}
	if err := f.open(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open() error {
	if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
		if err := files.Replace(f.path, New()); err != nil {
			return err
		}
	}
	var err error
	if f.file, err = os.OpenFile(f.path, os.O_RDWR, 0); err == nil {
		f.Ledger, err = Open(f.file)
	}
	return err
}

// Path returns the path of the file, which is not a symbolic link.
func (f *File) Path() string { return f.path }

// Close closes the file and unlocks it.
func (f *File) Close() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	// The lock file is not removed: otherwise two processes could lock different files of the same
	// name.
	return errors.Join(err, f.lock.Unlock())
}

// ReadFile reads the ledger at path, which another process may be writing.
func ReadFile(path string) (*Ledger, error) {
	if err := files.Regular(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	l, _, err := read(file)
	return l, err
}

// Add adds the fields of v in JSON, with names that begin with under.
func (f Facts) Add(under string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var facts Facts
	err = json.Unmarshal(b, &facts)
	for name, fact := range facts {
		f[under+name] = fact
	}
	return err
}

// Decode sets v to the facts. The error wraps [ErrFormat] if v does not have one of them.
func (f Facts) Decode(v any) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return nil
}
