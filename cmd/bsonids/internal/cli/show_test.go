package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

// show prints an undo log and a ledger as text. Any other file, and an undo log that is damaged, is an error.
func TestShowFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	l, err := convert.OpenUndoLog(path("undo"), convert.Header{ID: "x", Database: "shop", Task: kinds.Task{Collection: "orders", Pairs: []kinds.Pair{{From: "javaLegacy"}}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ledger.OpenFile(path("ledger"))
	if err == nil {
		err = s.Begin("first")
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path("undo"))
	if err = errors.Join(err, l.Close(), s.Close(), os.WriteFile(path("other"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(path("damaged"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{path("undo"), failure.ExitOK, `"database":"shop","conversion":{"collection":"orders"`},
		{path("ledger"), failure.ExitOK, `{"run":"first"}`},
		{path("damaged"), failure.ExitUsage, path("damaged")},
		{path("other"), failure.ExitUsage, path("other")},
		{dir, failure.ExitUsage, dir},
		{path("none"), failure.ExitUsage, "not a UUID"},
	} {
		if r := command(t, "show", tt.path); r.code != tt.code || !strings.Contains(r.stdout+r.stderr, tt.want) {
			t.Errorf("%s: %d, %s%s", tt.path, r.code, r.stdout, r.stderr)
		}
	}
}
