package servertest

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	speedRounds    = flag.Int("speed", 0, "measure the speed of apply in this many rounds")
	speedDocuments = flag.Int("speed-documents", 300, "documents of TestSpeed on the server")
	speedBatch     = flag.Int("speed-batch", 20, "batch size of TestSpeed on the server")
	speedMemory    = flag.Int("speed-memory-documents", 200_000, "documents of TestSpeed on the server that answers from memory")
)

// With -speed, TestSpeed converts the same collection with a plain loop of the driver (find and
// bulkWrite) and with apply and its undo log, in turns, with the same batch size, workers and
// write concern. It does so on the server and on one that answers from memory and costs almost
// nothing, which measures only the client programs. It prints a table.
func TestSpeed(t *testing.T) {
	if *speedRounds == 0 {
		mongotest.Skip(t, "the speed of apply is measured with -speed 15")
	}
	s := mongotest.Start(t)
	db := connect(t, s)
	coll := db.Collection("c")
	rows := compare(t, contest{name: "server", server: s, coll: coll, documents: *speedDocuments, batch: *speedBatch, prepare: func() {
		if err := coll.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		var docs []any
		for i := range *speedDocuments {
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
		}
		insert(t, coll, docs)
	}, converted: func() {}})

	memory := db.Collection("memory")
	insert(t, memory, []any{bson.D{{Key: "_id", Value: -1}}}) // the collection must exist
	w := &weightless{t: t, n: *speedMemory}
	p := startProxy(t, host(t, s), w.answer)
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	rows = append(rows, compare(t, contest{name: "memory", server: p, coll: client.Database(s.Database()).Collection("memory"),
		documents: *speedMemory, batch: 1000, prepare: func() { w.rep.Store(int32(uuidrep.JavaLegacy)) }, converted: func() { w.rep.Store(int32(uuidrep.Standard)) }})...)

	fmt.Println("| server | documents | workers | batch | loop | writing pass | of the loop | reading pass | proof (verify) | apply, whole | of the loop |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range rows {
		fmt.Println(r)
	}
}

// weightless answers for a collection of n documents at almost no cost to the server. The answers
// to find and getMore are documents with one UUID each. Every update finds and changes its document.
type weightless struct {
	t         *testing.T
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
	if id, _ := r.command.Lookup("filter", "_id").StringValueOK(); name == record.Name && r.name() == "find" && strings.HasPrefix(id, "memory/") {
		return r.cursor("x."+name, []any{}...)
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
	prepare          func() // fills the collection with old values
	converted        func() // is called between apply and verify
}

// compare measures the ways to convert the collection, in turns, with one and four workers. It
// returns rows of the table, with the medians of the rounds in documents per second.
func compare(t *testing.T, c contest) (rows []string) {
	t.Helper()
	workers := []int{1, 4}
	took := make([]map[string][]time.Duration, len(workers))
	ratios := make([]map[string][]float64, len(workers))
	for round := range *speedRounds + 1 {
		for i, n := range workers {
			now := c.round(t, n)
			if round == 0 { // to warm up
				took[i], ratios[i] = make(map[string][]time.Duration), make(map[string][]float64)
				continue
			}
			for what, d := range now {
				took[i][what] = append(took[i][what], d)
				ratios[i][what] = append(ratios[i][what], now["loop"].Seconds()/d.Seconds())
			}
		}
	}
	for i, n := range workers {
		speed := func(what string) string {
			return fmt.Sprintf("%.0f", float64(c.documents)/median(took[i][what]).Seconds())
		}
		ratio := func(what string) string { return fmt.Sprintf("%.2f", median(ratios[i][what])) }
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %s |", c.name, c.documents, n, c.batch, strings.Join([]string{speed("loop"),
			speed("converting"), ratio("converting"), speed("reading"), speed("verifying"), speed("whole"), ratio("whole")}, " | ")))
	}
	return rows
}

func median[T time.Duration | float64](s []T) T {
	slices.Sort(s)
	return s[len(s)/2]
}

// round converts the collection once in each way, and returns how long the loop, the whole command
// and each of its passes took.
func (c contest) round(t *testing.T, workers int) map[string]time.Duration {
	t.Helper()
	took := make(map[string]time.Duration)
	c.prepare()
	begin := time.Now()
	plainLoop(t, c.coll, c.batch, workers)
	took["loop"] = time.Since(begin)

	c.prepare()
	dir := filepath.Join(t.TempDir(), "speed.d")
	command(t, c.server, "plan", dir, "--db", c.coll.Database().Name()).want(t, failure.ExitOK)
	changePlan(t, dir, func(p *plan.Plan) {
		for i := range p.Collections {
			for j := range p.Collections[i].Fields {
				f := &p.Collections[i].Fields[j]
				if f.Decision = plan.Leave; p.Collections[i].Name == c.coll.Name() {
					f.Decision = plan.Convert("javaLegacy")
				}
			}
		}
		for i := range p.References {
			p.References[i].Accepted = true
		}
	})
	begin = time.Now()
	log := command(t, c.server, "apply", dir, "--write", "--batch", fmt.Sprint(c.batch), "--workers", fmt.Sprint(workers), "--log-format", "json").want(t, failure.ExitOK).stderr
	took["whole"] = time.Since(begin)
	c.converted()
	log += command(t, c.server, "verify", dir, "--log-format", "json").want(t, failure.ExitOK).stderr
	lines := bufio.NewScanner(strings.NewReader(log))
	for lines.Scan() {
		var line struct {
			Msg     string
			Seconds float64
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if pass, ok := strings.CutSuffix(line.Msg, " ended"); ok {
			took[pass] = time.Duration(line.Seconds * float64(time.Second))
		}
	}
	return took
}

// plainLoop converts one field without conditions and without a saved state.
func plainLoop(t *testing.T, coll *mongo.Collection, batch, workers int) {
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
