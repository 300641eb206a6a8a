package autoid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
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

// sent returns the documents of every insert command that reached the server.
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
		bson.D{{Key: "a", Value: "x"}, {Key: "_id", Value: "own"}}) // the driver leaves it where it is

	_, err = coll.InsertOne(ctx, bson.M{"_id": "own"})
	if !mongo.IsDuplicateKeyError(err) {
		t.Errorf("got %v", err)
	}
}

// TestInsertedIDs: ids come back as the registry decodes them into any.
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

	// What the server refuses is reported as by the driver, the ids of the rest with it.
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

	// Write errors show the caller's models.
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

	// Nothing to insert: the driver's own affair.
	if _, err := coll.BulkWrite(ctx, models[2:3]); err != nil {
		t.Error(err)
	}
}

// TestCallerErrors: what the driver refuses, it refuses in the same words and with the caller's document.
func TestCallerErrors(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	plain := client.Database("db").Collection("c")
	coll := Wrap(plain, &counter{})
	insert := func(doc any) mongo.WriteModel { return mongo.NewInsertOneModel().SetDocument(doc) }
	bad := map[string]any{"f": func() {}}
	var noModel mongo.WriteModel
	for _, tc := range []struct {
		name      string
		got, want func() error
	}{
		{"InsertOne nil",
			func() error { _, err := coll.InsertOne(ctx, nil); return err },
			func() error { _, err := plain.InsertOne(ctx, nil); return err }},
		{"InsertOne function",
			func() error { _, err := coll.InsertOne(ctx, bad); return err },
			func() error { _, err := plain.InsertOne(ctx, bad); return err }},
		{"InsertOne text",
			func() error { _, err := coll.InsertOne(ctx, "text"); return err },
			func() error { _, err := plain.InsertOne(ctx, "text"); return err }},
		{"InsertOne nil pointer",
			func() error { _, err := coll.InsertOne(ctx, (*base)(nil)); return err },
			func() error { _, err := plain.InsertOne(ctx, (*base)(nil)); return err }},
		{"InsertMany nil",
			func() error { _, err := coll.InsertMany(ctx, nil); return err },
			func() error { _, err := plain.InsertMany(ctx, nil); return err }},
		{"InsertMany not a slice",
			func() error { _, err := coll.InsertMany(ctx, bson.M{}); return err },
			func() error { _, err := plain.InsertMany(ctx, bson.M{}); return err }},
		{"InsertMany empty",
			func() error { _, err := coll.InsertMany(ctx, []any{}); return err },
			func() error { _, err := plain.InsertMany(ctx, []any{}); return err }},
		{"InsertMany nil element",
			func() error { _, err := coll.InsertMany(ctx, []any{bson.M{}, nil}); return err },
			func() error { _, err := plain.InsertMany(ctx, []any{bson.M{}, nil}); return err }},
		{"InsertMany bad element",
			func() error { _, err := coll.InsertMany(ctx, []any{bson.M{}, bad}); return err },
			func() error { _, err := plain.InsertMany(ctx, []any{bson.M{}, bad}); return err }},
		{"BulkWrite nil",
			func() error { _, err := coll.BulkWrite(ctx, nil); return err },
			func() error { _, err := plain.BulkWrite(ctx, nil); return err }},
		{"BulkWrite nil model",
			func() error { _, err := coll.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), noModel}); return err },
			func() error {
				_, err := plain.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), noModel})
				return err
			}},
		{"BulkWrite nil document",
			func() error {
				_, err := coll.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), insert(nil)})
				return err
			},
			func() error {
				_, err := plain.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), insert(nil)})
				return err
			}},
		{"BulkWrite bad document",
			func() error {
				_, err := coll.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), insert(bad)})
				return err
			},
			func() error {
				_, err := plain.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), insert(bad)})
				return err
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, want := tc.got(), tc.want()
			if want == nil || got == nil || got.Error() != want.Error() || reflect.TypeOf(got) != reflect.TypeOf(want) {
				t.Fatalf("got  %T %v\nwant %T %v", got, got, want, want)
			}
			var g, w mongo.MarshalError
			if errors.As(want, &w) && (!errors.As(got, &g) || !sameValue(g.Value, w.Value)) {
				t.Errorf("got the document %v, want %v", g.Value, w.Value)
			}
		})
	}
	_, err := coll.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{}), (*mongo.InsertOneModel)(nil)})
	if !errors.Is(err, mongo.ErrNilDocument) || !strings.HasPrefix(err.Error(), "autoid: invalid model at index 1: ") {
		t.Errorf("got %v", err)
	}
	if got := started(); len(got) != 0 {
		t.Errorf("commands %v", got)
	}
}

