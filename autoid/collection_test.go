package autoid

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var ctx = context.Background()

func marshal(t testing.TB, doc any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sent returns the documents of all insert commands that reached the server.
func (s *testServer) sent() []bson.Raw {
	var docs []bson.Raw
	for _, c := range s.received("insert") {
		docs = append(docs, arrayOf(c, "documents")...)
	}
	return docs
}

func wantDocs(t *testing.T, got []bson.Raw, want ...bson.D) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if w := marshal(t, want[i]); !bytes.Equal(got[i], w) {
			t.Errorf("document %d: got %v, want %v", i, got[i], w)
		}
	}
}

// InsertOne sends an id of the source as the first element of a document without one, and returns it as a
// native value.
func TestInsertOne(t *testing.T) {
	server := newTestServer()
	client, _ := server.client(t, registered())
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)

	doc := bson.D{{Key: "a", Value: "x"}}
	res, err := coll.InsertOne(ctx, doc)
	if err != nil || res.InsertedID != int32(1) || !res.Acknowledged {
		t.Fatalf("got %+v, %v", res, err)
	}
	res, err = coll.InsertOne(ctx, bson.D{{Key: "a", Value: "x"}, {Key: "_id", Value: "own"}})
	if err != nil || res.InsertedID != "own" {
		t.Fatalf("got %+v, %v", res, err)
	}
	if len(doc) != 1 || src.drawn() != 1 {
		t.Errorf("document %v, %d drawn", doc, src.drawn())
	}
	wantDocs(t, server.sent(),
		bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: "x"}},
		bson.D{{Key: "a", Value: "x"}, {Key: "_id", Value: "own"}}) // the driver does not move it

	_, err = coll.InsertOne(ctx, bson.M{"_id": "own"})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v", err)
	}
}

// TestInsertedIDs tests that the result has the ids as the registry decodes them into any.
func TestInsertedIDs(t *testing.T) {
	reg := registered()
	registerUUID(reg)
	reg.RegisterTypeMapEntry(bson.TypeInt32, reflect.TypeFor[int]())
	server := newTestServer()
	client, _ := server.client(t, reg)
	u := uuid16{1, 2, 3}
	ids := []any{u, 7, "text", bson.ObjectID{9}, int64(1) << 40}
	n := 0
	src := SourceFunc(func() (any, error) { n++; return ids[n-1], nil })
	res, err := Wrap(client.Database("db").Collection("c"), src).InsertMany(ctx, make([]struct{ U uuid16 }, len(ids)))
	if err != nil || !reflect.DeepEqual(res.InsertedIDs, ids) {
		t.Fatalf("got %#v, %v", res, err)
	}
	for _, d := range server.sent() {
		if sub, _ := d.Lookup("u").Binary(); sub != bson.TypeBinaryUUID {
			t.Errorf("a field did not get the registry's encoding: %v", d)
		}
	}
	if id := server.sent()[0].Index(0); id.Key() != "_id" || id.Value().Type != bson.TypeBinary || id.Value().Value[4] != 4 {
		t.Errorf("got %v", id)
	}
}

