package cli

import (
	"maps"
	"os"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
)

// isDirectory reports whether there is a directory at path.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// distinctFiles returns a usage error if two flags name the same file.
func (o *convertOptions) distinctFiles() error {
	a, b := sameFile(map[string]string{"--state": o.work.State, "--undo-log": o.work.UndoLog, "--skip-list": o.work.SkipList, "--retry": o.work.Retry, "--uri-file": o.uriFile})
	if a == "" {
		return nil
	}
	return failure.Usagef("%s and %s name the same file", a, b)
}

// sameFile returns two flags that name the same file, or two empty strings. paths has the path of
// each flag, or an empty string.
func sameFile(paths map[string]string) (a, b string) {
	flags := slices.Sorted(maps.Keys(paths))
	for i, a := range flags {
		for _, b := range flags[:i] {
			if paths[a] == "" || paths[b] == "" {
				continue
			}
			if migration.Absolute(files.LockPath(paths[a])) == migration.Absolute(files.LockPath(paths[b])) { // behind links, too
				return b, a
			}
			info1, err1 := os.Stat(paths[a])
			info2, err2 := os.Stat(paths[b])
			if err1 == nil && err2 == nil && os.SameFile(info1, info2) {
				return b, a
			}
		}
	}
	return "", ""
}
