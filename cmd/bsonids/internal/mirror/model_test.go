package mirror

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// world is a server with the two collections of a mirror, and services that write to them.
type world struct {
	*memory.Server
	t      *testing.T
	m      *Mirror
	mu     sync.Mutex
	r      *rand.Rand
	pool   [][16]byte
	writes int // that the services still make
	// The _ids of the documents that the services changed since they were taken.
	ids, others []bson.RawValue
}

// id returns a random _id of the old collection: a UUID in one of two representations, text, or an ObjectID.
func (w *world) id() any {
	n := w.r.IntN(len(w.pool))
	switch w.r.IntN(8) {
	case 0:
		return fmt.Sprint(n)
	case 1:
		return bson.ObjectID(w.pool[n][:12])
	case 2, 3:
		return kindstest.Stored(w.pool[n], "standard")
	}
	return kindstest.Stored(w.pool[n], "javaLegacy")
}

// converted returns the _id that the conversion from javaLegacy gives, by the document of the specification.
func (w *world) converted(id bson.RawValue) bson.RawValue {
	for _, u := range w.pool {
		if id.Equal(w.value(kindstest.Stored(u, "javaLegacy"))) {
			return w.value(kindstest.Stored(u, "standard"))
		}
	}
	return id
}

func (w *world) value(v any) bson.RawValue {
	return marshal(w.t, bson.D{{Key: "_id", Value: v}}).Lookup("_id")
}

// write makes the services insert, change or delete a document. Other programs do so in the new collection.
func (w *world) write() {
	coll, ids, id := w.m.Old, &w.ids, w.value(w.id())
	if w.r.IntN(4) == 0 {
		coll, ids = w.m.New, &w.others
		if w.r.IntN(4) > 0 {
			id = w.converted(id)
		}
	}
	docs := make(map[string]bson.Raw)
	for _, doc := range w.Documents(coll) {
		docs[documents.Key(documents.ID(doc))] = doc
	}
	key := documents.Key(id)
	if _, is := docs[key]; is && w.r.IntN(2) == 0 {
		delete(docs, key)
	} else {
		docs[key] = marshal(w.t, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: int32(w.r.IntN(3))}})
	}
	*ids = append(*ids, id)
	w.Put(coll, slices.Collect(maps.Values(docs))...)
}

// take returns what has changed, and what did not agree before, and whether that was all.
func (w *world) take(pending map[string]bson.RawValue) (ids, others []bson.RawValue, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids, others = append(w.ids, slices.Collect(maps.Values(pending))...), append(w.others, slices.Collect(maps.Values(pending))...)
	w.ids, w.others = nil, nil
	return ids, others, w.writes == 0
}

// want returns what the new collection should have, and the _ids that several documents would get.
func (w *world) want() (want map[string]bson.Raw, twins map[string]bool) {
	want, twins = make(map[string]bson.Raw), make(map[string]bool)
	for _, doc := range w.Documents(w.m.Old) {
		id := w.converted(documents.ID(doc))
		key := documents.Key(id)
		_, twins[key] = want[key]
		want[key] = marshal(w.t, bson.D{{Key: "_id", Value: id}, {Key: "n", Value: doc.Lookup("n")}})
	}
	maps.DeleteFunc(twins, func(_ string, is bool) bool { return !is })
	return want, twins
}

// Whatever services write to the old collection, and other programs to the new one, while all documents are compared, and then
// those that have changed: in the end, the new collection has the converted documents, and those that would get the same _id are
// named. The index is on the disk, and sorted again and again.
func TestMirrorWithWriters(t *testing.T) {
	limited(t, 20, 6)
	named := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := memory.Start(t)
		db := s.Client.Database("d")
		m := newMirror(t, db, "javaLegacy")
		m.Index.Dir, m.Batch, m.Busy = t.TempDir(), 7, true
		w := &world{Server: s, t: t, m: m, r: r}
		for range 40 {
			w.pool = append(w.pool, [16]byte(kindstest.Octets(r)))
		}
		s.Put(m.Old)
		s.Put(m.New)
		for range 150 {
			w.write()
		}
		w.ids, w.others, w.writes = nil, nil, 60
		s.Before = func(string, bson.Raw) memory.Fault {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.writes > 0 && r.IntN(3) == 0 {
				w.writes--
				w.write()
			}
			return memory.Fault{}
		}
		done, err := m.All(t.Context())
		if err != nil {
			t.Fatal(seed, err)
		}
		pending := make(map[string]bson.RawValue)
		for quiet := 0; quiet < 3; quiet++ {
			for _, f := range done.Stuck {
				pending[documents.Key(f.ID)] = f.ID
			}
			ids, others, all := w.take(pending)
			if !all {
				quiet = 0
			}
			clear(pending)
			if done, err = m.Some(t.Context(), ids, others); err != nil {
				t.Fatal(seed, err)
			}
		}
		stuck := make(map[string]bool)
		for _, f := range done.Stuck {
			if stuck[documents.Key(f.ID)] = true; f.Reason != sameID {
				t.Errorf("%d: %s: %s", seed, f.ID, f.Reason)
			}
		}
		want, twins := w.want()
		if !maps.Equal(stuck, twins) {
			t.Errorf("%d: %d documents are named, want %d", seed, len(stuck), len(twins))
		}
		named += len(twins)
		got := make(map[string]bson.Raw)
		for _, doc := range s.Documents(m.New) {
			got[documents.Key(documents.ID(doc))] = doc
		}
		for key := range twins {
			delete(want, key)
			delete(got, key)
		}
		if !maps.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%d: the new collection has %d documents, want %d", seed, len(got), len(want))
		}
		s.Put(m.New, slices.Collect(maps.Values(got))...)
		for _, m.Write = range []bool{true, false} { // no document is written whose _id another one gets
			if done, err = m.All(t.Context()); err != nil || done.Changed() > 0 || int(done.Stays) != len(twins) {
				t.Errorf("%d: changed %d, %d stay, want %d, %v", seed, done.Changed(), done.Stays, len(twins), err)
			}
		}
		if err := m.Index.Close(); err != nil {
			t.Error(err)
		}
		nothingLeft(t, m.Index.Dir)
		w.gone(db)
	}
	if named == 0 {
		t.Error("no documents have the same _id")
	}
}

// gone drops the collections.
func (w *world) gone(db *mongo.Database) {
	w.Drop(db.Collection("old"))
	w.Drop(db.Collection("new"))
}