// InsertMany gives each document without an _id one id of the source, in their order.
func TestInsertMany(t *testing.T) {
	type person struct {
		ID   any    `bson:"_id,omitempty"`
		Name string `bson:"name"`
	}
	server := newTestServer()
	server.maxBatch = 2
	client, started := server.client(t, registered())
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)
	people := []person{{nil, "a"}, {"own", "b"}, {nil, "c"}, {nil, "d"}, {0, "e"}}
	res, err := coll.InsertMany(ctx, people)
	want := []any{int32(1), "own", int32(2), int32(3), int32(0)}
	if err != nil || !reflect.DeepEqual(res.InsertedIDs, want) {
		t.Fatalf("got %+v, %v", res, err)
	}
	if got := started(); !slices.Equal(got, []string{"insert", "insert", "insert"}) {
		t.Errorf("commands %v", got)
	}
	for i, d := range server.sent() {
		if d.Index(0).Key() != "_id" || d.Lookup("name").StringValue() != people[i].Name {
			t.Errorf("document %d: %v", i, d)
		}
	}
	if people[0].ID != nil || src.drawn() != 3 {
		t.Errorf("%v, %d drawn", people, src.drawn())
	}

	// The errors of the server are reported as the driver reports them, with the ids of the other
	// documents.
	for ordered, want := range map[bool][]any{true: {int32(4)}, false: {int32(5), int32(6)}} {
		res, err := coll.InsertMany(ctx, []any{bson.M{}, bson.M{"_id": "own"}, bson.M{}}, options.InsertMany().SetOrdered(ordered))
		var failed mongo.BulkWriteException
		if !errors.As(err, &failed) || len(failed.WriteErrors) != 1 || failed.WriteErrors[0].Index != 1 {
			t.Errorf("got %v", err)
		}
		if len(res.InsertedIDs) != len(want) {
			t.Errorf("ordered %t: got %v", ordered, res.InsertedIDs)
		}
	}
}

// The inserts of a BulkWrite get ids as those of InsertOne do, and its other models are the driver's.
func TestBulkWrite(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)
	insert := func(doc any) *mongo.InsertOneModel { return mongo.NewInsertOneModel().SetDocument(doc) }
	doc := bson.M{"a": 1}
	models := []mongo.WriteModel{
		insert(doc),
		insert(bson.D{{Key: "a", Value: 2}, {Key: "_id", Value: "own"}}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}),
		insert(struct{ A int }{3}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"a": 9}),
	}
	before := slices.Clone(models)
	if _, err := coll.BulkWrite(ctx, models); err != nil {
		t.Fatal(err)
	}
	wantDocs(t, server.sent(),
		bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: 1}},
		bson.D{{Key: "a", Value: 2}, {Key: "_id", Value: "own"}},
		bson.D{{Key: "_id", Value: int32(2)}, {Key: "a", Value: 3}})
	if got := started(); !slices.Equal(got, []string{"insert", "update", "insert", "delete"}) {
		t.Errorf("commands %v", got)
	}
	if !slices.Equal(models, before) || len(doc) != 1 || len(models[0].(*mongo.InsertOneModel).Document.(bson.M)) != 1 {
		t.Errorf("the models were changed: %v", models)
	}

	// Write errors have the models of the caller.
	for _, ordered := range []bool{true, false} {
		models := []mongo.WriteModel{insert(bson.M{}), models[2], insert(bson.M{"_id": "own"}), insert(bson.M{})}
		_, err := coll.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(ordered))
		var failed mongo.BulkWriteException
		if !errors.As(err, &failed) || len(failed.WriteErrors) != 1 {
			t.Fatalf("got %v", err)
		}
		if e := failed.WriteErrors[0]; e.Index != 2 || e.Request != models[2] {
			t.Errorf("ordered %t: got index %d, request %v", ordered, e.Index, e.Request)
		}
	}

	// An empty bulk write is left to the driver.
	if _, err := coll.BulkWrite(ctx, models[2:3]); err != nil {
		t.Error(err)
	}
}

