package source

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// taker takes documents, of which the second one has an error.
type taker struct {
	n  int
	at error
}

func (t *taker) Add([]byte) error {
	if t.n++; t.n == 2 {
		return t.at
	}
	return nil
}

func (t *taker) Forget() {}

// A document that cannot be walked is passed over and counted. Another error ends the pass, and so does one of the
// server.
func TestAdd(t *testing.T) {
	refused, lost := errors.New("refused"), errors.New("lost")
	for _, tt := range []struct {
		at, server, want error
		taken            int
		malformed        int64
	}{{nil, nil, nil, 3, 0}, {walk.ErrCorrupt, nil, nil, 3, 1}, {refused, nil, refused, 2, 0}, {nil, lost, lost, 0, 0}} {
		cursor, err := mongo.NewCursorFromDocuments([]any{bson.D{}, bson.D{}, bson.D{}}, tt.server, nil)
		if err != nil {
			t.Fatal(err)
		}
		to, read, seen := &taker{at: tt.at}, Readout{}, 0
		err = read.add(t.Context(), cursor, to, func() { seen++ })
		if !errors.Is(err, tt.want) || to.n != tt.taken || seen != to.n || read.Malformed != tt.malformed {
			t.Errorf("%+v: %d taken, %+v, %v", tt, to.n, read, err)
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
	err = d.Each(t.Context(), func(doc bson.Raw) error {
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
	if err := d.Each(ended, func(bson.Raw) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	refused := errors.New("refused")
	for with, want := range map[error]string{refused: "refused", walk.ErrCorrupt: "a.bson"} {
		d := OpenDump(in, func(int) {})
		n := 0
		err := d.Each(t.Context(), func(bson.Raw) error { n++; return with })
		if err := errors.Join(err, d.Close()); !errors.Is(err, with) || !strings.Contains(err.Error(), want) || n != 1 {
			t.Errorf("%v after %d documents", err, n)
		}
	}
}

// A sample of n of all documents contains none of r documents with a probability of about (1-n/all)^r.
func TestMissed(t *testing.T) {
	for _, tt := range []struct{ read, all int64 }{{10, 200}, {10_000, 50_000}, {1, 10}, {10_000, 1 << 30}, {199, 200}} {
		r := Missed(tt.read, tt.all)
		missed := func(r int64) float64 { return math.Pow(1-float64(tt.read)/float64(tt.all), float64(r)) }
		if missed(r) > .05 && r < tt.all || missed(r-1) <= .05 {
			t.Errorf("%d of %d: %d", tt.read, tt.all, r)
		}
	}
	for _, tt := range []struct{ read, all, want int64 }{{0, 0, 0}, {5, 5, 1}, {6, 5, 1}, {0, 5, 5}, {1, 2, 2}} {
		if got := Missed(tt.read, tt.all); got != tt.want {
			t.Errorf("%d of %d: %d, want %d", tt.read, tt.all, got, tt.want)
		}
	}
}
