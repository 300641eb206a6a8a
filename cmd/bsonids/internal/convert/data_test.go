package convert

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

var marshal = kindstest.Marshal

var errTest = errors.New("failing")

// newLog returns the log of a run that began at the minute of an hour.
func newLog(dir string, minute int) *undolog.Log {
	return undolog.New(dir, undolog.Header{Run: fmt.Sprintf("%016x", minute), Started: time.UnixMilli(1700000000000).Add(time.Duration(minute) * time.Minute)})
}

// entryOf returns the entry of a document that is about to be converted.
func entryOf(t testing.TB, c rule.Conversion, doc any) undolog.Entry {
	t.Helper()
	p, err := c.Edits(marshal(t, doc))
	if err != nil {
		t.Fatal(err)
	}
	return undolog.Entry{ID: p.ID, Changes: p.Changes}
}

// appended writes entries for documents with the ids, each by itself.
func appended(t testing.TB, l *undolog.Log, c rule.Conversion, ids ...any) {
	t.Helper()
	for _, id := range ids {
		if err := l.Append([]undolog.Entry{entryOf(t, c, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: kindstest.Value(c[0].From.Name)}})}); err != nil {
			t.Fatal(err)
		}
	}
}

// logsIn opens the logs in a directory.
func logsIn(t testing.TB, dir string) undolog.Logs {
	t.Helper()
	all, broken, err := undolog.In(dir)
	if err != nil || len(broken) > 0 {
		t.Fatal(broken, err)
	}
	logs := undolog.Of(all...)
	t.Cleanup(func() { _ = logs.Close() })
	return logs
}

func closed(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func conversion(t testing.TB, from string, fields ...string) rule.Conversion {
	t.Helper()
	return kindstest.Conversion(t, rule.NewConversion, from, fields...)
}
