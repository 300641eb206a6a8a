package mirror

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// Of large documents that have changed, only a page is in the memory: 32 MiB, and one document.
func TestSomeLargeDocuments(t *testing.T) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	m := Mirror{Old: db.Collection("old"), New: db.Collection("new"), Write: true, Batch: 1000,
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
	for _, back := range []bool{false, true} { // the copies are inserted, and then deleted, because the other collection leads and lacks them
		if back {
			m.Old, m.New = m.New, db.Collection("none")
		}
		m.Back, writes = back, 0
		r, err := m.Some(t.Context(), ids, nil)
		if err != nil || r.Changed() != 11 || writes < 2 {
			t.Errorf("%+v in %d writes, %v", r, writes, err)
		}
		want := docs
		if back {
			want = nil
		}
		if got := s.Documents(db.Collection("new")); !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%d documents", len(got))
		}
	}
}

// A document whose _id has many values in several kinds has its copy, and an _id that has too many is an error: none is taken for one without a
// counterpart and deleted.
func TestAllOfMixedIDs(t *testing.T) {
	s := memory.Start(t)
	db := s.Client.Database("d")
	c, err := rule.NewConversion(kindstest.Kind(t, "javaLegacy"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := Mirror{Conversion: c, Old: db.Collection("old"), New: db.Collection("new"), Write: true, Busy: true, Batch: 10, Progress: func(int) {},
		Begin: func(ctx context.Context) (context.Context, context.CancelFunc, error) { return ctx, func() {}, nil }}
	for _, values := range []int{7, 9} {
		var id bson.D
		for i := range values {
			id = append(id, bson.E{Key: string(rune('a' + i)), Value: kindstest.Value([]string{"javaLegacy", "standard"}[i%2])})
		}
		doc := marshal(t, bson.D{{Key: "_id", Value: id}})
		fresh, _, _, err := c.Rewrite(doc)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(m.Old, doc)
		s.Put(m.New, fresh)
		r, err := m.All(t.Context())
		if got := s.Documents(m.New); (err == nil) != (values == 7) || r.Changed() != 0 || len(got) != 1 || !bytes.Equal(got[0], fresh) {
			t.Errorf("%d values: %+v, %v, %v", values, r, got, err)
		}
	}
}