// TestCollectionOptions tests that all three methods encode with the BSON options of the
// collection, and use its registry only for the documents of the caller.
func TestCollectionOptions(t *testing.T) {
	type doc struct {
		Name string `json:"n"`
		ID   int64  `json:"_id,omitempty"`
	}
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[bson.Raw](), bson.ValueEncoderFunc(
		func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return errors.New("no Raw here") }))
	server := newTestServer()
	client, _ := server.client(t, reg,
		options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true, IntMinSize: true}))
	src := SourceFunc(func() (any, error) { return int64(len(server.stored()) + 1), nil })
	coll := Wrap(client.Database("db").Collection("c"), src)
	if _, err := coll.InsertOne(ctx, doc{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.InsertMany(ctx, []doc{{Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	models := []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(&doc{Name: "c"}), mongo.NewInsertOneModel().SetDocument(&doc{"d", 4}),
	}
	if _, err := coll.BulkWrite(ctx, models); err != nil {
		t.Fatal(err)
	}
	id := func(id int32, n string) bson.D { return bson.D{{Key: "_id", Value: id}, {Key: "n", Value: n}} }
	wantDocs(t, server.sent(), id(1, "a"), id(2, "b"), id(3, "c"),
		bson.D{{Key: "n", Value: "d"}, {Key: "_id", Value: int32(4)}})
}

// TestDocumentElsewhere tests what the documentation of Document says about updates and
// replacements.
func TestDocumentElsewhere(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	coll := client.Database("db").Collection("c")
	var src counter
	if _, err := coll.ReplaceOne(ctx, bson.M{}, Document(&src, bson.M{"a": 1})); err != nil {
		t.Error(err)
	}
	if err := coll.FindOneAndReplace(ctx, bson.M{}, Document(&src, bson.M{"a": 1})).Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		t.Error(err)
	}
	want := func(got bson.RawValue, id int32) {
		doc, ok := got.DocumentOK()
		if !ok || !bytes.Equal(doc, marshal(t, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: int32(1)}})) {
			t.Errorf("the replacement sent is %v", got)
		}
	}
	want(server.received("update")[0].Lookup("updates", "0", "u"), 1)
	want(server.received("findAndModify")[0].Lookup("update"), 2)

	sent := len(started())
	update := func() any { return Document(&src, bson.M{"$set": bson.M{"a": 1}}) }
	replacement := func() any { return Document(&src, bson.M{"a": 1}) }
	for name, do := range map[string]func() error{
		"UpdateOne":        func() error { _, err := coll.UpdateOne(ctx, bson.M{}, update()); return err },
		"FindOneAndUpdate": func() error { return coll.FindOneAndUpdate(ctx, bson.M{}, update()).Err() },
		"BulkWrite, update": func() error {
			_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(update())})
			return err
		},
		"BulkWrite, replacement": func() error {
			_, err := coll.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewReplaceOneModel().SetFilter(bson.M{}).SetReplacement(replacement())})
			return err
		},
		"client, replacement": func() error {
			_, err := client.BulkWrite(ctx, []mongo.ClientBulkWrite{{Database: "db", Collection: "c",
				Model: mongo.NewClientReplaceOneModel().SetFilter(bson.M{}).SetReplacement(replacement())}})
			return err
		},
	} {
		if err := do(); !errors.Is(err, ErrNotRegistered) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := len(started()) - sent; n != 0 || src.drawn() != 2 {
		t.Errorf("%d commands, %d drawn", n, src.drawn())
	}

	// The models before the document have been sent by then.
	_, err := Wrap(coll, &src).BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(update())})
	if !errors.Is(err, ErrNotRegistered) || len(server.stored()) != 1 {
		t.Errorf("got %v and %d documents", err, len(server.stored()))
	}
	// An unordered bulk write also sends the models after it.
	_, err = Wrap(coll, &src).BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(update()),
		mongo.NewDeleteOneModel().SetFilter(bson.M{}), mongo.NewUpdateManyModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}})},
		options.BulkWrite().SetOrdered(false))
	if !errors.Is(err, ErrNotRegistered) || len(server.received("delete")) != 1 || len(server.received("update")) != 2 {
		t.Errorf("got %v and commands %v", err, started())
	}
}

