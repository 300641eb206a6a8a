package scan

import (
	"math"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

func gather(t *testing.T, s *Scan, name, path string, n int, value func(i int) any) {
	t.Helper()
	c := s.collector(t, name)
	for i := range n {
		doc, err := bson.Marshal(bson.D{{Key: path, Value: value(i)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(doc); err != nil {
			t.Fatal(err)
		}
	}
}

func inOrder(t *testing.T, u uuid.UUID, r uuidrep.Representation) bson.Binary {
	t.Helper()
	b, err := uuidrep.NewBinaryWithRepresentation(u, r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The same ids connect fields of different collections, in whatever byte order and type they are.
// Constants such as the nil UUID and fields of one collection are not connected.
func TestReferences(t *testing.T) {
	ids := make([]uuid.UUID, 40)
	for i := range ids {
		ids[i] = uuid.New()
	}
	s := newScan(t)
	gather(t, s, "orders", "customer", 30, func(i int) any { return inOrder(t, ids[i%20], uuidrep.JavaLegacy) })
	gather(t, s, "customers", "_id", 20, func(i int) any { return inOrder(t, ids[i], uuidrep.CSharpLegacy) })
	gather(t, s, "mails", "to", 1, func(int) any { return ids[3].String() })
	gather(t, s, "files", "id", 10, func(i int) any { return inOrder(t, ids[30+i], uuidrep.JavaLegacy) })
	gather(t, s, "logs", "id", 10, func(i int) any { return inOrder(t, uuid.Nil, uuidrep.JavaLegacy) })
	gather(t, s, "logs2", "id", 10, func(i int) any { return inOrder(t, uuid.Nil, uuidrep.JavaLegacy) })
	got, sparse := s.References()
	want := []Reference{
		{End{"db.customers", "_id"}, End{"db.mails", "to"}, 1, 1},
		{End{"db.customers", "_id"}, End{"db.orders", "customer"}, 20, 20},
	}
	if len(sparse) != 0 || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, %+v", got, sparse)
	}
}

// Fields with many values are compared by the same part of their values, so that a reference with
// many equal values is found, and the rate of those that are missed is known.
func TestReferencesOfMany(t *testing.T) {
	const n = 20_000
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.New()
	}
	s := newScan(t)
	gather(t, s, "a", "_id", n, func(i int) any { return inOrder(t, ids[i], uuidrep.JavaLegacy) })
	gather(t, s, "b", "a", n, func(i int) any { return inOrder(t, ids[i], uuidrep.Standard) })
	got, sparse := s.References()
	if len(got) != 1 || got[0].Equal < sketchSize-1 || len(sparse) != 2 {
		t.Fatalf("got %+v, %+v", got, sparse)
	}
	r := sparse[0].Missed()
	if p := math.Pow(1-sparse[0].Share, float64(r)); p > 0.05 || r < 40 || r > 80 { // 1024 of 20,000: ln 0.05 / ln(1-0.0512) = 57
		t.Errorf("%d are missed with %v", r, p)
	}
}
