package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

var autoIDDocuments = flag.Int("autoid.documents", 200_000, "how many documents TestAutoIDDuplicates inserts")

// commandLog keeps the commands that a client started.
type commandLog struct {
	mu   sync.Mutex
	cmds []bson.Raw
}

func (l *commandLog) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cmds = append(l.cmds, slices.Clone(e.Command))
	}}
}

// named returns the commands with the given name.
func (l *commandLog) named(name string) []bson.Raw {
	l.mu.Lock()
	defer l.mu.Unlock()
	var cmds []bson.Raw
	for _, c := range l.cmds {
		if c.Index(0).Key() == name {
			cmds = append(cmds, c)
		}
	}
	return cmds
}

// autoIDCollection connects with the registry of rep and returns a new collection.
func autoIDCollection(t *testing.T, rep uuidrep.Representation) (*mongo.Collection, *commandLog) {
	t.Helper()
	reg, err := bsoncodec.NewRegistryBuilder(rep).With(autoid.Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	server := mongotest.Start(t)
	var log commandLog
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()).SetRegistry(reg).SetMonitor(log.monitor()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client.Database(server.Database()).Collection("c"), &log
}

// TestAutoIDSources inserts with every kind of source and every method, and finds each document by
// the id that the driver reported.
func TestAutoIDSources(t *testing.T) {
	v4, err := uuidgen.NewV4Generator()
	if err != nil {
		t.Fatal(err)
	}
	v6, err := uuidgen.NewV6Generator()
	if err != nil {
		t.Fatal(err)
	}
	v7, err := uuidgen.NewV7Generator()
	if err != nil {
		t.Fatal(err)
	}
	fixed := make([]bson.ObjectID, 16)
	objectidgen.Default().Fill(fixed)
	var n atomic.Int64
	for _, tc := range []struct {
		name string
		rep  uuidrep.Representation
		src  autoid.Source
		typ  reflect.Type // of the reported ids
		raw  bson.Type
		sub  byte
	}{
		{"ObjectID", uuidrep.Unspecified, objectidgen.Default(), reflect.TypeFor[bson.ObjectID](), bson.TypeObjectID, 0},
		{"Sequence", uuidrep.Standard, objectidgen.NewSequence(fixed...), reflect.TypeFor[bson.ObjectID](), bson.TypeObjectID, 0},
		{"UUIDv4 standard", uuidrep.Standard, v4, reflect.TypeFor[uuid.UUID](), bson.TypeBinary, 4},
		{"UUIDv6 pythonLegacy", uuidrep.PythonLegacy, v6, reflect.TypeFor[uuid.UUID](), bson.TypeBinary, 3},
		{"UUIDv7 standard", uuidrep.Standard, v7, reflect.TypeFor[uuid.UUID](), bson.TypeBinary, 4},
		{"UUIDv7 javaLegacy", uuidrep.JavaLegacy, v7, reflect.TypeFor[uuid.UUID](), bson.TypeBinary, 3},
		{"UUIDv7 csharpLegacy", uuidrep.CSharpLegacy, v7, reflect.TypeFor[uuid.UUID](), bson.TypeBinary, 3},
		{"text", uuidrep.Standard, autoid.SourceFunc(func() (any, error) { return fmt.Sprintf("INV-%06d", n.Add(1)), nil }),
			reflect.TypeFor[string](), bson.TypeString, 0},
		{"number", uuidrep.Standard, autoid.SourceFunc(func() (any, error) { return n.Add(1), nil }),
			reflect.TypeFor[int64](), bson.TypeInt64, 0},
		{"document", uuidrep.Standard, autoid.SourceFunc(func() (any, error) {
			return bson.D{{Key: "shard", Value: "a"}, {Key: "n", Value: n.Add(1)}}, nil
		}), reflect.TypeFor[bson.D](), bson.TypeEmbeddedDocument, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			plain, log := autoIDCollection(t, tc.rep)
			coll := autoid.Wrap(plain, tc.src)
			type late struct {
				Name string `bson:"name"`
				ID   any    `bson:"_id,omitempty"`
			}
			var ids []any
			one, err := coll.InsertOne(ctx, bson.M{"name": "M"})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, one.InsertedID)
			many, err := coll.InsertMany(ctx, []any{bson.D{{Key: "name", Value: "D"}}, late{Name: "struct"}, &late{Name: "pointer"}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, many.InsertedIDs...)
			_, err = coll.Clone().BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewInsertOneModel().SetDocument(bson.M{"name": "bulk"}),
				mongo.NewInsertOneModel().SetDocument(late{Name: "late"}),
			})
			if err != nil {
				t.Fatal(err)
			}
			if plainID, err := plain.InsertOne(ctx, autoid.Document(tc.src, bson.M{"name": "Document"})); err != nil {
				t.Fatal(err)
			} else {
				ids = append(ids, plainID.InsertedID)
			}

			for _, id := range ids {
				if reflect.TypeOf(id) != tc.typ {
					t.Errorf("the id is a %T, want %v", id, tc.typ)
				}
				var doc bson.M
				if err := plain.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Decode(&doc); err != nil {
					t.Errorf("%v: %v", id, err)
				} else if !reflect.DeepEqual(doc["_id"], id) {
					t.Errorf("found %v, want %v", doc["_id"], id)
				}
			}
			if n, err := plain.CountDocuments(ctx, bson.D{}); err != nil || n != 7 {
				t.Errorf("%d documents, %v", n, err)
			}
			for _, cmd := range log.named("insert") {
				docs, err := cmd.Lookup("documents").Array().Values()
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range docs {
					id := d.Document().Index(0)
					if id.Key() != "_id" || id.Value().Type != tc.raw {
						t.Errorf("sent %v", d)
					}
					if sub, _, ok := id.Value().BinaryOK(); ok && sub != tc.sub {
						t.Errorf("sent subtype %d, want %d", sub, tc.sub)
					}
				}
			}
		})
	}
}

