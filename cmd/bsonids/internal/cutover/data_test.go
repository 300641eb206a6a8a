package cutover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// messages keeps the warnings.
type messages struct{ told []string }

func (m *messages) Warn(format string, args ...any) {
	m.told = append(m.told, fmt.Sprintf(format, args...))
}
func (m *messages) Progress(int64, string, string) terminal.Progress { return terminal.NoProgress{} }
func (m *messages) About(string)                                     {}
func (m *messages) Child(string) session.Messages                    { return m }

// copied is a database whose collections have copies, each made by a run in the record: that of a is a_new.
type copied struct {
	*testing.T
	*messages
	s     *memory.Server
	db    *mongo.Database
	group Group
	o     Options
}

// document returns a document in a representation, whose UUIDs, one of them its _id, are told by a number.
func document(t testing.TB, n int, kind string) bson.Raw {
	u := [16]byte{byte(n), byte(n >> 8), 6: 0x40, 8: 0x80, 15: 1}
	return kindstest.Marshal(t, bson.D{{Key: "_id", Value: kindstest.Stored(u, kind)}, {Key: "v", Value: bson.A{kindstest.Stored(u, kind), "x"}}, {Key: "n", Value: int32(n)}})
}

// newCopied has n documents in each of the collections. A server has change streams if streams is set.
func newCopied(t *testing.T, streams bool, n int, names ...string) *copied {
	t.Helper()
	c := &copied{T: t, messages: new(messages), s: memory.Start(t)}
	c.s.Streams = streams
	c.db = c.s.Client.Database("d")
	c.o = Options{Database: "d", Write: true, Conversions: []string{}}
	for _, name := range names {
		var old, fresh []bson.Raw
		for i := range n {
			old, fresh = append(old, document(t, i, "generic")), append(fresh, document(t, i, "standard"))
		}
		c.s.Put(c.db.Collection(name), old...)
		c.s.Put(c.db.Collection(name+"_new"), fresh...)
		c.run(name, nil)
		c.group.Names, c.group.Copies = append(c.group.Names, name), append(c.group.Copies, name+"_new")
		c.o.Conversions = append(c.o.Conversions, "m/"+name)
	}
	return c
}

// run inserts the run that has made the copy of a collection into the record.
func (c *copied) run(name string, change func(r *record.Run)) {
	c.Helper()
	pairs := []kinds.Pair{{From: "generic", Fields: []string{"_id", "v"}}}
	ended := time.Now().Add(-time.Minute).UTC()
	r := record.Run{ID: name + "/1", Kind: record.Convert, Task: kinds.Task{Collection: name, Into: name + "_new", Pairs: pairs}, UUID: c.uuid(name), IntoUUID: c.uuid(name + "_new"), Epoch: 1, Conversion: "m/" + name, Migration: "m",
		Started: ended, Updated: ended, Ended: &ended, Outcome: record.Done, By: record.Who{User: "u", Host: "h", Token: name}, Decisions: []decide.Decision{{Subtype: 0, From: "generic", BySubtype: true}}}
	if change != nil {
		change(&r)
	}
	if _, err := c.db.Collection(record.Name).InsertOne(context.Background(), r); err != nil {
		c.Fatal(err)
	}
}

// uuid returns that of a collection, or nil.
func (c *copied) uuid(name string) *bson.Binary {
	c.Helper()
	specs, err := c.db.ListCollectionSpecifications(context.Background(), bson.D{{Key: "name", Value: name}})
	if err != nil || len(specs) == 0 {
		return nil
	}
	return specs[0].UUID
}

// verbs returns what a command does.
func (c *copied) verbs() *Cutovers {
	s := &session.Session{Client: c.s.Client, Messages: c.messages, Recording: session.Recording{Migration: "m", Lock: "lock", BatchTimeout: time.Second, Halves: true, TakeOver: true}}
	return New(s, c.o)
}

func (c *copied) cutOver() (Result, error) { return c.verbs().CutOver(c.Context(), c.group) }

func (c *copied) release() (Result, error) { return c.verbs().Release(c.Context(), c.group) }

// putBack rolls the cutover back that the record has.
func (c *copied) putBack() (r Result, err error) {
	e := c.verbs()
	all, err := e.ToPutBack(c.Context(), []Group{c.group})
	for _, of := range all {
		if r, err = e.PutBack(c.Context(), of); err != nil {
			return r, err
		}
	}
	return r, err
}

// state returns that of the last cutover, or "".
func (c *copied) state() string {
	c.Helper()
	all, err := record.Cutovers(c.Context(), c.db)
	if err != nil {
		c.Fatal(err)
	}
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].State
}

// docs fails the test unless a collection has the documents with the numbers, in any order.
func (c *copied) docs(name, kind string, numbers ...int) {
	c.Helper()
	got := c.s.Documents(c.db.Collection(name))
	if len(got) != len(numbers) {
		c.Errorf("%s has %d documents, want %d", name, len(got), len(numbers))
	}
	for _, n := range numbers {
		want := document(c, n, kind)
		if !slices.ContainsFunc(got, func(doc bson.Raw) bool { return bytes.Equal(doc, want) }) {
			c.Errorf("%s lacks document %d as %s", name, n, kind)
		}
	}
}

// fenced reports whether the server refuses documents of a collection.
func (c *copied) fenced(name string) bool {
	c.Helper()
	_, err := c.db.Collection(name).InsertOne(c.Context(), bson.D{{Key: "_id", Value: "probe"}})
	if err == nil {
		_, err = c.db.Collection(name).DeleteOne(c.Context(), bson.D{{Key: "_id", Value: "probe"}})
		if err != nil {
			c.Fatal(err)
		}
		return false
	}
	var failed mongo.WriteException
	if !errors.As(err, &failed) || !failed.HasErrorCode(121) {
		c.Fatal(err)
	}
	return true
}

// there reports whether there is a collection of the name.
func (c *copied) there(name string) bool { return c.uuid(name) != nil }

// numbers returns those below n.
func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// says reports whether a warning has the text.
func (m *messages) says(text string) bool { return strings.Contains(strings.Join(m.told, "\n"), text) }

func isUsage(err error) bool {
	var failed *failure.Error
	return errors.As(err, &failed) && failed.Kind == failure.Usage
}
