package autoid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/bsonids/bsonids/internal/built"
)

// TestCallerErrors tests that the errors of the driver keep their text and have the document of the
// caller.
func TestCallerErrors(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	plain := client.Database("db").Collection("c")
	coll := Wrap(plain, &counter{})
	insert := func(doc any) mongo.WriteModel { return mongo.NewInsertOneModel().SetDocument(doc) }
	bad, noDocument := map[string]any{"f": func() {}}, make(chan int)
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
		{"InsertOne comment",
			func() error { _, err := coll.InsertOne(ctx, bson.M{}, options.InsertOne().SetComment(bad)); return err },
			func() error {
				_, err := plain.InsertOne(ctx, bson.M{}, options.InsertOne().SetComment(bad))
				return err
			}},
		{"InsertMany comment",
			func() error {
				_, err := coll.InsertMany(ctx, []any{bson.M{}}, options.InsertMany().SetComment(bad))
				return err
			},
			func() error {
				_, err := plain.InsertMany(ctx, []any{bson.M{}}, options.InsertMany().SetComment(bad))
				return err
			}},
		{"InsertOne of a type without an encoder",
			func() error { _, err := coll.InsertOne(ctx, noDocument); return err },
			func() error { _, err := plain.InsertOne(ctx, noDocument); return err }},
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

// TestNoIDDrawn tests that the source is not asked for a bulk write that the driver refuses.
func TestNoIDDrawn(t *testing.T) {
	client, started := newTestServer().client(t, registered())
	var src counter
	coll := Wrap(client.Database("db").Collection("c"), &src)
	if _, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{}), nil}); err == nil || src.drawn() != 0 || len(started()) != 0 {
		t.Errorf("%v, drew %d, sent %v", err, src.drawn(), started())
	}
}

// TestDocumentCodecGuardsItsType tests that the encoder of documents is for nothing else.
func TestDocumentCodecGuardsItsType(t *testing.T) {
	for _, v := range []any{(*document)(nil), 1, base{}} {
		var e bson.ValueEncoderError
		if err := new(documentCodec).EncodeValue(bson.EncodeContext{Registry: registered()}, nil, reflect.ValueOf(v)); !errors.As(err, &e) {
			t.Errorf("%T: got %v", v, err)
		}
	}
}

var errFailing = errors.New("no document")

// failing fails to encode itself.
type failing struct{}

func (failing) MarshalBSON() ([]byte, error) { return nil, errFailing }