// sameValue compares values that may hold functions.
func sameValue(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Kind() == reflect.Map && vb.Kind() == reflect.Map {
		return va.Pointer() == vb.Pointer()
	}
	return reflect.DeepEqual(a, b)
}

// TestNothingSent: a document without an id keeps the whole call from being sent, and is named.
func TestNothingSent(t *testing.T) {
	boom := errors.New("boom")
	insert := func(doc any) mongo.WriteModel { return mongo.NewInsertOneModel().SetDocument(doc) }
	update := mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}})
	last := bson.M{"last": true}
	own := bson.M{"_id": "own"}
	for _, source := range []struct {
		name string
		fail func() (any, error)
		want error
	}{
		{"error", func() (any, error) { return nil, boom }, boom},
		{"nil", func() (any, error) { return nil, nil }, ErrNilID},
		{"nil pointer", func() (any, error) { return (*int)(nil), nil }, ErrNilID},
		{"driver error", func() (any, error) { return nil, mongo.CommandError{Code: 6, Wrapped: boom} }, boom},
		// What the driver takes for the outcome of the write itself, were it to see it.
		{"unacknowledged", func() (any, error) { return nil, fmt.Errorf("counter: %w", driver.ErrUnacknowledgedWrite) },
			driver.ErrUnacknowledgedWrite},
		{"write error", func() (any, error) { return nil, driver.WriteCommandError{} }, nil},
		{"no codec", func() (any, error) { return make(chan int), nil }, nil},
	} {
		for _, call := range []struct {
			name  string
			index int
			doc   any
			do    func(*Collection) error
		}{
			{"InsertOne", 0, last, func(c *Collection) error {
				if _, err := c.NewID(); err != nil { // the source fails from its second id on
					return err
				}
				_, err := c.InsertOne(ctx, last)
				return err
			}},
			{"InsertMany ordered", 2, last, func(c *Collection) error {
				_, err := c.InsertMany(ctx, []bson.M{{"a": 1}, own, last, own})
				return err
			}},
			{"InsertMany unordered", 2, last, func(c *Collection) error {
				_, err := c.InsertMany(ctx, []bson.M{{"a": 1}, own, last}, options.InsertMany().SetOrdered(false))
				return err
			}},
			{"BulkWrite ordered", 4, last, func(c *Collection) error {
				_, err := c.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{"a": 1}), update, insert(own), update, insert(last)})
				return err
			}},
			{"BulkWrite unordered", 2, last, func(c *Collection) error {
				_, err := c.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{"a": 1}), update, insert(last)},
					options.BulkWrite().SetOrdered(false))
				return err
			}},
			{"BulkWrite, result", 1, last, func(c *Collection) error {
				res, err := c.BulkWrite(ctx, []mongo.WriteModel{insert(bson.M{"a": 1}), insert(last)})
				if !reflect.DeepEqual(res, &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}) { // as the driver's
					return fmt.Errorf("result %v with %w", res, err)
				}
				return err
			}},
			{"Document in InsertMany", 1, last, func(c *Collection) error {
				src := SourceFunc(func() (any, error) { _, _ = c.NewID(); return c.src.NewID() })
				_, err := c.InsertMany(ctx, []any{own, Document(src, last)})
				return err
			}},
		} {
			t.Run(source.name+"/"+call.name, func(t *testing.T) {
				server := newTestServer()
				client, started := server.client(t, registered())
				n := 0
				src := SourceFunc(func() (any, error) {
					if n++; n == 1 {
						return n, nil
					}
					return source.fail()
				})
				err := call.do(Wrap(client.Database("db").Collection("c"), src))
				var e *IDError
				if !errors.As(err, &e) || e.Index != call.index || !reflect.DeepEqual(e.Document, call.doc) {
					t.Fatalf("got %#v", err)
				}
				if want := fmt.Sprintf("autoid: no id for document %d of type bson.M: ", call.index); !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %q, want %q...", err, want)
				}
				if source.want != nil && !errors.Is(err, source.want) {
					t.Errorf("got %v, want %v", err, source.want)
				}
				if got := started(); len(got) != 0 {
					t.Errorf("commands %v were sent", got)
				}
			})
		}
	}
}

