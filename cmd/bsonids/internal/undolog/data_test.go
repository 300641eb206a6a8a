package undolog

import (
	"io"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// header returns a header with every field.
func header() Header {
	return Header{Run: "0123456789abcdef", Started: time.UnixMilli(1600000000123).UTC(), Database: "d", CollectionUUID: "00112233445566778899aabbccddeeff", Limit: time.Minute,
		Task: kinds.Task{Collection: "c", Filter: `{"a":{"$numberInt":"1"}}`, Pairs: []kinds.Pair{{From: "javaLegacy", Fields: []string{"a"}, Trust: []string{"a"}}}}}
}

// entriesOf returns an entry for a document with each of the ids.
func entriesOf(t testing.TB, ids ...any) (out []Entry) {
	t.Helper()
	c := kindstest.Conversion(t, rule.NewConversion, "javaLegacy")
	for _, id := range ids {
		p, err := c.Edits(kindstest.Marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "ü\"", Value: kindstest.Value("javaLegacy")}}}}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Entry{ID: p.ID, Changes: p.Changes})
	}
	return out
}

// writtenLog writes a log of three entries, the last with "again", and returns its path.
func writtenLog(t *testing.T) string {
	t.Helper()
	l := New(t.TempDir(), header())
	for i := range 3 {
		e := entriesOf(t, int32(i))
		e[0].Again = i == 2
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	return l.Path()
}

func opened(t *testing.T, path string) *Reader {
	t.Helper()
	u, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	return u
}

func readAll(t testing.TB, path string) (out []Entry) {
	t.Helper()
	u, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for {
		e, err := u.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func closed(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
