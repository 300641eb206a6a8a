package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/uuidrep"
)

// soaked is a document of the soak test. It has UUIDs as its _id, in a field, a pointer, a slice
// and a map, and in a field of type any.
type soaked struct {
	ID   *uuid.UUID           `bson:"_id,omitempty"` // the driver never omits a uuid.UUID
	By   string               `bson:"by"`
	U    uuid.UUID            `bson:"u"`
	P    *uuid.UUID           `bson:"p"`
	List []uuid.UUID          `bson:"list"`
	Map  map[string]uuid.UUID `bson:"map"`
	Any  any                  `bson:"any"`
}

func newSoaked(r *rand.Rand, by uuidrep.Representation) soaked {
	next := func() (u uuid.UUID) {
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		return u
	}
	p := next()
	return soaked{
		By: by.String(), U: next(), P: &p, List: []uuid.UUID{next(), next(), next()},
		Map: map[string]uuid.UUID{"k": next()}, Any: next(),
	}
}

func (d soaked) equal(o soaked) bool {
	return o.ID != nil && *d.ID == *o.ID && d.By == o.By && d.U == o.U && o.P != nil && *d.P == *o.P &&
		fmt.Sprint(d.List) == fmt.Sprint(o.List) && fmt.Sprint(d.Map) == fmt.Sprint(o.Map) && d.Any == o.Any
}

// order permutes the bytes of u as the table of the specification permutes its test UUID
// 00112233-4455-6677-8899-aabbccddeeff, whose bytes name their indexes.
func order(r uuidrep.Representation, u uuid.UUID) (subtype byte, octets []byte) {
	places := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	switch r {
	case uuidrep.Standard:
		return 4, u[:]
	case uuidrep.CSharpLegacy:
		places = []byte{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}
	case uuidrep.JavaLegacy:
		places = []byte{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}
	}
	for _, p := range places {
		octets = append(octets, u[p])
	}
	return 3, octets
}

// TestSoak writes and reads with 64 goroutines through two clients with different settings, in the
// same collections, over connections that are slow and split the data. Every document must read
// back as its own client wrote it, and must be stored in the representation of its client.
func TestSoak(t *testing.T) {
	const goroutines, most, limit = 64, 25, 10 * time.Second // documents of each goroutine, time
	for _, pair := range [][2]uuidrep.Representation{
		{uuidrep.Standard, uuidrep.CSharpLegacy},
		{uuidrep.JavaLegacy, uuidrep.PythonLegacy},
	} {
		t.Run(fmt.Sprintf("%v and %v", pair[0], pair[1]), func(t *testing.T) {
			s, ctx := newServer(t)
			p := newProxy(t, s)
			p.add(toxic{"latency", "downstream", map[string]any{"latency": 2, "jitter": 2}})
			p.add(toxic{"slicer", "downstream", map[string]any{"average_size": 100, "size_variation": 90, "delay": 10}})
			src := newSource(t)
			clients := [2]*client{newClient(t, p.p.Listen, pair[0], nil), newClient(t, p.p.Listen, pair[1], nil)}

			var mu sync.Mutex
			wrote := make(map[uuid.UUID]soaked)
			var late atomic.Bool
			time.AfterFunc(limit, func() { late.Store(true) })
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(7, uint64(g)))
					by := g % 2
					// Two goroutines of each client share a collection. Collections are small,
					// because a find by _id takes FerretDB a time that grows with the collection.
					coll := autoid.Wrap(clients[by].Database("db").Collection(fmt.Sprintf("c%d", g/4)), src)
					for range most {
						if late.Load() {
							return
						}
						doc := newSoaked(r, pair[by])
						if r.IntN(2) == 0 {
							given := newSoaked(r, pair[by]).U
							doc.ID = &given
						}
						res, err := coll.InsertOne(ctx, doc)
						if err != nil {
							t.Error(err)
							return
						}
						id, ok := res.InsertedID.(uuid.UUID)
						if !ok || doc.ID != nil && id != *doc.ID {
							t.Errorf("inserted %v, want %v", res.InsertedID, doc.ID)
							return
						}
						doc.ID = &id
						mu.Lock()
						wrote[id] = doc
						mu.Unlock()

						var read soaked
						if err := coll.FindOne(ctx, bson.M{"_id": id, "list": doc.List[1]}).Decode(&read); err != nil {
							t.Errorf("reading %v back: %v", id, err)
							return
						}
						if !read.equal(doc) {
							t.Errorf("read %+v, wrote %+v", read, doc)
							return
						}
					}
				})
			}
			wg.Wait()

			direct := newClient(t, s.addr, uuidrep.Unspecified, nil)
			stored := 0
			for i := range goroutines / 4 {
				cursor, err := direct.Database("db").Collection(fmt.Sprintf("c%d", i)).Find(ctx, bson.D{})
				if err != nil {
					t.Fatal(err)
				}
				var docs []bson.Raw
				if err := cursor.All(ctx, &docs); err != nil {
					t.Fatal(err)
				}
				for _, raw := range docs {
					stored++
					var by uuidrep.Representation
					if err := by.UnmarshalText([]byte(raw.Lookup("by").StringValue())); err != nil {
						t.Fatal(err)
					}
					_, octets := raw.Lookup("_id").Binary()
					_, native := order(by, uuid.UUID(octets)) // each order is its own inverse
					doc, found := wrote[uuid.UUID(native)]
					if !found {
						t.Errorf("nobody wrote %v", raw)
						continue
					}
					for path, want := range map[string]uuid.UUID{
						"_id": *doc.ID, "u": doc.U, "p": *doc.P, "list.2": doc.List[2], "map.k": doc.Map["k"], "any": doc.Any.(uuid.UUID),
					} {
						subtype, octets := order(by, want)
						gotSubtype, got, _ := raw.Lookup(strings.Split(path, ".")...).BinaryOK()
						if gotSubtype != subtype || !bytes.Equal(got, octets) {
							t.Errorf("%s of %v by %v: subtype %d, %X, want %d, %X", path, doc.ID, by, gotSubtype, got, subtype, octets)
						}
					}
				}
			}
			if stored != len(wrote) || stored < goroutines {
				t.Errorf("the server holds %d documents, %d were written", stored, len(wrote))
			}
			t.Logf("%d goroutines, %d documents written, read back, and compared octet by octet", goroutines, stored)
		})
	}
}
