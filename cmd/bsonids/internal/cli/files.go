package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// distinctFiles returns a usage error if two flags name the same file. skipList is the path of the
// skip list, whether or not a flag names it.
func (o *convertOptions) distinctFiles(skipList string) error {
	a, b := sameFile(map[string]string{"--state": o.state, "--undo-log": o.undoLog, "--skip-list": skipList, "--retry": o.retry, "--uri-file": o.uriFile})
	if a == "" {
		return nil
	}
	return failure.Usagef("%s and %s name the same file", a, b)
}

// sameFile returns two flags that name the same file, or two empty strings. files has the path of
// each flag, or an empty string.
func sameFile(files map[string]string) (a, b string) {
	flags := slices.Sorted(maps.Keys(files))
	for i, a := range flags {
		for _, b := range flags[:i] {
			if files[a] == "" || files[b] == "" {
				continue
			}
			if absolute(files[a]) == absolute(files[b]) {
				return b, a
			}
			info1, err1 := os.Stat(files[a])
			info2, err2 := os.Stat(files[b])
			if err1 == nil && err2 == nil && os.SameFile(info1, info2) {
				return b, a
			}
		}
	}
	return "", ""
}

// fileError returns a usage error with the text, which is about a file that the user named. If the
// disk is full or broken, which no other command line cures, it returns an error of kind Failed.
func fileError(err error, format string, args ...any) error {
	kind := failure.Usage
	var path *fs.PathError
	if errors.As(err, &path) && (path.Op == "write" || path.Op == "sync" || path.Op == "close") || errors.Is(err, syscall.ENOSPC) {
		kind = failure.Failed
	}
	return &failure.Error{Kind: kind, Text: fmt.Sprintf(format, args...), Err: err}
}