// TestCollectionNotRegistered: no method sends anything through a registry without Register.
func TestCollectionNotRegistered(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, nil)
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)
	for name, do := range map[string]func() error{
		"InsertOne":  func() error { _, err := coll.InsertOne(ctx, bson.M{"_id": 1}); return err },
		"InsertMany": func() error { _, err := coll.InsertMany(ctx, []bson.M{{"_id": 1}, {}}); return err },
		"BulkWrite": func() error {
			_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1})})
			return err
		},
		"Document": func() error {
			_, err := coll.Collection.InsertOne(ctx, Document(&src, bson.M{"_id": 1}))
			return err
		},
		"client": func() error {
			_, err := client.BulkWrite(ctx, []mongo.ClientBulkWrite{{Database: "db", Collection: "c",
				Model: mongo.NewClientInsertOneModel().SetDocument(Document(&src, bson.M{"_id": 1}))}})
			return err
		},
		"update": func() error {
			_, err := coll.ReplaceOne(ctx, bson.M{}, Document(&src, bson.M{"a": 1}))
			return err
		},
	} {
		if err := do(); !errors.Is(err, ErrNotRegistered) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if src.drawn() != 0 || len(started()) != 0 {
		t.Errorf("%d drawn, commands %v", src.drawn(), started())
	}

	// A clone with the right registry works, and keeps the source.
	clone := coll.Clone(options.Collection().SetRegistry(registered()))
	res, err := clone.InsertOne(ctx, bson.M{})
	if err != nil || res.InsertedID != int32(1) || clone.Name() != "c" {
		t.Errorf("got %v, %v", res, err)
	}
}

// TestCollectionOptions: all three methods encode with the BSON options of the collection, and nothing but the
// caller's documents with its registry.
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

// TestDocumentElsewhere: what the doc comment of Document says of updates and replacements.
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

	// The run of models before it has been sent by then.
	_, err := Wrap(coll, &src).BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(update())})
	if !errors.Is(err, ErrNotRegistered) || len(server.stored()) != 1 {
		t.Errorf("got %v and %d documents", err, len(server.stored()))
	}
	// An unordered bulk write sends the models after it, too.
	_, err = Wrap(coll, &src).BulkWrite(ctx, []mongo.WriteModel{mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(update()),
		mongo.NewDeleteOneModel().SetFilter(bson.M{}), mongo.NewUpdateManyModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}})},
		options.BulkWrite().SetOrdered(false))
	if !errors.Is(err, ErrNotRegistered) || len(server.received("delete")) != 1 || len(server.received("update")) != 2 {
		t.Errorf("got %v and commands %v", err, started())
	}
}

// TestPlainCollection: a Document needs no Collection.
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
	if _, err := coll.InsertOne(ctx, d); !mongo.IsDuplicateKeyError(err) { // the same id again
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

// ownError is an error type of an application.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

// TestSourceAsksMongoDB: the driver takes no error of its own that a Document's source gives for the outcome of the
// insert, and the application sees what the source gave.
func TestSourceAsksMongoDB(t *testing.T) {
	server := newTestServer()
	server.fail = func(cmd bson.Raw) error {
		if cmd.Index(0).Key() == "findAndModify" {
			return serverError{code: 11000}
		}
		return nil
	}
	client, _ := server.client(t, registered())
	coll := client.Database("db").Collection("c")
	src := SourceFunc(func() (any, error) {
		err := coll.FindOneAndUpdate(ctx, bson.M{}, bson.M{"$inc": bson.M{"n": 1}}).Err()
		return nil, &ownError{errors.Join(err, bson.ValueEncoderError{Name: "codec"})}
	})
	for name, do := range map[string]func(doc any) error{
		"InsertOne":  func(doc any) error { _, err := coll.InsertOne(ctx, doc); return err },
		"InsertMany": func(doc any) error { _, err := coll.InsertMany(ctx, []any{doc}); return err },
		"ReplaceOne": func(doc any) error { _, err := coll.ReplaceOne(ctx, bson.M{}, doc); return err },
		"BulkWrite": func(doc any) error {
			_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(doc)})
			return err
		},
		"client": func(doc any) error {
			_, err := client.BulkWrite(ctx, []mongo.ClientBulkWrite{
				{Database: "db", Collection: "c", Model: mongo.NewClientInsertOneModel().SetDocument(doc)}})
			return err
		},
	} {
		doc := Document(src, bson.M{"a": 1})
		err := do(doc)
		if failed, ok := err.(mongo.MarshalError); !ok || failed.Value != doc || mongo.IsDuplicateKeyError(err) {
			t.Errorf("%s: got %T %v", name, err, err)
		}
		var e *IDError
		var own *ownError
		var codec bson.ValueEncoderError
		if !errors.As(err, &e) || !errors.As(err, &own) || !errors.As(err, &codec) || !errors.Is(err, own) ||
			!mongo.IsDuplicateKeyError(e) {
			t.Errorf("%s: got %T %v", name, err, err)
		}
	}
	if n := len(server.received("insert")) + len(server.received("update")) + len(server.received("bulkWrite")); n != 0 {
		t.Errorf("%d commands", n)
	}
}

