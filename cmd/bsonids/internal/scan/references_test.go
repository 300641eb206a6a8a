package scan

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
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
// Constants such as the nil UUID are not connected. Fields of one collection are, whose documents refer to each other.
func TestReferences(t *testing.T) {
	ids := make([]uuid.UUID, 40)
	for i := range ids {
		ids[i] = uuid.New()
	}
	tree := make([]uuid.UUID, 9)
	for i := range tree {
		tree[i] = uuid.New()
	}
	s := newScan(t)
	gather(t, s, "orders", "customer", 30, func(i int) any { return inOrder(t, ids[i%20], uuidrep.JavaLegacy) })
	gather(t, s, "customers", "_id", 20, func(i int) any { return inOrder(t, ids[i], uuidrep.CSharpLegacy) })
	gather(t, s, "orders", "paidBy", 5, func(i int) any { return inOrder(t, ids[i], uuidrep.Standard) })
	gather(t, s, "nodes", "_id", 9, func(i int) any { return inOrder(t, tree[i], uuidrep.JavaLegacy) })
	gather(t, s, "nodes", "parent", 9, func(i int) any { return inOrder(t, tree[i/2], uuidrep.JavaLegacy) })
	gather(t, s, "mails", "to", 1, func(int) any { return ids[3].String() })
	gather(t, s, "files", "id", 10, func(i int) any { return inOrder(t, ids[30+i], uuidrep.JavaLegacy) })
	gather(t, s, "logs", "id", 10, func(i int) any { return inOrder(t, uuid.Nil, uuidrep.JavaLegacy) })
	gather(t, s, "logs2", "id", 10, func(i int) any { return inOrder(t, uuid.Nil, uuidrep.JavaLegacy) })
	s.judged(t)
	got, err := s.References()
	want := []Reference{
		{End{"db.customers", "_id"}, End{"db.mails", "to"}, 1, 1},
		{End{"db.customers", "_id"}, End{"db.orders", "customer"}, 20, 20},
		{End{"db.customers", "_id"}, End{"db.orders", "paidBy"}, 5, 5},
		{End{"db.nodes", "_id"}, End{"db.nodes", "parent"}, 5, 5},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Fields with many values are compared by all of them: one equal value of many is found.
func TestReferencesOfMany(t *testing.T) {
	const n = 20_000
	one := uuid.New()
	s := newScan(t)
	gather(t, s, "a", "_id", n, func(i int) any {
		if i == n/2 {
			return inOrder(t, one, uuidrep.JavaLegacy)
		}
		return inOrder(t, uuid.New(), uuidrep.JavaLegacy)
	})
	gather(t, s, "b", "a", n, func(i int) any {
		if i == n/3 {
			return inOrder(t, one, uuidrep.CSharpLegacy)
		}
		return inOrder(t, uuid.New(), uuidrep.Standard)
	})
	s.judged(t)
	got, err := s.References()
	if want := (Reference{End{"db.a", "_id"}, End{"db.b", "a"}, 1, n}); err != nil || len(got) != 1 || got[0] != want {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// Text of 32 digits is compared if it is UUIDs, and a collection that is read again only once.
func TestReferencesOfText(t *testing.T) {
	for name, checksums := range map[string]bool{"UUIDs": false, "checksums": true} {
		s := newScan(t)
		r := rand.New(rand.NewPCG(9, 9))
		a, b := s.collector(t, "a"), s.collector(t, "b")
		for i := range 30 {
			u := v4(r, i)
			if checksums {
				u = md5Sum(r, i)
			}
			for again := range 2 {
				if i == 0 && again == 1 {
					a.Forget()
				}
				collect(t, a, bson.D{{Key: "id", Value: hex.EncodeToString(u[:])}})
			}
			collect(t, b, bson.D{{Key: "id", Value: stored(u, 3, uuidrep.JavaLegacy)}})
		}
		s.judged(t)
		got, err := s.References()
		if err != nil || checksums && len(got) > 0 || !checksums && (len(got) != 1 || got[0].Equal != 30) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A sample connects fields of collections that are read, without being evidence about their order or connected
// with another sample.
func TestReferencesOfSamples(t *testing.T) {
	ids := make([]uuid.UUID, 40)
	for i := range ids {
		ids[i] = uuid.New()
	}
	r := rand.New(rand.NewPCG(1, 2))
	hashes := make([]uuid.UUID, 10) // no version tells the order
	for i := range hashes {
		hashes[i] = md5Sum(r, i)
	}
	hash := func(i int) bson.Binary { return bson.Binary{Subtype: 3, Data: hashes[i][:]} }
	s := newScan(t)
	gather(t, s, "orders", "customer", 30, func(i int) any { return inOrder(t, ids[i], uuidrep.JavaLegacy) })
	gather(t, s, "mails", "to", 10, func(i int) any { return inOrder(t, ids[i], uuidrep.CSharpLegacy) })
	gather(t, s, "files", "hash", 10, func(i int) any { return hash(i) })
	for name, value := range map[string]func(i int) any{
		"customers": func(i int) any { return inOrder(t, ids[i+5], uuidrep.JavaLegacy) },
		"visits":    func(i int) any { return inOrder(t, ids[i+5], uuidrep.Standard) },
		"sums":      func(i int) any { return bson.Binary{Subtype: 4, Data: hash(i).Data} },
	} {
		c, err := s.Sample("db", name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			collect(t, c, bson.D{{Key: "_id", Value: value(i)}})
		}
	}
	judged, err := s.Judge()
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string][]Field)
	for _, c := range judged {
		fields[c.Namespace] = c.Fields
	}
	if f := fields["db.visits"]; len(judged) != 6 || len(f) != 1 || f[0].Counts.Standard != 10 {
		t.Errorf("%d collections, of visits %+v", len(judged), f)
	}
	if f := fields["db.files"]; len(f) != 1 || len(f[0].Evidence) != 1 || f[0].Evidence[0].Verdict != Undetermined {
		t.Errorf("the sample of sums, which may be another one the next time, is evidence: %+v", f)
	}
	got, err := s.References()
	want := []Reference{
		{End{"db.files", "hash"}, End{"db.sums", "_id"}, 10, 10},
		{End{"db.mails", "to"}, End{"db.customers", "_id"}, 5, 10},
		{End{"db.mails", "to"}, End{"db.orders", "customer"}, 10, 10},
		{End{"db.mails", "to"}, End{"db.visits", "_id"}, 5, 10},
		{End{"db.orders", "customer"}, End{"db.customers", "_id"}, 10, 10},
		{End{"db.orders", "customer"}, End{"db.visits", "_id"}, 5, 10},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}
