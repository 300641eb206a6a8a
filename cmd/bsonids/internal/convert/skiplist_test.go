package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// The lines of a list have the value, also that of a field without a name, unless the reason is not about one.
func TestSkipList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.jsonl")
	if err := os.WriteFile(path, []byte("the list of the run before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := CreateSkipList(path, "d.c")
	if err != nil {
		t.Fatal(err)
	}
	id := bson.RawValue{Type: bson.TypeNull}
	l.add(id, []rule.Left{{Path: "gone", Value: rule.Value{Subtype: 3}, Reason: "what the pass before has left"}})
	l.Restart()
	if l.Begun() {
		t.Error("the list is not empty")
	}
	l.add(id, []rule.Left{{Path: "", Value: rule.Value{Subtype: 3, Octets: [16]byte{1}}, Reason: "a"}, {Path: "b", Value: rule.Value{Subtype: 3, Octets: [16]byte{2}}, Reason: "a"}})
	l.add(bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, []rule.Left{{Document: true, Reason: "b"}})
	if err := l.Sync(); err != nil || !l.Begun() || l.Err() != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); string(b) != "the list of the run before\n" {
		t.Errorf("before the end: %q, %v", b, err)
	}
	closed(t, l)
	const want = `{"collection":"d.c","_id":null,"path":"","value":{"$binary":{"base64":"AQAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":null,"path":"b","value":{"$binary":{"base64":"AgAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":true,"reason":"b"}
`
	if b, err := os.ReadFile(path); string(b) != want {
		t.Errorf("%s%v", b, err)
	}
	if l, err = CreateSkipList(path, "d.c"); err == nil {
		l.add(id, []rule.Left{{Document: true, Reason: "b"}})
		err = l.Discard()
	}
	if b, _ := os.ReadFile(path); string(b) != want || err != nil {
		t.Errorf("discarded: %s%v", b, err)
	}
	if l, err = CreateSkipList(path, "d.c"); err != nil {
		t.Fatal(err)
	}
	closed(t, l) // nothing is left any more
	if left, err := os.ReadDir(filepath.Dir(path)); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
	var none *SkipList
	none.Restart()
	none.add(id, []rule.Left{{}})
	if none.Sync() != nil || none.Err() != nil || none.Begun() {
		t.Error("no list has something")
	}
}

func TestSkipListWithoutDirectory(t *testing.T) {
	if _, err := CreateSkipList(filepath.Join(t.TempDir(), "absent", "list"), "d.c"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A file that cannot be created is found before anything is listed, and an error of one that was is kept.
func TestSkipListFails(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "absent", "list"), nowhere); err != nil {
		t.Skip(err)
	}
	var file *files.Error
	if _, err := CreateSkipList(nowhere, "d.c"); !errors.As(err, &file) || file.What != skipName {
		t.Errorf("a file that cannot be created: %v", err)
	}
	l, err := CreateSkipList(filepath.Join(dir, "list"), "d.c")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, l.file)
	l.add(bson.RawValue{Type: bson.TypeNull}, []rule.Left{{Document: true, Reason: "b"}})
	if !errors.As(l.Err(), &file) || l.Sync() != l.Err() || l.Close() == nil {
		t.Error(l.Err())
	}
	if _, err := os.Stat(filepath.Join(dir, "list")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list that is not whole has its name: %v", err)
	}
	l, err = CreateSkipList(filepath.Join(dir, "list"), "d.c")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, l.file)
	if l.Restart(); !errors.As(l.Err(), &file) {
		t.Error(l.Err())
	}
}
