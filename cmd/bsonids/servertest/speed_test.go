//go:build linux

package servertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	speedDocuments = flag.Int("speed-documents", 300, "documents of BenchmarkSpeed on the server")
	speedBatch     = flag.Int("speed-batch", 20, "batch size of BenchmarkSpeed on the server")
	speedMemory    = flag.Int("speed-memory-documents", 200_000, "documents of BenchmarkSpeed on the server that answers from memory")
	speedDelay     = flag.Duration("speed-delay", time.Millisecond, "how much later that server answers in half of BenchmarkSpeed")
	peakDocuments  = flag.Int("peak-documents", 200_000, "documents of BenchmarkPeak")
)

// asWeightless is the environment variable that makes BenchmarkSpeed be the server that answers from memory: the number of
// documents, and how much later it answers.
const asWeightless = "BSONIDS_TEST_WEIGHTLESS"

// BenchmarkSpeed compares the verbs with plain loops of the driver that do the same to the same collection, in turns,
// with the same batch size, workers and write concern. It does so on the server, and on one that answers from memory in
// a process of its own, which measures only the client programs. It reports the medians of the rounds: the documents per
// second of the loops, and the speed of the verbs as a share of that, by the clock and by the processor time of this
// process.
func BenchmarkSpeed(b *testing.B) {
	if how := os.Getenv(asWeightless); how != "" {
		var n int
		var delay time.Duration
		if _, err := fmt.Sscan(how, &n, (*int64)(&delay)); err != nil {
			b.Fatal(err)
		}
		serveWeightless(b, n, delay)
		return
	}
	for _, workers := range []int{1, 4} {
		b.Run(fmt.Sprintf("server/workers=%d", workers), func(b *testing.B) {
			s, db := started(b)
			put := func(name string, id func(i int) any) {
				drop(b, db.Collection(name))
				var docs []any
				for i := range *speedDocuments {
					docs = append(docs, bson.D{{Key: "_id", Value: id(i)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
				}
				insert(b, db.Collection(name), docs)
			}
			(&contest{s, db, *speedDocuments, *speedBatch, workers, func() {
				drop(b, db.Collection("copy"))
				put("numbered", func(i int) any { return int32(i) })
				put("source", func(int) any { return in(uuid.New(), uuidrep.JavaLegacy) })
			}}).run(b)
		})
	}
	for _, delay := range []time.Duration{0, *speedDelay} {
		for _, workers := range []int{1, 4} {
			b.Run(fmt.Sprintf("memory/delay=%v/workers=%d", delay, workers), func(b *testing.B) {
				s := startWeightless(b, *speedMemory, delay)
				db := dial(b, string(s)).Database("speed")
				(&contest{s, db, *speedMemory, 1000, workers, func() { drop(b, db.Collection("numbered")) }}).run(b)
			})
		}
	}
}

// uri is the connection string of a server.
type uri string

func (u uri) URI() string { return string(u) }

// startWeightless starts a server that answers from memory, as a process of its own.
func startWeightless(b *testing.B, n int, delay time.Duration) uri {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^$", "-test.bench=^BenchmarkSpeed$", "-test.benchtime=1x")
	cmd.Env, cmd.Stderr = append(os.Environ(), fmt.Sprintf("%s=%d %d", asWeightless, n, delay)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "mongodb://") {
			return uri(line)
		}
	}
	b.Fatal("the server has not started")
	return ""
}

// cost is what something took: seconds by the clock, and of processors in this process.
type cost struct{ seconds, processor float64 }

func now(tb testing.TB) cost {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return cost{float64(time.Now().UnixNano()) / 1e9, float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9}
}

func (c cost) since(tb testing.TB) cost {
	n := now(tb)
	return cost{n.seconds - c.seconds, n.processor - c.processor}
}

// contest is a server with the collections that [weightless] describes.
type contest struct {
	server                    target
	db                        *mongo.Database
	documents, batch, workers int
	reset                     func() // makes the collections be as they were
}

// run measures each kind of loop and what it is compared with, and reports the medians.
func (c *contest) run(b *testing.B) {
	for _, of := range []struct {
		loop  string
		round func(b *testing.B) (loop cost, verbs map[string]cost)
	}{{"convert", c.convert}, {"read", c.read}, {"copy", c.copy}} {
		b.Run(of.loop, func(b *testing.B) {
			var loops []cost
			shares := make(map[string][]float64)
			for b.Loop() {
				loop, verbs := of.round(b)
				loops = append(loops, loop)
				for what, is := range verbs {
					shares[what] = append(shares[what], loop.seconds/is.seconds)
					shares[what+"-cpu"] = append(shares[what+"-cpu"], loop.processor/is.processor)
				}
			}
			median := func(all []float64) float64 {
				slices.Sort(all)
				return all[len(all)/2]
			}
			var seconds, processor []float64
			for _, l := range loops {
				seconds, processor = append(seconds, float64(c.documents)/l.seconds), append(processor, float64(c.documents)/l.processor)
			}
			b.ReportMetric(median(seconds), "loop-docs/s")
			b.ReportMetric(median(processor), "loop-docs/cpu-s")
			for what, all := range shares {
				b.ReportMetric(median(all), what)
			}
		})
	}
}

// measured returns what f takes.
func measured(b *testing.B, f func()) cost {
	begin := now(b)
	f()
	return begin.since(b)
}

// convert compares apply in place with a loop that converts. "apply" is the whole command, "converting" what it does
// after it has decided, "again" a pass that finds nothing left, with which converting ends, and "writing" the rest of it.
func (c *contest) convert(b *testing.B) (loop cost, verbs map[string]cost) {
	verbs = make(map[string]cost)
	numbered := c.db.Collection("numbered", options.Collection().SetWriteConcern(writeconcern.Majority())) // as apply
	c.reset()
	loop = measured(b, func() { c.convertLoop(b, numbered) })
	c.reset()
	dir := filepath.Join(b.TempDir(), "speed.d")
	c.planned(b, dir, "numbered")
	verbs["apply"] = measured(b, func() { verbs["converting"] = c.command(b, c.apply(dir)...) })
	again := c.command(b, c.apply(dir)...)
	verbs["again"] = again
	verbs["writing"] = cost{verbs["converting"].seconds - again.seconds, verbs["converting"].processor - again.processor}
	return loop, verbs
}

// read compares verify, and a pass of apply that finds nothing left, with a loop that reads.
func (c *contest) read(b *testing.B) (loop cost, verbs map[string]cost) {
	c.reset()
	dir := filepath.Join(b.TempDir(), "speed.d")
	c.planned(b, dir, "numbered")
	c.command(b, c.apply(dir)...)
	loop = measured(b, func() { c.readLoop(b, c.db.Collection("numbered")) })
	return loop, map[string]cost{"verifying": c.command(b, "verify", dir), "again": c.command(b, c.apply(dir)...)}
}

// copy compares apply of a copy, which compares the copy with its source, with a loop that does not.
func (c *contest) copy(b *testing.B) (loop cost, verbs map[string]cost) {
	source, copied := c.db.Collection("source"), c.db.Collection("copy", options.Collection().SetWriteConcern(writeconcern.Majority()))
	c.reset()
	loop = measured(b, func() { c.copyLoop(b, source, copied) })
	c.reset()
	dir := filepath.Join(b.TempDir(), "copy.d")
	c.planned(b, dir, "source", copiedInto("source", "copy"))
	verbs = map[string]cost{"copying": c.command(b, c.apply(dir)...)}
	if n, err := copied.CountDocuments(b.Context(), bson.D{}); err != nil || n != int64(c.documents) {
		b.Fatal(n, err)
	}
	return loop, verbs
}

func (c *contest) apply(dir string) []string {
	return []string{"apply", dir, "--write", "--batch", fmt.Sprint(c.batch), "--workers", fmt.Sprint(c.workers)}
}

// planned makes a plan that converts a collection.
func (c *contest) planned(b *testing.B, dir, name string, changes ...func(*plan.Plan)) {
	b.Helper()
	command(b, c.server, "plan", dir, "--db", c.db.Name(), "--collection", name).want(b, failure.ExitOK)
	changePlan(b, dir, append(changes, convertFields("javaLegacy"), accepted)...)
}

// command runs a command, and returns what its last pass takes.
func (c *contest) command(b *testing.B, args ...string) cost {
	b.Helper()
	var out bytes.Buffer
	log := &passes{tb: b}
	if code := cli.Run(b.Context(), append(args, "--uri", c.server.URI(), "--log-format", "json"), &out, log); code != failure.ExitOK {
		b.Fatalf("exit code %d\n%s%s", code, &out, &log.text)
	}
	return log.last
}

// passes is a log in JSON, which tells when passes begin and end.
type passes struct {
	tb    testing.TB
	mu    sync.Mutex
	text  bytes.Buffer
	begin cost
	last  cost // of the last one
}

func (p *passes) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var is struct{ Msg string }
	if json.Unmarshal(line, &is) == nil && strings.HasSuffix(is.Msg, " ended") {
		p.last = p.begin.since(p.tb)
	} else {
		p.begin = now(p.tb)
	}
	return p.text.Write(line)
}

// readLoop reads and decodes a collection.
func (c *contest) readLoop(b *testing.B, coll *mongo.Collection) {
	b.Helper()
	cur, err := coll.Find(b.Context(), bson.D{}, options.Find().SetBatchSize(int32(c.batch)))
	if err != nil {
		b.Fatal(err)
	}
	for cur.Next(b.Context()) {
		var doc numberedDocument
		if err := bson.Unmarshal(cur.Current, &doc); err != nil {
			b.Fatal(err)
		}
	}
	if err := cur.Err(); err != nil {
		b.Fatal(err)
	}
}

type numberedDocument struct {
	ID   int32       `bson:"_id"`
	UUID bson.Binary `bson:"id"`
}

// inBatches calls write with batches of what of returns for the documents of a collection, as many at once as there are
// workers.
func inBatches[T any](b *testing.B, c *contest, coll *mongo.Collection, of func(doc bson.Raw) (T, error), write func(batch []T) error) {
	b.Helper()
	cur, err := coll.Find(b.Context(), bson.D{}, options.Find().SetBatchSize(int32(c.batch)))
	if err != nil {
		b.Fatal(err)
	}
	waiting := make(chan []T)
	var writing sync.WaitGroup
	for range c.workers {
		writing.Go(func() {
			for batch := range waiting {
				if err := write(batch); err != nil {
					b.Error(err)
				}
			}
		})
	}
	var batch []T
	for cur.Next(b.Context()) {
		t, err := of(cur.Current)
		if err != nil {
			b.Fatal(err)
		}
		if batch = append(batch, t); len(batch) == c.batch {
			waiting <- batch
			batch = nil
		}
	}
	if len(batch) > 0 {
		waiting <- batch
	}
	close(waiting)
	writing.Wait()
	if err := cur.Err(); err != nil {
		b.Fatal(err)
	}
}

// standard returns a UUID that is stored in javaLegacy, converted.
func standard(v bson.Binary) (bson.Binary, error) {
	u, err := uuidrep.AsWithRepresentation[uuid.UUID](v, uuidrep.JavaLegacy)
	return uuidrep.NewBinary(u), err
}

// convertLoop converts one field in place without conditions.
func (c *contest) convertLoop(b *testing.B, coll *mongo.Collection) {
	b.Helper()
	inBatches(b, c, coll, func(raw bson.Raw) (mongo.WriteModel, error) {
		var doc numberedDocument
		if err := bson.Unmarshal(raw, &doc); err != nil {
			return nil, err
		}
		fresh, err := standard(doc.UUID)
		return mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: doc.ID}}).
			SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: fresh}}}}), err
	}, func(models []mongo.WriteModel) error {
		_, err := coll.BulkWrite(b.Context(), models, options.BulkWrite().SetOrdered(false))
		return err
	})
}

