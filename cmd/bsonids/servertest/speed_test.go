package servertest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	speedDocuments = flag.Int("speed-documents", 300, "documents of BenchmarkSpeed on the server")
	speedBatch     = flag.Int("speed-batch", 20, "batch size of BenchmarkSpeed on the server")
	speedMemory    = flag.Int("speed-memory-documents", 200_000, "documents of BenchmarkSpeed on the server that answers from memory")
)

// BenchmarkSpeed converts the same collection with a plain loop of the driver (find and
// bulkWrite) and with apply and its undo log, in turns, with the same batch size, workers and
// write concern. It does so on the server and on one that answers from memory and costs almost
// nothing, which measures only the client programs. It reports the documents per second of the loop, of apply and of its passes.
func BenchmarkSpeed(b *testing.B) {
	s, db := started(b)
	memory := &weightless{t: b, n: *speedMemory}
	insert(b, db.Collection("memory"), []any{bson.D{{Key: "_id", Value: -1}}}) // the collection must exist
	p := startProxy(b, host(b, s), memory.answer)
	client := dial(b, p.URI())
	for _, c := range []contest{
		{"server", s, db.Collection("c"), *speedDocuments, *speedBatch, func(r uuidrep.Representation) {
			if r != uuidrep.JavaLegacy {
				return // it is converted
			}
			drop(b, db.Collection("c"))
			var docs []any
			for i := range *speedDocuments {
				docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(uuid.New(), r)}, {Key: "n", Value: i}})
			}
			insert(b, db.Collection("c"), docs)
		}},
		{"memory", p, client.Database(s.Database()).Collection("memory"), *speedMemory, 1000, func(r uuidrep.Representation) { memory.rep.Store(int32(r)) }},
	} {
		for _, workers := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/workers=%d", c.name, workers), func(b *testing.B) {
				took := make(map[string]time.Duration)
				for b.Loop() {
					c.round(b, workers, took)
				}
				for what, d := range took {
					b.ReportMetric(float64(c.documents*b.N)/d.Seconds(), what+"-docs/s")
				}
			})
		}
	}
}

// weightless answers for a collection of n documents at almost no cost to the server. The answers
// to find and getMore are documents with one UUID each. Every update finds and changes its document.
type weightless struct {
	t         testing.TB
	n         int
	rep       atomic.Int32    // of the UUIDs
	ids       []bson.RawValue // that the only cursor returns; if nil, those from next to end
	next, end int
}

// appendDocument appends the document with the _id. The UUID is made from it.
func (w *weightless) appendDocument(b []byte, id int32) []byte {
	rep := uuidrep.Representation(w.rep.Load())
	var u uuid.UUID
	random := rand.NewPCG(uint64(id), 1)
	binary.LittleEndian.PutUint64(u[:], random.Uint64())
	binary.LittleEndian.PutUint64(u[8:], random.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // version 4
	subtype := bson.TypeBinaryUUIDOld
	if rep == uuidrep.Standard {
		subtype = bson.TypeBinaryUUID
	} else {
		slices.Reverse(u[:8])
		slices.Reverse(u[8:])
	}
	start, b := bsoncore.AppendDocumentStart(b)
	b = bsoncore.AppendInt32Element(b, "_id", id)
	b = bsoncore.AppendBinaryElement(b, "id", subtype, u[:])
	b = bsoncore.AppendInt32Element(b, "n", id)
	b, _ = bsoncore.AppendDocumentEnd(b, start)
	return b
}

// batch answers with the next documents of the cursor.
func (w *weightless) batch(r request, name string, size int64) []byte {
	to := min(w.end, w.next+int(size))
	_, list := bsoncore.AppendArrayStart(make([]byte, 0, (to-w.next+1)*70))
	for i := w.next; i < to; i++ {
		list = append(strconv.AppendInt(append(list, byte(bson.TypeEmbeddedDocument)), int64(i-w.next), 10), 0)
		id := int32(i)
		if w.ids != nil {
			id = w.ids[i].Int32()
		}
		list = w.appendDocument(list, id)
	}
	list, err := bsoncore.AppendArrayEnd(list, 0)
	if err != nil {
		w.t.Error(err)
	}
	w.next = to
	id := int64(0)
	if to < w.end {
		id = 1
	}
	return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: "x.memory"},
		{Key: name, Value: bson.RawValue{Type: bson.TypeArray, Value: list}}}}})
}

