// Package files locks files, and replaces them so that they survive a crash.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
)

// Regular returns an error if path exists and is not a regular file. Reading a device may never
// end.
func Regular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}

// ReadAtMost reads the file at path, which may be a pipe. The error is that of opening it without its name, or that it has
// more bytes.
func ReadAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nameless(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("it is larger than %d bytes", most)
	}
	return b, err
}

// nameless returns the error of a file without the name of the file and of the operation.
func nameless(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// ErrInUse is the error of a file that another process has locked.
var ErrInUse = errors.New("in use by another process")

// LockPath returns the path of the lock of a file.
func LockPath(path string) string { return Target(path) + ".lock" }

// Lock locks the file at path against other processes, and removes what those that were killed have left
// beside it under temporary names. The file does not have to exist.
func Lock(path string) (*flock.Flock, error) {
	if err := Regular(path); err != nil {
		return nil, err
	}
	lock := flock.New(LockPath(path))
	held, err := lock.TryLock()
	for err == nil && held && gone(lock.Path()) {
		if err = lock.Unlock(); err == nil {
			held, err = lock.TryLock()
		}
	}
	if err == nil && !held {
		err = ErrInUse
	}
	if err == nil {
		removeTemporary(filepath.Dir(Target(path)), temporary(Target(path)))
	}
	return lock, err
}

// gone reports whether a lock that this process holds is of a file that Discard removed after it was opened:
// the name leads to no file then, or to one that is not locked.
func gone(path string) bool {
	again := flock.New(path)
	free, err := again.TryLock()
	_ = again.Close()
	return err == nil && free
}

// Discard removes the file at path, which this process has made, and its lock, and unlocks it.
func Discard(path string, lock *flock.Flock) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	open := os.Remove(lock.Path()) != nil // some systems do not remove a file that is open
	err = errors.Join(err, lock.Unlock())
	if open {
		_ = os.Remove(lock.Path())
	}
	return err
}

// temporary is the pattern of the names that [Replace] gives before a file has its own.
func temporary(path string) string { return filepath.Base(path) + ".*.tmp" }

// removeTemporary removes the files and directories in dir that have a name of the pattern of [os.CreateTemp].
// Processes that were killed have left them.
func removeTemporary(dir, pattern string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	prefix, suffix, _ := strings.Cut(pattern, "*")
	for _, e := range entries {
		random, ok := strings.CutPrefix(e.Name(), prefix)
		random, end := strings.CutSuffix(random, suffix)
		if ok && end && random != "" && strings.Trim(random, "0123456789") == "" && (e.IsDir() || e.Type().IsRegular()) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// MayWrite returns an error if the file at path can neither be written to nor created. It leaves no
// file that was not there.
func MayWrite(path string) error {
	if err := Regular(path); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil || !made {
		return err
	}
	return os.Remove(path)
}

// Target returns the file that path leads to if path is a symbolic link, and path otherwise. The
// file may not exist.
func Target(path string) string {
	for range 40 { // the limit of Linux
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

// Replace replaces the file at path atomically, or creates it. It is on the disk when Replace
// returns.
func Replace(path string, b []byte) error {
	return ReplaceFrom(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// ReplaceFrom is like [Replace], with what write writes.
func ReplaceFrom(path string, write func(w io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if err = write(tmp); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes a rename durable if the system can sync directories.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
