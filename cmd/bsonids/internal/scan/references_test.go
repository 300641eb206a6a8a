package scan

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// gather adds n documents with a value to a collection.
func gather(t *testing.T, c *Collector, path string, n int, value func(i int) any) {
	t.Helper()
	for i := range n {
		collect(t, c, bson.D{{Key: path, Value: value(i)}})
	}
}

// several returns new UUIDs.
func several(n int) []uuid.UUID {
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = uuid.New()
	}
	return ids
}

// The same ids connect fields of different collections, in whatever byte order and type they are.
// Constants such as the nil UUID are not connected. Fields of one collection are, whose documents refer to each other.
func TestReferences(t *testing.T) {
	ids, tree := several(40), several(9)
	s := newScan(t)
	gather(t, s.collector(t, "orders"), "customer", 30, func(i int) any { return stored(ids[i%20], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "customers"), "_id", 20, func(i int) any { return stored(ids[i], 3, uuidrep.CSharpLegacy) })
	gather(t, s.collector(t, "orders"), "paidBy", 5, func(i int) any { return stored(ids[i], 4, uuidrep.Standard) })
	gather(t, s.collector(t, "nodes"), "_id", 9, func(i int) any { return stored(tree[i], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "nodes"), "parent", 9, func(i int) any { return stored(tree[i/2], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "mails"), "to", 1, func(int) any { return ids[3].String() })
	gather(t, s.collector(t, "files"), "id", 10, func(i int) any { return stored(ids[30+i], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "logs"), "id", 10, func(i int) any { return stored(uuid.Nil, 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "logs2"), "id", 10, func(i int) any { return stored(uuid.Nil, 3, uuidrep.JavaLegacy) })
	const n = 20_000 // all of many values are compared
	many, others := several(n), several(n)
	others[n/3] = many[n/2]
	gather(t, s.collector(t, "many"), "_id", n, func(i int) any { return stored(many[i], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "others"), "a", n, func(i int) any { return stored(others[i], 4, uuidrep.Standard) })
	s.judged(t)
	got, err := s.References()
	want := []Reference{
		{End{"db.customers", "_id"}, End{"db.mails", "to"}, 1, 1},
		{End{"db.customers", "_id"}, End{"db.orders", "customer"}, 20, 20},
		{End{"db.customers", "_id"}, End{"db.orders", "paidBy"}, 5, 5},
		{End{"db.many", "_id"}, End{"db.others", "a"}, 1, n},
		{End{"db.nodes", "_id"}, End{"db.nodes", "parent"}, 5, 5},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
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
	ids := several(40)
	hash := func(i int) bson.Binary { return stored(md5Sum(nil, i), 3, uuidrep.PythonLegacy) } // no version tells the order
	s := newScan(t)
	gather(t, s.collector(t, "orders"), "customer", 30, func(i int) any { return stored(ids[i], 3, uuidrep.JavaLegacy) })
	gather(t, s.collector(t, "mails"), "to", 10, func(i int) any { return stored(ids[i], 3, uuidrep.CSharpLegacy) })
	gather(t, s.collector(t, "files"), "hash", 10, func(i int) any { return hash(i) })
	for name, value := range map[string]func(i int) any{
		"customers": func(i int) any { return stored(ids[i+5], 3, uuidrep.JavaLegacy) },
		"visits":    func(i int) any { return stored(ids[i+5], 4, uuidrep.Standard) },
		"sums":      func(i int) any { return bson.Binary{Subtype: 4, Data: hash(i).Data} },
	} {
		c, err := s.Sample("db", name)
		if err != nil {
			t.Fatal(err)
		}
		gather(t, c, "_id", 10, value)
	}
	judged, err := s.Decide()
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
