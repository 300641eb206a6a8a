package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A value of a field without a name is listed and read again, unlike a reason that is not about a
// value.
func TestSkipListEmptyName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.jsonl")
	l, err := OpenSkipList(path, "d.c", false)
	if err != nil {
		t.Fatal(err)
	}
	id := bson.RawValue{Type: bson.TypeNull}
	l.add(id, 3, []rule.Left{{Path: "", Old: [16]byte{1}, Reason: "a"}, {Path: "b", Old: [16]byte{2}, Reason: "a"}})
	l.add(bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, 3, []rule.Left{{Document: true, Reason: "b"}})
	if n, err := l.documents(); n != 2 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `{"collection":"d.c","_id":null,"path":"","value":{"$binary":{"base64":"AQAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":null,"path":"b","value":{"$binary":{"base64":"AgAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":true,"reason":"b"}
`
	if b, err := os.ReadFile(path); string(b) != want {
		t.Errorf("%s%v", b, err)
	}
	edited, err := OpenSkipList(path+".edited", "d.c", false)
	if err == nil {
		err = os.WriteFile(path+".edited", []byte(want+"x\n"+want[:20]), 0o600)
	}
	if n, err2 := edited.documents(); n != 3 || err != nil || err2 != nil {
		t.Errorf("%d documents, %v, %v", n, err, err2)
	}
	r, err := ReadSkipList(path, "d.c", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.entries) != 1 {
		t.Errorf("%d documents", len(r.entries))
	}
	for _, e := range r.entries {
		if len(e.values) != 2 || !e.has[listedValue{octets: [16]byte{1}}] {
			t.Errorf("%v", e.values)
		}
	}
}

func TestSkipListWithoutDirectory(t *testing.T) {
	if _, err := OpenSkipList(filepath.Join(t.TempDir(), "absent", "list"), "d.c", false); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A file that cannot be created is found before anything is listed, and one in which nothing is listed
// is not left.
func TestSkipListOpened(t *testing.T) {
	dir := t.TempDir()
	nowhere := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "absent", "list"), nowhere); err != nil {
		t.Skip(err)
	}
	var file *RecordError
	if _, err := OpenSkipList(nowhere, "d.c", false); !errors.As(err, &file) || file.Record != SkipRecord {
		t.Errorf("a file that cannot be created: %v", err)
	}
	path := filepath.Join(dir, "list")
	for _, was := range []string{"", "{}\n"} {
		if was != "" {
			if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := OpenSkipList(path, "d.c", true)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil || l.Begun() {
			t.Error(err)
		}
		if b, err := os.ReadFile(path); string(b) != was || (err == nil) != (was != "") {
			t.Errorf("the file has %q, %v; want %q", b, err, was)
		}
	}
}
