package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// show prints an undo log and a ledger as text. Any other file, and an undo log that is damaged, is an error.
func TestShowFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	l, err := convert.OpenUndoLog(path, convert.Identity{Database: "shop", Collection: "orders", Pairs: []kinds.Pair{{From: "javaLegacy", To: "standard"}}}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	show := func(path string) (int, string) {
		var out, errs bytes.Buffer
		code := Run(t.Context(), []string{"show", path}, &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := show(path); code != failure.ExitOK || !strings.Contains(text, `"conversion":{"database":"shop","collection":"orders"`) {
		t.Errorf("%d, %s", code, text)
	}
	state := filepath.Join(t.TempDir(), "state")
	s, err := convert.OpenState(state, l.Identity)
	if err == nil {
		err = s.Close()
	}
	if code, text := show(state); err != nil || code != failure.ExitOK || !strings.Contains(text, `{"set":{"changedDocuments":0,"conversion":{"database":"shop"`) {
		t.Errorf("%d, %s, %v", code, text, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, other, t.TempDir()} {
		if code, text := show(p); code != failure.ExitUsage || !strings.Contains(text, p) {
			t.Errorf("%d, %s", code, text)
		}
	}
	if code, text := show(path + "none"); code != failure.ExitUsage || strings.Contains(text, "undo log") {
		t.Errorf("%d, %s", code, text)
	}
}