// TestClientBulkWrite: batches that the server's limits split encode a document more than once, with one id.
func TestClientBulkWrite(t *testing.T) {
	reg := registered()
	registerUUID(reg)
	var drawn atomic.Int32
	src := SourceFunc(func() (any, error) { return uuid16{byte(drawn.Add(1))}, nil })
	server := newTestServer()
	server.maxMessage = 3000
	client, started := server.client(t, reg)
	var encodings atomic.Int32
	var writes []mongo.ClientBulkWrite
	for i := range 10 {
		doc := Document(src, counted{&encodings, bson.D{{Key: "i", Value: i}, {Key: "pad", Value: strings.Repeat("x", 500)}}})
		writes = append(writes, mongo.ClientBulkWrite{
			Database: "db", Collection: "c", Model: mongo.NewClientInsertOneModel().SetDocument(doc),
		})
	}
	writes = append(writes, mongo.ClientBulkWrite{Database: "db", Collection: "d",
		Model: mongo.NewClientInsertOneModel().SetDocument(Document(src, bson.D{{Key: "i", Value: 10}, {Key: "_id", Value: "own"}}))})
	res, err := client.BulkWrite(ctx, writes, options.ClientBulkWrite().SetVerboseResults(true))
	if err != nil {
		t.Fatal(err)
	}
	docs := server.stored()
	if len(docs) != 11 || drawn.Load() != 10 {
		t.Fatalf("%d documents, %d drawn", len(docs), drawn.Load())
	}
	if len(started()) < 2 || encodings.Load() <= 10 {
		t.Errorf("%d commands, %d encodings: nothing was split", len(started()), encodings.Load())
	}
	for i, d := range docs[:10] {
		if d.Index(0).Key() != "_id" || d.Lookup("i").Int32() != int32(i) {
			t.Errorf("document %d: %v", i, d)
		}
		if _, data := d.Lookup("_id").Binary(); data[0] != byte(i+1) || res.InsertResults[i].InsertedID != (uuid16{byte(i + 1)}) {
			t.Errorf("document %d: stored %v, result %v", i, d.Lookup("_id"), res.InsertResults[i])
		}
	}
	if docs[10].Index(1).Key() != "_id" || res.InsertResults[10].InsertedID != "own" {
		t.Errorf("got %v, %v", docs[10], res.InsertResults[10])
	}

	// The limit that the doc comment of Document names: batches before the failure are written.
	writes = writes[:0]
	for i := range 6 {
		src := SourceFunc(func() (any, error) {
			if i == 5 {
				return nil, errors.New("boom")
			}
			return fmt.Sprint("later", i), nil
		})
		writes = append(writes, mongo.ClientBulkWrite{Database: "db", Collection: "c", Model: mongo.NewClientInsertOneModel().
			SetDocument(Document(src, bson.D{{Key: "pad", Value: strings.Repeat("x", 500)}}))})
	}
	_, err = client.BulkWrite(ctx, writes)
	var e *IDError
	if !errors.As(err, &e) || e.Index != -1 {
		t.Errorf("got %v", err)
	}
	if n := len(server.stored()) - 11; n == 0 || n >= 5 {
		t.Errorf("%d documents written before the failure", n)
	}
}

// counted counts how often it is encoded.
type counted struct {
	n   *atomic.Int32
	doc bson.D
}

func (c counted) MarshalBSON() ([]byte, error) {
	c.n.Add(1)
	return bson.Marshal(c.doc)
}