// TestAutoIDNothingSent tests that a call sends nothing if a document gets no id.
func TestAutoIDNothingSent(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	plain, log := autoIDCollection(t, uuidrep.Unspecified)
	insert := func(doc any) mongo.WriteModel { return mongo.NewInsertOneModel().SetDocument(doc) }
	update := mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 2}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}).SetUpsert(true)
	v7, err := uuidgen.NewV7Generator()
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range map[string]autoid.Source{
		"used up":                 objectidgen.NewSequence(bson.NewObjectID()),
		"nil":                     autoid.SourceFunc(func() (any, error) { return nil, nil }),
		"UUID, no representation": v7,
	} {
		coll := autoid.Wrap(plain, src)
		_, _ = coll.NewID()
		_, one := coll.InsertOne(ctx, bson.M{})
		_, many := coll.InsertMany(ctx, []bson.M{{"_id": 1}, {}})
		_, bulk := coll.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{"_id": 1}), update, insert(bson.M{})})
		for want, err := range []error{one, many, bulk} {
			var failed *autoid.IDError
			if !errors.As(err, &failed) || failed.Index != want {
				t.Errorf("got %v, want an error for document %d", err, want)
			}
		}
	}
	if _, err := autoid.Wrap(plain, objectidgen.NewSequence()).InsertOne(ctx, bson.M{}); !errors.Is(err, objectidgen.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	if _, err := autoid.Wrap(plain, v7).InsertOne(ctx, bson.M{}); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
	if sent := append(log.named("insert"), log.named("update")...); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	if n, err := plain.CountDocuments(ctx, bson.D{}); err != nil || n != 0 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// TestAutoIDDuplicates inserts ordered and unordered batches from several goroutines, with a source
// that gives some ids twice. Every id that a result acknowledges is stored with its document, and
// no id is acknowledged or stored twice. A document that is stored but not acknowledged follows a
// duplicate in an ordered batch: mongod stores no such document, FerretDB completes the hundred
// documents that it inserts at once.
func TestAutoIDDuplicates(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	const goroutines, batch = 4, 1000
	total := *autoIDDocuments
	if testing.Short() {
		total = min(total, 20_000)
	}
	plain, log := autoIDCollection(t, uuidrep.Unspecified)

	// About every second batch has an id that was given before: the previous one, or any earlier
	// one.
	var mu sync.Mutex
	var given []bson.ObjectID
	drawn, repeated := 0, 0
	src := autoid.SourceFunc(func() (any, error) {
		mu.Lock()
		defer mu.Unlock()
		drawn++
		if drawn%1999 == 0 {
			repeated++
			return given[drawn*7919%len(given)], nil
		}
		if drawn%4001 == 0 {
			repeated++
			return given[len(given)-1], nil
		}
		given = append(given, objectidgen.NewObjectID())
		return given[len(given)-1], nil
	})

	// place is the place of a document: its batch, and its index in the batch.
	type place struct{ Batch, Place int }
	acknowledged := map[bson.ObjectID]place{}
	behind := map[int]int{} // from a batch to the index of its first duplicate
	failed := map[bool]int{}
	var next atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			coll := autoid.Wrap(plain, src)
			for {
				n := int(next.Add(1)) - 1
				if n*batch >= total {
					return
				}
				docs := make([]place, min(batch, total-n*batch))
				for i := range docs {
					docs[i] = place{n, i}
				}
				ordered := n%2 == 0
				res, err := coll.InsertMany(ctx, docs, options.InsertMany().SetOrdered(ordered))
				var refused mongo.BulkWriteException
				if err != nil && (!errors.As(err, &refused) || !mongo.IsDuplicateKeyError(err)) {
					t.Error(err)
					return
				}
				mu.Lock()
				at := map[int]bool{}
				for _, e := range refused.WriteErrors {
					at[e.Index] = true
				}
				if len(at) > 0 {
					failed[ordered]++
					behind[n] = refused.WriteErrors[0].Index
				}
				// InsertedIDs holds the ids of the documents that were stored, without gaps.
				i := 0
				for _, id := range res.InsertedIDs {
					for at[i] {
						i++
					}
					if other, ok := acknowledged[id.(bson.ObjectID)]; ok {
						t.Errorf("%v was acknowledged for %v and %v", id, other, docs[i])
					}
					acknowledged[id.(bson.ObjectID)] = docs[i]
					i++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	inserting := time.Since(start)

	cursor, err := plain.Find(ctx, bson.D{}, options.Find().SetBatchSize(10_000))
	if err != nil {
		t.Fatal(err)
	}
	stored := map[bson.ObjectID]bool{}
	extra := 0
	for cursor.Next(ctx) {
		raw := cursor.Current
		id := raw.Lookup("_id").ObjectID()
		at := place{int(raw.Lookup("batch").Int32()), int(raw.Lookup("place").Int32())}
		if stored[id] {
			t.Errorf("%v is stored twice", id)
		}
		stored[id] = true
		if want, ok := acknowledged[id]; ok {
			if at != want {
				t.Errorf("%v is stored with %v, acknowledged for %v", id, at, want)
			}
			continue
		}
		extra++
		if first, ok := behind[at.Batch]; !ok || at.Batch%2 == 1 || at.Place <= first {
			t.Errorf("%v is stored with %v and was not acknowledged", id, at)
		}
	}
	if err := cursor.Err(); err != nil {
		t.Fatal(err)
	}
	for id, at := range acknowledged {
		if !stored[id] {
			t.Errorf("%v of %v was acknowledged and is not stored", id, at)
		}
	}
	if drawn != total {
		t.Errorf("%d ids drawn for %d documents", drawn, total)
	}
	if failed[true] == 0 || failed[false] == 0 {
		t.Errorf("batches that met a duplicate, by order: %v", failed)
	}
	t.Logf("%d documents in %d commands, %d ids given twice, %d ordered and %d unordered batches refused in part; "+
		"%d acknowledged, %d more stored; inserted in %v, read in %v", total, len(log.named("insert")), repeated,
		failed[true], failed[false], len(acknowledged), extra, inserting.Round(time.Millisecond),
		(time.Since(start) - inserting).Round(time.Millisecond))
}

// TestAutoIDClientBulkWrite tests the bytes of the command, and its results if the server supports
// it.
func TestAutoIDClientBulkWrite(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	coll, log := autoIDCollection(t, uuidrep.CSharpLegacy)
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	src := autoid.SourceFunc(func() (any, error) { return u, nil })
	db := coll.Database().Name()
	writes := []mongo.ClientBulkWrite{
		{Database: db, Collection: "c", Model: mongo.NewClientInsertOneModel().
			SetDocument(autoid.Document(src, bson.D{{Key: "u", Value: u}}))},
		{Database: db, Collection: "d", Model: mongo.NewClientInsertOneModel().
			SetDocument(autoid.Document(src, bson.D{{Key: "u", Value: u}, {Key: "_id", Value: 7}}))},
	}
	res, err := coll.Database().Client().BulkWrite(ctx, writes, options.ClientBulkWrite().SetVerboseResults(true))

	cmds := log.named("bulkWrite")
	if len(cmds) != 1 {
		t.Fatalf("commands %v, %v", cmds, err)
	}
	ops, opsErr := cmds[0].Lookup("ops").Array().Values()
	if opsErr != nil || len(ops) != 2 {
		t.Fatalf("got %v, %v", ops, opsErr)
	}
	// The C# order of the specification's test UUID, subtype 3.
	bin := bson.Binary{Subtype: 3, Data: []byte("\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff")}
	for i, want := range []bson.D{
		{{Key: "_id", Value: bin}, {Key: "u", Value: bin}},
		{{Key: "u", Value: bin}, {Key: "_id", Value: int32(7)}},
	} {
		raw, err := bson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := ops[i].Document().Lookup("document").Document(); !slices.Equal(got, bson.Raw(raw)) {
			t.Errorf("sent %v, want %v", got, bson.Raw(raw))
		}
	}
	if mongotest.Lacks(err) { // server 7.0 knows the command, but does not support it
		mongotest.Skip(t, "the server has no client-level bulk write")
	}
	if err != nil {
		t.Fatal(err)
	}
	if res.InsertResults[0].InsertedID != u || res.InsertResults[1].InsertedID != int32(7) {
		t.Errorf("got %v", res.InsertResults)
	}
}
