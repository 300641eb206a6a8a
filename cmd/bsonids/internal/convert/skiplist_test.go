package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// A value of a field without a name is listed and read again, unlike a reason that is not about a
// value.
func TestSkipListEmptyName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.jsonl")
	l, err := OpenSkipList(path, "d.c", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := bson.RawValue{Type: bson.TypeNull}
	l.add(id, []rule.Left{{Path: "", Value: rule.Value{Subtype: 3, Octets: [16]byte{1}}, Reason: "a"}, {Path: "b", Value: rule.Value{Subtype: 3, Octets: [16]byte{2}}, Reason: "a"}})
	l.add(bson.RawValue{Type: bson.TypeBoolean, Value: []byte{1}}, []rule.Left{{Document: true, Reason: "b"}})
	if n, err := l.documents(); n != 2 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	closed(t, l)
	const want = `{"collection":"d.c","_id":null,"path":"","value":{"$binary":{"base64":"AQAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":null,"path":"b","value":{"$binary":{"base64":"AgAAAAAAAAAAAAAAAAAAAA==","subType":"03"}},"reason":"a"}
{"collection":"d.c","_id":true,"reason":"b"}
`
	if b, err := os.ReadFile(path); string(b) != want {
		t.Errorf("%s%v", b, err)
	}
	// A person has added a line, and a process was killed while it wrote the next one.
	if err := os.WriteFile(path+".edited", []byte(want+"x\n"+want[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	edited, err := OpenSkipList(path+".edited", "d.c", &Listed{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := edited.documents(); err == nil || !strings.Contains(err.Error(), "line 4:") {
		t.Errorf("%v", err)
	}
	closed(t, edited)
	r := &Retry{entries: make(map[string]*listed)}
	n := 0
	err = eachListed(path, "d.c", func(id bson.RawValue, v *listedValue) {
		if n++; v != nil {
			r.add(id, *v)
		}
	})
	if err != nil || n != strings.Count(want, "\n") {
		t.Fatal(n, err)
	}
	if len(r.entries) != 1 {
		t.Errorf("%d documents", len(r.entries))
	}
	for _, e := range r.entries {
		if len(e.values) != 2 || !e.has[listedValue{value: rule.Value{Subtype: 3, Octets: [16]byte{1}}}] {
			t.Errorf("%v", e.values)
		}
	}
}

func TestSkipListWithoutDirectory(t *testing.T) {
	if _, err := OpenSkipList(filepath.Join(t.TempDir(), "absent", "list"), "d.c", nil); !errors.Is(err, os.ErrNotExist) {
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
	if _, err := OpenSkipList(nowhere, "d.c", nil); !errors.As(err, &file) || file.Record != SkipRecord {
		t.Errorf("a file that cannot be created: %v", err)
	}
	path := filepath.Join(dir, "list")
	for _, was := range []string{"", "{}\n"} {
		if was != "" {
			if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := OpenSkipList(path, "d.c", &Listed{})
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

// A run that continues notices a list that lacks what an earlier run has listed, by its name, and changes
// nothing. It does not list again what is listed.
func TestSkipListContinued(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "list")
	ids := []bson.RawValue{{Type: bson.TypeNull}, {Type: bson.TypeBoolean, Value: []byte{0}}, {Type: bson.TypeBoolean, Value: []byte{1}}}
	left := func(reason string) []rule.Left {
		return []rule.Left{{Path: "a", Value: rule.Value{Subtype: 3, Octets: [16]byte{1}}, Reason: reason}}
	}
	l, err := OpenSkipList(path, "d.c", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.add(ids[0], left("a"))
	l.add(ids[1], left("a"))
	has, err := l.Listed()
	if err != nil {
		t.Fatal(err)
	}
	l.add(ids[2], left("a")) // after the state was saved for the last time
	closed(t, l)
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for how, b := range map[string][]byte{"missing": nil, "empty": {}, "cut": was[:has.Size-1], "a line less": was[:has.Size/2], "a line less before": was[has.Size/2:],
		"edited": append([]byte("["), was[1:]...), "longer": append([]byte("\n"), was...)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var file *RecordError
		if _, err := OpenSkipList(path, "d.c", &has); !errors.As(err, &file) || file.Record != SkipRecord || file.Path != path {
			t.Errorf("%s: %v", how, err)
		}
		if now, err := os.ReadFile(path); string(now) != string(b) || (err == nil) != (b != nil) {
			t.Errorf("%s: the file has %q, %v", how, now, err)
		}
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Torn by a crash, behind what the state knows of.
	if err := os.WriteFile(path, append(was[:len(was):len(was)], was[:9]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = OpenSkipList(path, "d.c", &has); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		l.add(id, left("another reason"))
	}
	if !l.Begun() {
		t.Error("nothing was listed")
	}
	if now, err := os.ReadFile(path); string(now) != string(was) || err != nil {
		t.Errorf("the file has %q, %v; want %q", now, err, was)
	}
	l.add(ids[0], []rule.Left{{Path: "b", Value: rule.Value{Subtype: 3, Octets: [16]byte{1}}}})
	if has, err = l.Listed(); err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	sum := sha256.Sum256(b)
	if err != nil || has.Size != int64(len(b)) || has.Size == int64(len(was)) || has.Sum != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v of %q, %v", has, b, err)
	}
	if l, err = OpenSkipList(path, "d.c", &has); err != nil || l.Close() != nil {
		t.Fatal(err)
	}
}