// TestDocumentWithoutAnEncoder tests that a Document that a registry cannot encode is not sent, alone or in a Collection.
func TestDocumentWithoutAnEncoder(t *testing.T) {
	client, started := newTestServer().client(t, registered())
	plain := client.Database("db").Collection("c")
	for _, doc := range []any{bson.M{"f": func() {}}, make(chan int), nil, failing{}} {
		for name, do := range map[string]func() error{
			"driver":     func() error { _, err := plain.InsertOne(ctx, Document(&counter{}, doc)); return err },
			"Collection": func() error { _, err := Wrap(plain, &counter{}).InsertOne(ctx, Document(&counter{}, doc)); return err },
		} {
			if err := do(); err == nil || doc != nil && reflect.TypeOf(doc) == reflect.TypeFor[failing]() && !errors.Is(err, errFailing) {
				t.Errorf("%s took a %T: got %v", name, doc, err)
			}
		}
	}
	if got := started(); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// TestClientWritesErrors tests that a filter, an update or an array filter that cannot be encoded prevents all writes, and that
// what is nil is left to the driver.
func TestClientWritesErrors(t *testing.T) {
	client, _ := newTestServer().client(t, registered())
	plain := client.Database("db").Collection("c")
	coll := Wrap(plain, &counter{})
	foreign := Wrap(plain.Clone(options.Collection().SetRegistry(bson.NewRegistry())), &counter{})
	bad, good, set := bson.M{"f": func() {}}, bson.M{"a": 1}, bson.M{"$set": bson.M{"a": 1}}
	for name, m := range map[string]mongo.ClientWriteModel{
		"filter of UpdateOne":         mongo.NewClientUpdateOneModel().SetFilter(bad).SetUpdate(set),
		"filter of UpdateMany":        mongo.NewClientUpdateManyModel().SetFilter(bad).SetUpdate(set),
		"filter of ReplaceOne":        mongo.NewClientReplaceOneModel().SetFilter(bad).SetReplacement(good),
		"filter of DeleteOne":         mongo.NewClientDeleteOneModel().SetFilter(bad),
		"filter of DeleteMany":        mongo.NewClientDeleteManyModel().SetFilter(bad),
		"filter without an update":    mongo.NewClientUpdateOneModel().SetFilter(bad),
		"update of UpdateOne":         mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(bad),
		"update of UpdateMany":        mongo.NewClientUpdateManyModel().SetFilter(good).SetUpdate(bad),
		"replacement":                 mongo.NewClientReplaceOneModel().SetFilter(good).SetReplacement(bad),
		"array filter of UpdateOne":   mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(set).SetArrayFilters([]any{good, bad}),
		"array filter of UpdateMany":  mongo.NewClientUpdateManyModel().SetFilter(good).SetUpdate(set).SetArrayFilters([]any{good, bad}),
		"document":                    mongo.NewClientInsertOneModel().SetDocument(bad),
		"no document":                 mongo.NewClientInsertOneModel(),
		"filter of an upsert":         mongo.NewClientUpdateOneModel().SetFilter(bad).SetUpdate(set).SetUpsert(true),
		"replacement of an upsert":    mongo.NewClientReplaceOneModel().SetFilter(good).SetReplacement(bad).SetUpsert(true),
		"array filters of an upsert":  mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(set).SetArrayFilters([]any{bad}).SetUpsert(true),
		"malformed update":            mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(bson.Raw{6, 0, 0, 0, 0}),
		"update that fails":           mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(failing{}),
		"update value that fails":     mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(failingValue{}),
		"malformed filter":            mongo.NewClientUpdateOneModel().SetFilter(marshaledBytes{9, 0, 0, 0, 0}).SetUpdate(set),
		"filter that fails":           mongo.NewClientDeleteOneModel().SetFilter(failing{}),
		"update of many of an upsert": mongo.NewClientUpdateManyModel().SetFilter(good).SetUpdate(bad).SetUpsert(true),
	} {
		if writes, err := coll.ClientWrites(mongo.NewClientInsertOneModel().SetDocument(good), m); err == nil || writes != nil {
			t.Errorf("%s: got %v, %v", name, writes, err)
		}
	}
	for name, m := range map[string]mongo.ClientWriteModel{
		"insert": mongo.NewClientInsertOneModel().SetDocument(good), "delete": mongo.NewClientDeleteOneModel().SetFilter(good),
		"update": mongo.NewClientUpdateOneModel().SetUpdate(set), "upsert": mongo.NewClientUpdateOneModel().SetFilter(good).SetUpdate(set).SetUpsert(true),
	} {
		if writes, err := foreign.ClientWrites(m); !errors.Is(err, ErrNotRegistered) || writes != nil {
			t.Errorf("%s without Register: got %v, %v", name, writes, err)
		}
	}
	if writes, err := Wrap(plain, nil).ClientWrites(); err == nil || writes != nil {
		t.Errorf("without a source: got %v, %v", writes, err)
	}
	writes, err := coll.ClientWrites(mongo.NewClientUpdateOneModel(), mongo.NewClientDeleteManyModel(), mongo.NewClientReplaceOneModel().SetUpsert(true))
	if err != nil || len(writes) != 3 {
		t.Fatalf("got %v, %v", writes, err)
	}
	update, remove := writes[0].Model.(*mongo.ClientUpdateOneModel), writes[1].Model.(*mongo.ClientDeleteManyModel)
	if replace := writes[2].Model.(*mongo.ClientReplaceOneModel); update.Filter != nil || update.Update != nil || remove.Filter != nil ||
		replace.Filter != nil || replace.Replacement != nil {
		t.Errorf("got %v, %v, %v", update, remove, replace)
	}
}

// TestOwnFilters tests that the collection of a mixedrep.Collection encodes no filter, whatever its kind, and no document.
func TestOwnFilters(t *testing.T) {
	reg := registered()
	(&built.Note{OwnFilters: true}).AddTo(reg)
	client, started := newTestServer().client(t, reg)
	coll := Wrap(client.Database("db").Collection("c"), &counter{})
	type named []bson.E
	for _, filter := range []any{
		bson.M{}, map[string]int{}, bson.D{}, named{}, struct{}{}, &struct{}{}, &bson.D{}, [1]bson.E{{Key: "a", Value: 1}}, marshal(t, bson.D{}),
	} {
		if _, err := coll.Find(ctx, filter); !errors.Is(err, errOwnFilters) {
			t.Errorf("%T: got %v", filter, err)
		}
		if _, err := coll.InsertOne(ctx, filter); !errors.Is(err, errOwnFilters) {
			t.Errorf("inserting a %T: got %v", filter, err)
		}
	}
	if got := started(); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// sameValue compares values that may contain functions.
func sameValue(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Kind() == reflect.Map && vb.Kind() == reflect.Map {
		return va.Pointer() == vb.Pointer()
	}
	return reflect.DeepEqual(a, b)
}

// TestNothingSent tests that a document without an id prevents the whole call, and that the error
// identifies it.
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
		{"nil", func() (any, error) { return nil, nil }, errNilID},
		{"nil pointer", func() (any, error) { return (*int)(nil), nil }, errNilID},
		{"driver error", func() (any, error) { return nil, mongo.CommandError{Code: 6, Wrapped: boom} }, boom},
		// The driver would take this error for the outcome of the write.
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
				if !reflect.DeepEqual(res, &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}) { // the result of the driver
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
				want := fmt.Sprintf("autoid: no id for document %d of type bson.M: ", call.index)
				if call.name == "InsertOne" {
					want = "autoid: no id for a document of type bson.M: "
				}
				if !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "autoid:") != 1 {
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

// TestCollectionNotRegistered tests that no method sends anything if the registry is not
// registered.
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

	// A clone with a registered registry works and keeps the source.
	clone := coll.Clone(options.Collection().SetRegistry(registered()))
	res, err := clone.InsertOne(ctx, bson.M{})
	if err != nil || res.InsertedID != int32(1) || clone.Name() != "c" {
		t.Errorf("got %v, %v", res, err)
	}
}

// ownError is an error type of an application.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

// TestSourceAsksMongoDB tests a Document whose source returns an error of the driver. The driver
// does not take it for the outcome of the insert, and the application can find the error of the
// source.
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

// TestCancelled tests that a context that is done before the call stores nothing.
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

// failingValue fails to encode itself as a value.
type failingValue struct{}

func (failingValue) MarshalBSONValue() (byte, []byte, error) { return 0, nil, errFailing }

// marshaledBytes are the document that they marshal themselves into.
type marshaledBytes []byte

func (b marshaledBytes) MarshalBSON() ([]byte, error) { return b, nil }

// TestUpsertsPrevented tests that what prevents an upsert is returned, and nothing is sent.
func TestUpsertsPrevented(t *testing.T) {
	server, plain, started := upsertServer(t)
	_ = server
	named, other, set := bson.M{"_id": 1}, bson.M{"a": 1}, bson.M{"$set": bson.M{"a": 1}}
	source := func(id any, err error) Source { return SourceFunc(func() (any, error) { return id, err }) }
	methods := append(updateMethods(true), replaceMethods(true)...)
	for _, m := range methods {
		update := any(set)
		if strings.Contains(m.name, "Replace") {
			update = bson.M{"a": 1}
		}
		for name, err := range map[string]error{
			"no source":                    m.do(Wrap(plain, nil), other, update),
			"no source and no filter":      m.do(Wrap(plain, nil), nil, update),
			"no source and no update":      m.do(Wrap(plain, nil), other, nil),
			"a source that fails":          m.do(Wrap(plain, source(nil, errFailing)), other, update),
			"an id without an encoder":     m.do(Wrap(plain, source(make(chan int), nil)), other, update),
			"a filter that fails":          m.do(Wrap(plain, &counter{}), failing{}, update),
			"a malformed filter":           m.do(Wrap(plain, &counter{}), marshaledBytes{9, 0, 0, 0, 0}, update),
			"a filter that is not BSON":    m.do(Wrap(plain, &counter{}), bson.Raw{12, 0, 0, 0, 2, 'a', 0, 9, 0, 0, 0, 0}, update),
			"an update that fails":         m.do(Wrap(plain, &counter{}), named, failing{}),
			"an update value that fails":   m.do(Wrap(plain, &counter{}), named, failingValue{}),
			"an update without an encoder": m.do(Wrap(plain, &counter{}), named, bson.M{"$set": make(chan int)}),
			"a stage without an encoder":   m.do(Wrap(plain, &counter{}), named, []any{bson.M{"$set": make(chan int)}}),
			"a malformed update":           m.do(Wrap(plain, &counter{}), named, bson.Raw{6, 0, 0, 0, 0}),
			"an unregistered collection":   m.do(Wrap(plain.Clone(options.Collection().SetRegistry(bson.NewRegistry())), &counter{}), named, update),
		} {
			if err == nil {
				t.Errorf("%s, %s: no error", m.name, name)
			}
			if strings.HasSuffix(name, "fails") && !errors.Is(err, errFailing) {
				t.Errorf("%s, %s: got %v", m.name, name, err)
			}
			if strings.HasPrefix(name, "no source") && !errors.Is(err, errNilSource) {
				t.Errorf("%s, %s: got %v", m.name, name, err)
			}
		}
		var failed *IDError
		if err := m.do(Wrap(plain, source(nil, errFailing)), other, update); !errors.As(err, &failed) || failed.Index != 0 {
			t.Errorf("%s: got %v", m.name, err)
		}
	}
	if got := started(); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

// TestKindOfIDsAskedOnce tests that one id is drawn to know whether a source gives ObjectIDs, for all replacements.
func TestKindOfIDsAskedOnce(t *testing.T) {
	_, plain, _ := upsertServer(t)
	drawn := 0
	coll := Wrap(plain, SourceFunc(func() (any, error) { drawn++; return bson.NewObjectID(), nil }))
	for range 3 {
		if _, err := coll.ReplaceOne(ctx, bson.M{"a": 1}, bson.M{"b": 1}, options.Replace().SetUpsert(true)); err != nil {
			t.Fatal(err)
		}
	}
	if drawn != 1 {
		t.Errorf("%d ids were drawn", drawn)
	}
}

// TestUpdatesOfOtherKinds tests that what is no document of operators is refused, or sent, as the driver does it.
func TestUpdatesOfOtherKinds(t *testing.T) {
	server, plain, _ := upsertServer(t)
	type octets []byte
	type Document []byte // the name of the driver's
	set := bsoncore.Document(marshal(t, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}))
	pipeline := func(v any) any {
		kind, data, err := bson.MarshalValue(v)
		if err != nil {
			t.Fatal(err)
		}
		return encodedValue{byte(kind), data}
	}
	for _, update := range []any{
		set, octets(set), Document(set), bsoncore.Array(set), [2]byte{1, 2}, []any{nil}, []any{bson.D{}, nil}, []int{1}, []string{"x"}, "text", 1, []uint16{1},
		pipeline("text"), pipeline(1), pipeline(bson.A{}), octets{}, []any{},
	} {
		for _, m := range updateMethods(true) {
			if strings.HasPrefix(m.name, "Client") {
				continue
			}
			before := len(server.received("update")) + len(server.received("findAndModify"))
			want := m.do(plain, bson.M{"_id": 1}, update)
			middle := len(server.received("update")) + len(server.received("findAndModify"))
			got := m.do(Wrap(plain, &counter{}), bson.M{"_id": 1}, update)
			after := len(server.received("update")) + len(server.received("findAndModify"))
			if (got == nil) != (want == nil) || middle-before != after-middle {
				t.Errorf("%s of a %T: got %v, the driver %v; sent %d and %d", m.name, update, got, want, after-middle, middle-before)
			}
		}
	}
}

// TestUpdatesWithoutAnID tests upserts whose filter does not name the _id: a document of operators gets one, also if a field
// has the text _id, and the error for what is no update is that of the driver.
func TestUpdatesWithoutAnID(t *testing.T) {
	_, plain, _ := upsertServer(t)
	server, ours, _ := upsertServer(t)
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: "_id"}}}}
	for _, m := range updateMethods(true) {
		for _, update := range []any{set, bsoncore.Document(marshal(t, set)), bson.D{{Key: "$rename", Value: bson.D{{Key: "a", Value: "b"}}}}} {
			if err := m.do(Wrap(ours, always("x")), bson.M{"a": 1}, update); err != nil {
				t.Errorf("%s of a %T: %v", m.name, update, err)
				continue
			}
			if _, sent := m.sent(server); sent.Document().Lookup("$setOnInsert", "_id").StringValue() != "x" {
				t.Errorf("%s of a %T: sent %v", m.name, update, sent)
			}
		}
		for _, update := range []any{[2]byte{1, 2}, []any{nil}, encodedValue{byte(bson.TypeInt32), []byte{1, 0, 0, 0}}} {
			want := m.do(plain, bson.M{"a": 1}, update)
			if got := m.do(Wrap(ours, always("x")), bson.M{"a": 1}, update); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of a %T: got %v, the driver %v", m.name, update, got, want)
			}
		}
		zero := bson.A{bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: bson.ObjectID{}}}}}}
		if err := m.do(Wrap(ours, always("x"), WithZeroIDs()), bson.M{"_id": 1}, zero); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	for _, m := range replaceMethods(true) {
		replacement := []bson.D{{}}
		want := m.do(plain, bson.M{"a": 1}, replacement)
		if got := m.do(Wrap(ours, always("x")), bson.M{"a": 1}, replacement); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, the driver %v", m.name, got, want)
		}
	}
}

