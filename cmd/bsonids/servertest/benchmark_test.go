package servertest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// BenchmarkConvert converts the same collection with a plain loop of the driver (find and
// bulkWrite) and with convert, which also decides and has an undo log, in turns. It reports the
// documents per second of each, and the ratio of convert to the loop.
func BenchmarkConvert(b *testing.B) {
	n, batch := *convertDocuments, 1000
	if n == 0 {
		n, batch = 300, 20
	}
	s := mongotest.Start(b)
	coll := connect(b, s).Collection("c")
	compare(b, s, coll, n, batch, func() {
		if err := coll.Drop(b.Context()); err != nil {
			b.Fatal(err)
		}
		var docs []any
		for i := range n {
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
		}
		insert(b, coll, docs)
	})
}

// BenchmarkConvertClient does the same with a server that costs almost nothing, so that it measures
// only the client programs.
func BenchmarkConvertClient(b *testing.B) {
	n, batch := *convertDocuments, 1000
	if n == 0 {
		n = 100_000
	}
	s := mongotest.Start(b)
	insert(b, connect(b, s).Collection("c"), []any{bson.D{{Key: "_id", Value: -1}}}) // the collection must exist
	p := startProxy(b, host(b, s), weightless(b, n))
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	compare(b, p, client.Database(s.Database()).Collection("c"), n, batch, func() {})
}

// weightless answers for a collection of n documents at almost no cost to the server. The answers
// to find and getMore are documents with one Java UUID each. Every update finds and changes its
// document.
func weightless(b *testing.B, n int) func(request, func() []byte) []byte {
	b.Helper()
	var some [1024]bson.Raw
	for i := range some {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(0)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
		if err != nil {
			b.Fatal(err)
		}
		some[i] = doc
	}
	const idAt = 4 + 1 + len("_id\x00")
	var next, end int // of the only cursor
	batch := func(r request, name string, size int64) []byte {
		to := min(end, next+int(size))
		_, list := bsoncore.AppendArrayStart(nil)
		for i := next; i < to; i++ {
			list = bsoncore.AppendDocumentElement(list, strconv.Itoa(i-next), some[i%len(some)])
			bsoncore.AppendInt32(list[:len(list)-len(some[i%len(some)])+idAt], int32(i))
		}
		list, err := bsoncore.AppendArrayEnd(list, 0)
		if err != nil {
			b.Error(err)
		}
		next = to
		id := int64(0)
		if to < end {
			id = 1
		}
		return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: "x.c"},
			{Key: name, Value: bson.RawValue{Type: bson.TypeArray, Value: list}}}}})
	}
	return func(r request, pass func() []byte) []byte {
		size, _ := r.command.Lookup("batchSize").AsInt64OK()
		name, _ := r.command.Lookup(r.name()).StringValueOK()
		if r.name() == "getMore" {
			name, _ = r.command.Lookup("collection").StringValueOK()
		}
		if name != "c" { // for example, the record of conversions
			return pass()
		}
		switch r.name() {
		case "count":
			return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: n}})
		case "find":
			if id, ok := r.command.Lookup("filter", "_id").StringValueOK(); ok && id != "" {
				return pass() // whether the collection is a record of conversions
			}
			next, end = 0, n
			if after, ok := findInt32(r.command.Lookup("filter"), "$gt"); ok {
				next = int(after) + 1
			} else if _, err := r.command.LookupErr("filter", "_id", "$type"); err == nil {
				next = n // no _ids of other types
			}
			if limit, ok := r.command.Lookup("limit").AsInt64OK(); ok {
				end = min(n, next+int(limit))
			}
			return batch(r, "firstBatch", size)
		case "getMore":
			return batch(r, "nextBatch", size)
		case "update":
			return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: r.documents}, {Key: "nModified", Value: r.documents}})
		}
		return pass()
	}
}

// compare measures the ways to convert the n documents of a collection, in turns. It calls prepare
// before each.
func compare(b *testing.B, s target, coll *mongo.Collection, n, batch int, prepare func()) {
	b.Helper()
	ways := []struct {
		name string
		run  func()
	}{
		{"driver", func() { plainLoop(b, coll, batch) }},
		{"convert-1", nil}, {"convert-4", nil},
	}
	for i, workers := range []string{"1", "4"} {
		ways[i+1].run = func() {
			command(b, s, "convert", "--db", coll.Database().Name(), "--collection", coll.Name(), "--from", "javaLegacy", "--write", "--examples", "0",
				"--batch", fmt.Sprint(batch), "--workers", workers, "--undo-log", filepath.Join(b.TempDir(), "undo")).want(b, failure.ExitOK)
		}
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, way := range ways {
			prepare()
			begin := time.Now()
			way.run()
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, way := range ways {
		slices.Sort(took[i])
		median := took[i][len(took[i])/2].Seconds()
		b.ReportMetric(float64(n)/median, way.name+"-docs/s")
		if i > 0 {
			b.ReportMetric(took[0][len(took[0])/2].Seconds()/median, way.name+"-ratio")
		}
	}
}

// plainLoop converts one field without conditions and without a saved state.
func plainLoop(b *testing.B, coll *mongo.Collection, batch int) {
	b.Helper()
	cur, err := coll.Find(b.Context(), bson.D{}, options.Find().SetBatchSize(int32(batch)))
	if err != nil {
		b.Fatal(err)
	}
	var models []mongo.WriteModel
	flush := func() {
		if len(models) > 0 {
			if _, err := coll.BulkWrite(b.Context(), models, options.BulkWrite().SetOrdered(false)); err != nil {
				b.Fatal(err)
			}
			models = nil
		}
	}
	for cur.Next(b.Context()) {
		var doc struct {
			ID   int32       `bson:"_id"`
			UUID bson.Binary `bson:"id"`
		}
		if err := cur.Decode(&doc); err != nil {
			b.Fatal(err)
		}
		u, err := uuidrep.AsUUIDWithRepresentation(doc.UUID, uuidrep.JavaLegacy)
		if err != nil {
			b.Fatal(err)
		}
		models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: doc.ID}}).
			SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: uuidrep.NewBinary(u)}}}}))
		if len(models) == batch {
			flush()
		}
	}
	if err := cur.Err(); err != nil {
		b.Fatal(err)
	}
	flush()
}
