package undo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
)

func isUsage(err error) bool {
	var failed *failure.Error
	return errors.As(err, &failed) && failed.Kind == failure.Usage
}

// A file that is no undo log is a usage error before a server is asked, and nothing has begun. It is not changed.
func TestNoLog(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), text, dir} {
		for _, write := range []bool{false, true} {
			u, err := restore(context.Background(), &migration.Session{}, Options{Write: write}, migration.Described{}, nil, path)
			if !isUsage(err) || u.Begun || u.Result.Restored != 0 {
				t.Errorf("%s, write %v: got %+v, %v", path, write, u, err)
			}
		}
	}
	if b, err := os.ReadFile(text); err != nil || string(b) != "hello\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
}
