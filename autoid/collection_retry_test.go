package autoid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestClientBulkWrite tests that a document has one id although it is encoded more than once,
// because the limits of the server split the batch.
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

	// This is the limit in the documentation of Document: the batches before the failure are
	// written.
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

// TestRetries tests that a second attempt of the driver, and a second run of a transaction, send
// the same id.
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
		doc := Document(&src, bson.M{}) // outside the function that runs again
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
