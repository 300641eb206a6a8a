package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// Absolute returns the absolute path, for a user on another machine.
func Absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Exists reports whether there is something at path, or whether that is not known.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// FileError returns a usage error for the error of a file that the user named. If the disk is full or
// broken, which nothing that the user names cures, it returns an error of kind Failed. It returns nil for nil.
func FileError(err error) error {
	if err == nil {
		return nil
	}
	kind := failure.Usage
	var path *fs.PathError
	if errors.As(err, &path) && (path.Op == "write" || path.Op == "sync" || path.Op == "close") || errors.Is(err, syscall.ENOSPC) {
		kind = failure.Failed
	}
	return &failure.Error{Kind: kind, Text: err.Error(), Err: err}
}
