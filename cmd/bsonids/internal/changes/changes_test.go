package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// event returns an event of a collection, whose token is its number, in the format of the manual of MongoDB:
// reference/change-events. key is the _id of its document, or nil.
func event(t *testing.T, n int, kind, coll string, key any) (e Event) {
	t.Helper()
	doc := bson.D{{Key: "_id", Value: bson.D{{Key: "_data", Value: fmt.Sprint(n)}}}, {Key: "operationType", Value: kind}, {Key: "clusterTime", Value: bson.Timestamp{T: 7, I: uint32(n)}}}
	if coll != "" {
		doc = append(doc, bson.E{Key: "ns", Value: bson.D{{Key: "db", Value: "d"}, {Key: "coll", Value: coll}}})
	}
	if to, ok := key.(string); ok && kind == "rename" {
		doc = append(doc, bson.E{Key: "to", Value: bson.D{{Key: "db", Value: "d"}, {Key: "coll", Value: to}}})
	} else if key != nil {
		doc = append(doc, bson.E{Key: "documentKey", Value: bson.D{{Key: "shard", Value: 1}, {Key: "_id", Value: key}}})
	}
	if err := bson.Unmarshal(kindstest.Marshal(t, doc), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// ids returns the _ids of a batch as text.
func ids(b Batch) string {
	var all []string
	for name, of := range b.IDs {
		for _, id := range of {
			all = append(all, name+" "+id.String())
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Events are sorted by collection, each document once, until one ends a collection. Values of two types are two documents.
func TestSort(t *testing.T) {
	type of struct {
		kind, coll string
		key        any
	}
	for name, tt := range map[string]struct {
		events []of
		want   string
		n      int  // events
		ends   bool // by the last of these
	}{
		"none":            {nil, "", 0, false},
		"each once":       {[]of{{"insert", "a", int32(1)}, {"update", "a", int32(1)}, {"delete", "b", int32(1)}, {"replace", "a", int64(1)}}, `a {"$numberInt":"1"}, a {"$numberLong":"1"}, b {"$numberInt":"1"}`, 4, false},
		"others":          {[]of{{"insert", "x", int32(1)}, {"create", "a", nil}, {"drop", "x", nil}, {"rename", "x", "y"}}, "", 4, false},
		"dropped":         {[]of{{"insert", "a", int32(1)}, {"drop", "b", nil}, {"insert", "a", int32(2)}}, `a {"$numberInt":"1"}`, 2, true},
		"renamed away":    {[]of{{"rename", "a", "x"}, {"insert", "b", int32(2)}}, "", 1, true},
		"renamed in":      {[]of{{"insert", "b", int32(2)}, {"rename", "x", "a"}}, `b {"$numberInt":"2"}`, 2, true},
		"database":        {[]of{{"dropDatabase", "", nil}, {"invalidate", "", nil}}, "", 1, true},
		"end of a stream": {[]of{{"invalidate", "", nil}}, "", 1, true},
	} {
		var events []Event
		for i, e := range tt.events {
			events = append(events, event(t, i, e.kind, e.coll, e.key))
		}
		b, err := Sort(events, []string{"a", "b"})
		if err != nil || ids(b) != tt.want || b.Events != tt.n || (b.End != nil) != tt.ends || b.Lost != "" {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
		if tt.n > 0 && (!slices.Equal(b.At, events[tt.n-1].Token) || b.Time != events[tt.n-1].Time || tt.ends && b.End.Type != tt.events[tt.n-1].kind) {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if _, err := Sort([]Event{event(t, 1, "insert", "a", int32(1)), {Type: "insert", NS: struct{ DB, Coll string }{"d", "a"}, Key: kindstest.Marshal(t, bson.D{{Key: "x", Value: 1}})}}, []string{"a"}); err == nil {
		t.Error("an event without _id is sorted")
	}
}

// served returns a server with change streams.
func served(t *testing.T) (*memory.Server, *mongo.Database) {
	t.Helper()
	s := memory.Start(t)
	s.Streams = true
	db := s.Client.Database("d")
	s.Put(db.Collection("a"))
	s.Put(db.Collection("x"))
	return s, db
}

// next returns what a stream has, or why it ends. The driver asks the server only for the second time.
func next(t *testing.T, s *Stream) (Batch, error) {
	t.Helper()
	if b, err := s.Next(t.Context()); err != nil || b.Events > 0 {
		return b, err
	}
	return s.Next(t.Context())
}

func write(t *testing.T, db *mongo.Database, name string, ids ...any) {
	t.Helper()
	for _, id := range ids {
		if _, err := db.Collection(name).InsertOne(t.Context(), bson.D{{Key: "_id", Value: id}}); err != nil {
			t.Fatal(err)
		}
	}
}

// A stream has what happens in its collections behind its position, at most as many events at a time as are asked for, and the position
// of each batch is one from which another stream goes on.
func TestStream(t *testing.T) {
	_, db := served(t)
	write(t, db, "a", "before")
	at, err := Now(t.Context(), db, "a")
	if err != nil || at == nil {
		t.Fatal(at, err)
	}
	write(t, db, "a", "1", "2")
	write(t, db, "x", "3")
	write(t, db.Client().Database("e"), "a", "4")
	write(t, db, "a", "5")
	for _, most := range []int{1, 2, 100} {
		s, err := Open(t.Context(), db, []string{"a"}, at, most)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var positions []bson.Raw
		for {
			b, err := s.Next(t.Context())
			if err != nil || b.Events > most {
				t.Fatalf("%+v, %v", b, err)
			}
			if positions = append(positions, b.At); b.Events == 0 {
				if !b.Time.IsZero() || b.At == nil {
					t.Errorf("%+v", b)
				}
				break
			}
			got = append(got, ids(b))
		}
		s.Close()
		if all := strings.Join(got, ", "); all != `a "1", a "2", a "5"` {
			t.Errorf("%d at a time: %s", most, all)
		}
		s, err = Open(t.Context(), db, []string{"a"}, positions[0], 100)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Next(t.Context())
		if want := strings.Join(got[1:], ", "); err != nil || ids(b) != want {
			t.Errorf("behind the first batch of %d: %s, want %s, %v", most, ids(b), want, err)
		}
		s.Close()
	}
}

// A collection that is renamed or dropped ends the batch, and one that is not asked for does not.
func TestStreamEnds(t *testing.T) {
	for name, end := range map[string]func(db *mongo.Database) error{
		"rename": func(db *mongo.Database) error {
			return db.Client().Database("admin").RunCommand(context.Background(), bson.D{{Key: "renameCollection", Value: "d.a"}, {Key: "to", Value: "d.b"}}).Err()
		},
		"drop": func(db *mongo.Database) error { return db.Collection("a").Drop(context.Background()) },
	} {
		_, db := served(t)
		s, err := Open(t.Context(), db, []string{"a"}, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		write(t, db, "a", "1")
		if err := errors.Join(db.Collection("x").Drop(t.Context()), end(db)); err != nil {
			t.Fatal(err)
		}
		if b, err := next(t, s); err != nil || b.End == nil || b.End.Type != name || b.End.NS.Coll != "a" || ids(b) != `a "1"` {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
}

// A server without change streams is told apart from one that fails, and a stream that the server has forgotten, or has closed, from one
// in which nothing happens.
func TestNoStream(t *testing.T) {
	m, db := served(t)
	m.Streams = false
	var none *NoneError
	if _, err := Now(t.Context(), db, "a"); !errors.As(err, &none) || !strings.Contains(none.Error(), "the server has no change streams") {
		t.Error(err)
	}
	m.Streams = true
	m.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "aggregate" {
			f.Code = 13
		}
		return f
	}
	if _, err := Now(t.Context(), db, "a"); !failure.IsDenied(err) {
		t.Error(err)
	}
	m.Before = nil
	s, err := Open(t.Context(), db, []string{"a"}, nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "getMore" {
			f.Code = 286 // ChangeStreamHistoryLost
		}
		return f
	}
	if _, err := next(t, s); !failure.Means(err, failure.Forgotten) {
		t.Error(err)
	}
}
