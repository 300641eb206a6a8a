package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gofrs/flock"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// regular returns an error if path exists and is not a regular file. Reading a device may never
// end.
func regular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}

var errInUse = errors.New("in use by another process")

// LockPath returns the path of the lock of a file.
func LockPath(path string) string { return target(path) + ".lock" }

// LockFile locks the file at path against other processes. The file does not have to exist.
func LockFile(path string) (*flock.Flock, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	lock := flock.New(LockPath(path))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = errInUse
	}
	if err == nil {
		removeTemporary(target(path))
	}
	return lock, err
}

// removeTemporary removes what [ReplaceFile] left of the file in processes that were killed.
func removeTemporary(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		random, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		random, end := strings.CutSuffix(random, ".tmp")
		if ok && end && random != "" && strings.Trim(random, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// MayWrite returns an error if the file at path can neither be written to nor created. It leaves no
// file that was not there.
func MayWrite(path string) error {
	if err := regular(path); err != nil {
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

// target returns the file that path leads to if path is a symbolic link, and path otherwise. The
// file may not exist.
func target(path string) string {
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

// ReplaceFile replaces the file at path atomically, or creates it. It is on the disk when ReplaceFile
// returns.
func ReplaceFile(path string, b []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(b); err != nil {
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
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable if the system can sync directories.
func syncDir(dir string) error {
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

// wholeLines returns the size in bytes of the complete lines of f.
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

// unmarshalLine decodes a line of canonical extended JSON into a struct. A line that is cut off is
// found first, because the driver does not return from skipping an unknown field that has no end.
func unmarshalLine(line []byte, v any) error {
	if !json.Valid(line) {
		return errors.New("it is not JSON")
	}
	return bson.UnmarshalExtJSON(line, true, v)
}