// answer answers a command about the collection, and passes on others. Before each batch, apply
// asks whether another run has taken over; it is answered that none has.
func (w *weightless) answer(r request, pass func() []byte) []byte {
	size, _ := r.command.Lookup("batchSize").AsInt64OK()
	if size == 0 {
		size = 101 // the default of servers
	}
	name, _ := r.command.Lookup(r.name()).StringValueOK()
	if r.name() == "getMore" {
		name, _ = r.command.Lookup("collection").StringValueOK()
	}
	if r.name() == "buildInfo" { // apply limits updates on FerretDB, behind this server
		return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "version", Value: "8.0.0"}})
	}
	if name != "memory" {
		return pass()
	}
	switch r.name() {
	case "count":
		return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: w.n}})
	case "find":
		if id, ok := r.command.Lookup("filter", "_id").StringValueOK(); ok && id != "" {
			return pass() // whether the collection is a record of conversions
		}
		w.ids, w.next, w.end = nil, 0, w.n
		if after, ok := findInt32(r.command.Lookup("filter"), "$gt"); ok {
			w.next = int(after) + 1
		} else if _, err := r.command.LookupErr("filter", "_id", "$type"); err == nil {
			w.next = w.n // no _ids of other types
		} else if in, ok := r.command.Lookup("filter", "_id", "$in").ArrayOK(); ok {
			w.ids, _ = in.Values()
			w.end, size = len(w.ids), int64(len(w.ids))
		}
		if limit, ok := r.command.Lookup("limit").AsInt64OK(); ok {
			w.end = min(w.n, w.next+int(max(limit, -limit))) // negative for one batch
		}
		return w.batch(r, "firstBatch", size)
	case "getMore":
		return w.batch(r, "nextBatch", size)
	case "update":
		return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: r.documents}, {Key: "nModified", Value: r.documents}})
	}
	return pass()
}

// contest is a collection to be converted in several ways.
type contest struct {
	name             string
	server           target
	coll             *mongo.Collection
	documents, batch int
	holds            func(uuidrep.Representation) // what the collection has now
}

// round converts the collection once in each way, and adds how long the loop, the whole command
// and each of its passes took.
func (c contest) round(b *testing.B, workers int, took map[string]time.Duration) {
	b.Helper()
	c.holds(uuidrep.JavaLegacy)
	begin := time.Now()
	plainLoop(b, c.coll, c.batch, workers)
	took["loop"] += time.Since(begin)

	c.holds(uuidrep.JavaLegacy)
	dir := filepath.Join(b.TempDir(), "speed.d")
	command(b, c.server, "plan", dir, "--db", c.coll.Database().Name(), "--collection", c.coll.Name()).want(b, failure.ExitOK)
	changePlan(b, dir, convertFields("javaLegacy"), accepted)
	begin = time.Now()
	log := command(b, c.server, "apply", dir, "--write", "--batch", fmt.Sprint(c.batch), "--workers", fmt.Sprint(workers), "--log-format", "json").want(b, failure.ExitOK).stderr
	took["apply"] += time.Since(begin)
	c.holds(uuidrep.Standard)
	log += command(b, c.server, "verify", dir, "--log-format", "json").want(b, failure.ExitOK).stderr
	for text := range strings.Lines(log) {
		var line struct {
			Msg     string
			Seconds float64
		}
		decode(b, text, &line)
		if pass, ok := strings.CutSuffix(line.Msg, " ended"); ok {
			took[pass] += time.Duration(line.Seconds * float64(time.Second))
		}
	}
}

// plainLoop converts one field without conditions and without a saved state.
func plainLoop(t testing.TB, coll *mongo.Collection, batch, workers int) {
	t.Helper()
	coll = coll.Clone(options.Collection().SetWriteConcern(writeconcern.Majority())) // as apply
	cur, err := coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(int32(batch)))
	if err != nil {
		t.Fatal(err)
	}
	batches := make(chan []mongo.WriteModel)
	var writing sync.WaitGroup
	for range workers {
		writing.Go(func() {
			for models := range batches {
				if _, err := coll.BulkWrite(t.Context(), models, options.BulkWrite().SetOrdered(false)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	defer writing.Wait()
	defer close(batches)
	var models []mongo.WriteModel
	for cur.Next(t.Context()) {
		var doc struct {
			ID   int32       `bson:"_id"`
			UUID bson.Binary `bson:"id"`
		}
		if err := cur.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		u, err := uuidrep.AsWithRepresentation[uuid.UUID](doc.UUID, uuidrep.JavaLegacy)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: doc.ID}}).
			SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: uuidrep.NewBinary(u)}}}}))
		if len(models) == batch {
			batches <- models
			models = nil
		}
	}
	if err := cur.Err(); err != nil {
		t.Fatal(err)
	}
	if len(models) > 0 {
		batches <- models
	}
}
