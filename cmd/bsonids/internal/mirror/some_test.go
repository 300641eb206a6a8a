package mirror

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// Of large documents that have changed, only a page is in the memory: 32 MiB, and one document.
func TestSomeLargeDocuments(t *testing.T) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	m := Mirror{Old: db.Collection("old"), New: db.Collection("new"), Index: new(Index), Write: true, Batch: 1000,
		Begin: func(ctx context.Context) (context.Context, context.CancelFunc, error) { return ctx, func() {}, nil }}
	var docs []bson.Raw
	var ids []bson.RawValue
	for i := range int32(11) {
		doc := marshal(t, bson.D{{Key: "_id", Value: i}, {Key: "large", Value: make([]byte, 4<<20)}})
		docs, ids = append(docs, doc), append(ids, doc.Lookup("_id"))
	}
	s.Put(m.Old, docs...)
	writes := 0
	s.Before = func(name string, _ bson.Raw) memory.Fault {
		if name == "insert" || name == "delete" {
			writes++
		}
		return memory.Fault{}
	}
	none := db.Collection("none")
	for _, gone := range []bool{false, true} { // the copies are inserted, and then deleted, because the old collection lacks them
		if gone {
			m.Old = none
		}
		writes = 0
		r, err := m.Some(t.Context(), ids, nil)
		if err != nil || r.Changed() != 11 || writes < 2 {
			t.Errorf("%+v in %d writes, %v", r, writes, err)
		}
		want := docs
		if gone {
			want = nil
		}
		if got := s.Documents(m.New); !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%d documents", len(got))
		}
	}
}

// A document whose _id has many values in several kinds has its copy: it is not taken for one without a counterpart and
// deleted.
func TestAllOfMixedIDs(t *testing.T) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	m := newMirror(t, db, "javaLegacy")
	m.Busy = true
	for _, values := range []int{7, 9, 40} {
		var id bson.D
		for i := range values {
			id = append(id, bson.E{Key: fmt.Sprint(i), Value: kindstest.Value([]string{"javaLegacy", "standard"}[i%2])})
		}
		doc := marshal(t, bson.D{{Key: "_id", Value: id}})
		fresh, _, _, err := m.Conversion.Rewrite(doc)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(m.Old, doc)
		s.Put(m.New, fresh)
		r, err := m.All(t.Context())
		if got := s.Documents(m.New); err != nil || r.Changed() != 0 || len(got) != 1 || !bytes.Equal(got[0], fresh) {
			t.Errorf("%d values: %+v, %v, %v", values, r, got, err)
		}
	}
}

// A document is deleted after its _id was read for the index, and before it is compared. Its copy is deleted, too, although no
// change stream tells of the deletion.
func TestAllWithDeletion(t *testing.T) {
	s := memory.Start(t)
	m := newMirror(t, s.Client.Database("d"), "javaLegacy")
	var docs, copies []bson.Raw
	for i := range byte(3) {
		doc := marshal(t, bson.D{{Key: "_id", Value: bson.Binary{Subtype: 3, Data: bytes.Repeat([]byte{i}, 16)}}})
		fresh, _, _, err := m.Conversion.Rewrite(doc)
		if err != nil {
			t.Fatal(err)
		}
		docs, copies = append(docs, doc), append(copies, fresh)
	}
	s.Put(m.Old, docs...)
	s.Put(m.New, copies...)
	deleted := false
	s.Before = func(name string, command bson.Raw) memory.Fault {
		_, err := command.LookupErr("projection")
		if of, _ := command.Lookup("find").StringValueOK(); of == m.Old.Name() && err != nil && !deleted {
			deleted = true
			s.Put(m.Old, docs[1:]...)
		}
		return memory.Fault{}
	}
	r, err := m.All(t.Context())
	if got := s.Documents(m.New); err != nil || r.Deleted != 1 || !deleted || !slices.EqualFunc(got, copies[1:], func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		t.Errorf("%+v, %v, %v", r, got, err)
	}
}

// newMirror returns a mirror of two empty collections.
func newMirror(t *testing.T, db *mongo.Database, from string) *Mirror {
	t.Helper()
	c, err := rule.NewConversion(kindstest.Kind(t, from), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &Mirror{Conversion: c, Old: db.Collection("old"), New: db.Collection("new"), Index: new(Index), Write: true, Batch: 10, Progress: func(int) {},
		Begin: func(ctx context.Context) (context.Context, context.CancelFunc, error) { return ctx, func() {}, nil }}
	t.Cleanup(func() { _ = m.Index.Close() })
	return m
}
