package mirror

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

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
