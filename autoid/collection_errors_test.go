package autoid

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// TestCallerErrors tests that the errors of the driver keep their text and have the document of the
// caller.
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
