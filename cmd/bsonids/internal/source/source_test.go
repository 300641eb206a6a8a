package source

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// list is documents of memory. It passes damaged documents over if it is tolerant.
type list struct {
	docs     []bson.Raw
	tolerant bool
	damaged  int
	fails    error // after the last document
}

func (l *list) Next(context.Context) (bson.Raw, error) {
	if len(l.docs) == 0 {
		return nil, l.fails
	}
	doc := l.docs[0]
	l.docs = l.docs[1:]
	return doc, nil
}

func (l *list) Damaged(err error) error {
	if l.damaged++; l.tolerant {
		return nil
	}
	return err
}

func (l *list) Close() error { return nil }

// Each document is visited once. The source says whether a damaged one ends the pass; an error of the
// visitor does, and so does one of the source.
func TestEach(t *testing.T) {
	lost, refused := errors.New("lost"), errors.New("refused")
	for _, tt := range []struct {
		name     string
		tolerant bool
		fails    error
		at       int   // where visit fails
		with     error // how
		visited  int
		want     error
	}{
		{"all", false, io.EOF, -1, nil, 3, nil},
		{"lost", false, lost, -1, nil, 3, lost},
		{"refused", true, io.EOF, 1, refused, 2, refused},
		{"damaged", false, io.EOF, 1, walk.ErrCorrupt, 2, walk.ErrCorrupt},
		{"damaged and passed over", true, io.EOF, 1, walk.ErrCorrupt, 3, nil},
	} {
		l, n := &list{docs: make([]bson.Raw, 3), tolerant: tt.tolerant, fails: tt.fails}, 0
		err := Each(t.Context(), l, func(bson.Raw) error {
			if n++; n-1 == tt.at {
				return tt.with
			}
			return nil
		})
		if !errors.Is(err, tt.want) || n != tt.visited || (l.damaged > 0) != errors.Is(tt.with, walk.ErrCorrupt) {
			t.Errorf("%s: %d visited, %d damaged, %v", tt.name, n, l.damaged, err)
		}
	}
}

// The documents of a dump come with their collections, and collections without documents are seen. The
// progress is the number of documents, and a context that ended ends the reading.
func TestDump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	docs := func(n int) (out []any) {
		for i := range n {
			out = append(out, bson.D{{Key: "_id", Value: int32(i)}})
		}
		return out
	}
	dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "a", Metadata: "{}", Documents: docs(told + 5)},
		dumptest.Collection{Database: "d", Name: "b", Metadata: "{}"}, dumptest.Collection{Database: "d", Name: "c", Documents: docs(2)})
	in, err := dump.Open(path, nil, dump.Collection{})
	if err != nil {
		t.Fatal(err)
	}
	var progress []int
	d := OpenDump(in, func(n int) { progress = append(progress, n) })
	read := make(map[string]int)
	err = Each(t.Context(), d, func(doc bson.Raw) error {
		if got, ok := doc.Lookup("_id").Int32OK(); !ok || int(got) != read[d.Item.Collection.Name] {
			t.Fatalf("%v", doc)
		}
		read[d.Item.Collection.Name]++
		return nil
	})
	var seen []string
	for _, c := range d.Collections {
		seen = append(seen, c.Name)
	}
	slices.Sort(seen)
	if err := errors.Join(err, d.Close()); err != nil || read["a"] != told+5 || read["c"] != 2 || len(read) != 2 || !slices.Equal(seen, []string{"a", "b", "c"}) || !slices.Equal(progress, []int{told, 7}) {
		t.Errorf("%v, %v, progress %v, %v", read, seen, progress, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	d = OpenDump(in, func(int) {})
	if err := Each(ended, d, func(bson.Raw) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
