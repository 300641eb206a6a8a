package servertest

import (
	"io"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/integration/mongotest"
)

func marshal(t testing.TB, v any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func plans(t testing.TB, c rule.Conversion, ids ...any) []convert.Planned {
	t.Helper()
	var out []convert.Planned
	for _, id := range ids {
		p, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: bson.D{{Key: "ü\"", Value: kindstest.Value(c[0].From.Name)}}}}))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, convert.Planned{Plan: p})
	}
	return out
}

func readAll(t testing.TB, path string) []convert.Entry {
	t.Helper()
	u, err := convert.ReadUndoLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	var out []convert.Entry
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

// files are the state file and the undo log of a conversion, opened for one run after another.
type files struct {
	state, undo string
	id          convert.Identity
}

func newFiles(t *testing.T, c rule.Conversion) files {
	dir := t.TempDir()
	return files{filepath.Join(dir, "state"), filepath.Join(dir, "undo"), convert.Identity{Database: "d", Collection: "c", Pairs: c.Pairs()}}
}

// with opens both files for f. If f leaves a state, it is saved, as it was when a process was
// killed.
func (f files) with(t *testing.T, do func(*convert.StateFile, *convert.UndoLog)) {
	t.Helper()
	s, err := convert.OpenState(f.state, f.id)
	if err != nil {
		t.Fatal(err)
	}
	u, err := convert.OpenUndoLog(f.undo, f.id, f.state, 0)
	if err != nil {
		t.Fatal(err)
	}
	do(s, u)
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func collection(t *testing.T) *mongo.Collection {
	t.Helper()
	return connect(t, mongotest.Start(t)).Collection("c")
}

func conversion(t testing.TB, from, to string, fields ...string) rule.Conversion {
	t.Helper()
	return kindstest.Conversion(t, rule.NewConversion, from, to, fields...)
}