// copyLoop copies a collection, and compares nothing.
func (c *contest) copyLoop(b *testing.B, source, copied *mongo.Collection) {
	b.Helper()
	inBatches(b, c, source, func(raw bson.Raw) (doc bson.D, err error) {
		if err := bson.Unmarshal(raw, &doc); err != nil {
			return nil, err
		}
		for i, e := range doc {
			if e.Key == "_id" || e.Key == "id" {
				if doc[i].Value, err = standard(e.Value.(bson.Binary)); err != nil {
					return nil, err
				}
			}
		}
		return doc, nil
	}, func(docs []bson.D) error {
		_, err := copied.InsertMany(b.Context(), docs, options.InsertMany().SetOrdered(false))
		return err
	})
}

// BenchmarkPeak reports the peak of the memory and the processor time of each verb, which is a process of its own, beside a
// server that answers from memory.
func BenchmarkPeak(b *testing.B) {
	s := startWeightless(b, *peakDocuments, 0)
	c := &contest{s, dial(b, string(s)).Database("speed"), *peakDocuments, 1000, 1, nil}
	numbered, copied := filepath.Join(b.TempDir(), "numbered.d"), filepath.Join(b.TempDir(), "copy.d")
	for _, verb := range []struct {
		name   string
		args   []string
		change func()
	}{
		{"plan", []string{"plan", numbered, "--db", c.db.Name(), "--collection", "numbered"}, func() { changePlan(b, numbered, convertFields("javaLegacy"), accepted) }},
		{"apply", []string{"apply", numbered, "--write"}, nil},
		{"verify", []string{"verify", numbered}, nil},
		{"undo", []string{"undo", numbered, "--write"}, nil},
		{"plan-mixed", []string{"plan", filepath.Join(b.TempDir(), "mixed.d"), "--db", c.db.Name(), "--collection", "mixed"}, nil}, // looks for duplicates
		{"plan-ids", []string{"plan", copied, "--db", c.db.Name(), "--collection", "source"}, func() { changePlan(b, copied, copiedInto("source", "copy"), convertFields("javaLegacy"), accepted) }},
		{"copy", []string{"apply", copied, "--write"}, nil},
		{"verify-copy", []string{"verify", copied}, nil},
	} {
		exe, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(exe, append(verb.args, "--uri", s.URI())...)
		cmd.Env = append(os.Environ(), asCommand+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		is := cmd.ProcessState
		b.ReportMetric((is.UserTime() + is.SystemTime()).Seconds(), verb.name+"-cpu-s")
		b.ReportMetric(float64(is.SysUsage().(*syscall.Rusage).Maxrss)/1024, verb.name+"-MiB")
		b.Log(verb.name, is.UserTime()+is.SystemTime(), is.SysUsage().(*syscall.Rusage).Maxrss/1024, "MiB")
		if verb.change != nil {
			verb.change()
		}
	}
}