// TestRetries: the driver's second attempt, and a transaction that is run again, send the id of the first.
func TestRetries(t *testing.T) {
	ids := func(cmds []bson.Raw) (ids []int32) {
		for _, c := range cmds {
			for _, d := range append(arrayOf(c, "documents"), arrayOf(c, "ops")...) {
				if doc, ok := d.Lookup("document").DocumentOK(); ok {
					d = doc
				}
				ids = append(ids, d.Lookup("_id").Int32())
			}
		}
		return ids
	}
	once := func(e serverError) func(bson.Raw) error {
		failed := false
		return func(cmd bson.Raw) error {
			if name := cmd.Index(0).Key(); !failed && (name == "insert" || name == "bulkWrite") {
				failed = true
				return e
			}
			return nil
		}
	}
	retryable := serverError{code: 91, labels: []string{"RetryableWriteError"}}
	transient := serverError{code: 112, labels: []string{"TransientTransactionError"}}

	t.Run("insert", func(t *testing.T) {
		server := newTestServer()
		server.fail = once(retryable)
		client, _ := server.client(t, registered())
		var src counter
		if _, err := Wrap(client.Database("db").Collection("c"), &src).InsertOne(ctx, bson.M{}); err != nil {
			t.Fatal(err)
		}
		if got := ids(server.received("insert")); !slices.Equal(got, []int32{1, 1}) || src.drawn() != 1 {
			t.Errorf("sent ids %v, %d drawn", got, src.drawn())
		}
	})
	t.Run("bulkWrite", func(t *testing.T) {
		server := newTestServer()
		server.fail = once(retryable)
		client, _ := server.client(t, registered())
		var src counter
		_, err := client.BulkWrite(ctx, []mongo.ClientBulkWrite{{Database: "db", Collection: "c",
			Model: mongo.NewClientInsertOneModel().SetDocument(Document(&src, bson.M{}))}})
		if err != nil {
			t.Fatal(err)
		}
		if got := ids(server.received("bulkWrite")); !slices.Equal(got, []int32{1, 1}) || src.drawn() != 1 {
			t.Errorf("sent ids %v, %d drawn", got, src.drawn())
		}
	})
	t.Run("transaction", func(t *testing.T) {
		server := newTestServer()
		server.fail = once(transient)
		client, _ := server.client(t, registered())
		coll := client.Database("db").Collection("c")
		var src counter
		doc := Document(&src, bson.M{}) // outside the function that is run again
		sess, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer sess.EndSession(ctx)
		runs := 0
		id, err := sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			runs++
			res, err := coll.InsertOne(ctx, doc)
			if err != nil {
				return nil, err
			}
			return res.InsertedID, nil
		})
		if err != nil || id != int32(1) || runs != 2 {
			t.Fatalf("got %v, %v after %d runs", id, err, runs)
		}
		if got := ids(server.received("insert")); !slices.Equal(got, []int32{1, 1}) || src.drawn() != 1 {
			t.Errorf("sent ids %v, %d drawn", got, src.drawn())
		}
		if len(server.received("commitTransaction")) != 1 {
			t.Error("not committed")
		}
	})
	t.Run("transaction of a Collection", func(t *testing.T) {
		server := newTestServer()
		client, _ := server.client(t, registered())
		var src counter
		coll := Wrap(client.Database("db").Collection("c"), &src)
		sess, err := client.StartSession()
		if err != nil {
			t.Fatal(err)
		}
		defer sess.EndSession(ctx)
		_, err = sess.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			if _, err := coll.InsertMany(ctx, []bson.M{{}, {}}); err != nil {
				return nil, err
			}
			return coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{})})
		})
		if err != nil {
			t.Fatal(err)
		}
		cmds := server.received("insert")
		if got := ids(cmds); !slices.Equal(got, []int32{1, 2, 3}) {
			t.Errorf("sent ids %v", got)
		}
		for _, c := range cmds {
			if c.Lookup("txnNumber").Type != bson.TypeInt64 {
				t.Errorf("not in the transaction: %v", c)
			}
		}
	})
}

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
		"nil":   {SourceFunc(func() (any, error) { return nil, nil }), ErrNilID},
		"none":  {nil, errNilSource},
	} {
		id, err := Wrap(nil, want.src).NewID()
		if id != nil || !errors.Is(err, want.want) || !strings.HasPrefix(err.Error(), "autoid: ") {
			t.Errorf("%s: got %v, %v", src, id, err)
		}
	}
	var _ Source = (*Collection)(nil)
}

// TestCancelled: a context that is done before the call stores nothing.
func TestCancelled(t *testing.T) {
	server := newTestServer()
	client, _ := server.client(t, registered())
	coll := Wrap(client.Database("db").Collection("c"), &counter{})
	done, cancel := context.WithCancel(ctx)
	cancel()
	for name, do := range map[string]func() error{
		"InsertOne":  func() error { _, err := coll.InsertOne(done, bson.M{}); return err },
		"InsertMany": func() error { _, err := coll.InsertMany(done, []bson.M{{}}); return err },
		"BulkWrite": func() error {
			_, err := coll.BulkWrite(done, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{})})
			return err
		},
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := server.stored(); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}

// TestCollectionConcurrent: many goroutines share a Collection.
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
