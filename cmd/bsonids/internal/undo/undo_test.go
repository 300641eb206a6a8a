package undo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
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
			u, err := Log(context.Background(), &migration.Session{}, Options{Write: write}, path)
			if !isUsage(err) || u.Begun || u.Result.Restored != 0 {
				t.Errorf("%s, write %v: got %+v, %v", path, write, u, err)
			}
		}
	}
	if b, err := os.ReadFile(text); err != nil || string(b) != "hello\n" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// An old collection is gone for good if its cutover has ended and its name is not there.
func TestDropped(t *testing.T) {
	c := &record.Cutover{Collections: []record.Exchange{{Name: "a", Kept: "a.old"}, {Name: "b", Kept: "b.old"}}}
	for _, tt := range []struct {
		state, name string
		there       []string
		want        bool
	}{
		{record.Released, "a", []string{"a", "b", "b.old"}, true}, {record.Released, "b", []string{"a", "b", "b.old"}, false},
		{record.Released, "a", []string{"a.old"}, false}, {record.Released, "a", nil, true}, {record.Switched, "a", nil, false}, {record.Comparing, "b", nil, false},
	} {
		c.State = tt.state
		if got := dropped(c, tt.name, tt.there); got != tt.want {
			t.Errorf("%s of a cutover that is %s beside %q: %v", tt.name, tt.state, tt.there, got)
		}
	}
}

// Each state of a cutover has the next command, with all its collections: one that is released is put back, one that has switched is
// released first, and any other is ended or rolled back.
func TestErrInPlace(t *testing.T) {
	c := &record.Cutover{Collections: []record.Exchange{{Name: "a"}, {Name: "b c"}}}
	const undo, release, back = "bsonids undo --db app a 'b c' --write", "bsonids release --db app a 'b c' --write", "bsonids cutover --db app a 'b c' --roll-back --write"
	for state, want := range map[string][]string{
		record.Released: {undo}, record.Switched: {release, undo}, record.Releasing: {release, undo},
		record.Comparing: {back}, record.Fencing: {back}, record.Switching: {back}, record.RollingBack: {back}, record.Undoing: {back},
	} {
		c.State = state
		err := errInPlace(c, "app", "a", "a_new")
		if !isUsage(err) || !strings.Contains(err.Error(), state) || !strings.Contains(err.Error(), "a_new") {
			t.Errorf("%s: got %v", state, err)
		}
		text := err.Error()
		for _, command := range want {
			before, after, ok := strings.Cut(text, command)
			if !ok || strings.Contains(before, "bsonids ") {
				t.Errorf("%s: got %v, want %q next", state, err, command)
			}
			text = after
		}
		if strings.Contains(text, "bsonids ") {
			t.Errorf("%s: got %v, and no more than %q", state, err, want)
		}
	}
}
