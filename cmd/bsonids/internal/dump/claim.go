package dump

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// ErrInUse is wrapped by the error of Claim if another process writes the output.
var ErrInUse = errors.New("another process writes it")

// Claim reserves the name of an output for this process until release is called, and removes what
// processes that were killed left beside it: files and directories with the temporary names that
// this package gives. On a file system without locks, it does nothing.
func Claim(path string) (release func(), err error) {
	path = filepath.Clean(path)
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".bsonids.lock")
	for range 100 {
		lock := flock.New(name)
		held, err := lock.TryLock()
		if err != nil {
			return func() {}, nil
		}
		if !held {
			return nil, &os.PathError{Op: "create", Path: path, Err: ErrInUse}
		}
		// Another process may have removed the file after this one opened it. Then the name leads to a
		// file that is not locked.
		again := flock.New(name)
		if gone, err := again.TryLock(); err != nil || gone {
			_ = again.Close()
			_ = lock.Close()
			continue
		}
		_ = again.Close()
		files.RemoveTemporary(filepath.Dir(path), temporary(path), true)
		return func() {
			err := os.Remove(name)
			_ = lock.Close()
			if err != nil { // Windows does not remove a file that is open
				_ = os.Remove(name)
			}
		}, nil
	}
	return nil, &os.PathError{Op: "create", Path: path, Err: ErrInUse}
}

// temporary is the pattern of the temporary names of an output.
func temporary(path string) string { return "." + filepath.Base(path) + ".bsonids-*.tmp" }

// CreateTemp creates a file with a temporary name of the output, in its directory.
func CreateTemp(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), temporary(path))
}