// TestPlainCollection tests that a Document does not need a Collection.
func TestPlainCollection(t *testing.T) {
	server := newTestServer()
	client, _ := server.client(t, registered())
	coll := client.Database("db").Collection("c")
	var src counter
	if res, err := coll.InsertOne(ctx, Document(&src, bson.M{})); err != nil || res.InsertedID != int32(1) {
		t.Errorf("got %v, %v", res, err)
	}
	if _, err := coll.InsertOne(ctx, Document(&src, nil)); !errors.Is(err, mongo.ErrNilDocument) {
		t.Errorf("got %v", err)
	}
	d := Document(&src, bson.M{})
	if _, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(d)}); err != nil {
		t.Error(err)
	}
	if _, err := coll.InsertOne(ctx, d); !mongo.IsDuplicateKeyError(err) { // the same id
		t.Errorf("got %v", err)
	}
	bad := Document(SourceFunc(func() (any, error) { return nil, errors.New("boom") }), bson.M{})
	_, err := coll.InsertMany(ctx, []any{bson.M{"_id": 5}, bad})
	var failed mongo.MarshalError
	var e *IDError
	if !errors.As(err, &failed) || failed.Value != bad || !errors.As(err, &e) || e.Index != -1 {
		t.Errorf("got %#v", err)
	}
	if n := len(server.stored()); n != 2 {
		t.Errorf("%d documents stored", n)
	}
}

// NewID returns what the source makes, and its errors wrap those of the source.
func TestNewID(t *testing.T) {
	boom := errors.New("boom")
	if id, err := Wrap(nil, &counter{}).NewID(); err != nil || id != int32(1) {
		t.Errorf("got %v, %v", id, err)
	}
	for src, want := range map[string]struct {
		src  Source
		want error
	}{
		"error": {SourceFunc(func() (any, error) { return 1, boom }), boom},
		"nil":   {SourceFunc(func() (any, error) { return nil, nil }), errNilID},
		"none":  {nil, errNilSource},
	} {
		id, err := Wrap(nil, want.src).NewID()
		if id != nil || !errors.Is(err, want.want) || !strings.HasPrefix(err.Error(), "autoid: ") {
			t.Errorf("%s: got %v, %v", src, id, err)
		}
	}
	var _ Source = (*Collection)(nil)
}

// TestCollectionConcurrent shares a Collection between many goroutines.
func TestCollectionConcurrent(t *testing.T) {
	type late struct {
		A  int   `bson:"a"`
		ID int32 `bson:"_id,omitempty"`
	}
	server := newTestServer()
	client, _ := server.client(t, registered())
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)
	const goroutines, rounds = 8, 25
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "g", Value: g}}); err != nil {
					t.Error(err)
				}
				if _, err := coll.InsertMany(ctx, []late{{A: i}, {A: i}}); err != nil {
					t.Error(err)
				}
				models := []mongo.WriteModel{
					mongo.NewInsertOneModel().SetDocument(bson.M{"g": g}), mongo.NewInsertOneModel().SetDocument(&late{A: g}),
				}
				if _, err := coll.Clone().BulkWrite(ctx, models); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	const want = goroutines * rounds * 5
	if got := len(server.stored()); got != want || src.drawn() != want {
		t.Errorf("%d stored, %d drawn, want %d", got, src.drawn(), want)
	}
}

// TestInsertManyCopiesElementsOnce tests that a slice of structs does not cost more than a slice of any, for which the driver
// copies each of them once. The source fails, so that nothing is encoded.
func TestInsertManyCopiesElementsOnce(t *testing.T) {
	client, _ := newTestServer().client(t, registered())
	coll := Wrap(client.Database("db").Collection("c"), SourceFunc(func() (any, error) { return nil, errFailing }))
	const n = 1000
	structs, anys := make([]struct{ Text [64]string }, n), make([]any, n)
	for i := range anys {
		anys[i] = bson.M{}
	}
	allocations := func(docs any) float64 {
		return testing.AllocsPerRun(10, func() {
			if _, err := coll.InsertMany(ctx, docs); !errors.Is(err, errFailing) {
				t.Fatal(err)
			}
		})
	}
	if more := allocations(structs) - allocations(anys); more < n || more > n+n/10 {
		t.Errorf("%v allocations more for %d structs", more, n)
	}
}