// TestElementsOf tests that a value that is no document has no elements, whatever its octets are.
func TestElementsOf(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "_id", Value: int32(1)}})
	for typ, want := range map[bson.Type]int{bson.TypeEmbeddedDocument: 1, bson.TypeArray: 1, bson.TypeString: 0, bson.TypeBinary: 0, bson.TypeCodeWithScope: 0} {
		if got := elementsOf(bson.RawValue{Type: typ, Value: doc}); len(got) != want {
			t.Errorf("%v: got %v", typ, got)
		}
	}
}

// TestProbes tests that an encoder of the caller's for a probe is an error, and that a probe encodes and decodes nothing else.
func TestProbes(t *testing.T) {
	for _, v := range []any{(*encodeProbe)(nil), 1} {
		if err := encodeEncodeProbe(bson.EncodeContext{}, nil, reflect.ValueOf(v)); !errors.Is(err, errProbed) {
			t.Errorf("%T: got %v", v, err)
		}
	}
	reg := registered()
	raw := marshal(t, bson.D{{Key: "c", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{}}}})
	raw[12]++ // the length of the code
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	var v struct{ C bson.CodeWithScope }
	if err := dec.Decode(&v); err == nil {
		t.Errorf("got %v", v)
	}
	reg.RegisterTypeEncoder(reflect.TypeFor[*encodeProbe](), bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return errFailing }))
	client, started := newTestServer().client(t, reg)
	coll := Wrap(client.Database("db").Collection("c"), &counter{}, WithWriteBack())
	if _, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{})}); !errors.Is(err, errFailing) || !strings.HasPrefix(err.Error(), "autoid: ") {
		t.Errorf("got %v", err)
	}
	if dc := coll.contexts.decode(); dc.Registry != nil || len(started()) != 0 {
		t.Errorf("got %v and sent %v", dc, started())
	}
}
