package convert

import (
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

var marshal = kindstest.Marshal

// header returns the header of an undo log of the conversion.
func header() Header {
	return Header{ID: "0123456789abcdef", Database: "d", Task: kinds.Task{Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy"}}}}
}

func plans(t testing.TB, c rule.Conversion, ids ...any) []Planned {
	t.Helper()
	var out []Planned
	for _, id := range ids {
		p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "ü\"", Value: kindstest.Value(c[0].From.Name)}}}}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Planned{Plan: p})
	}
	return out
}

func readAll(t testing.TB, path string) []Entry {
	t.Helper()
	u, err := ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var out []Entry
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

func newLog(t testing.TB, path string) *UndoLog {
	t.Helper()
	l, err := OpenUndoLog(path, header(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
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
