//go:build linux

package offline

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

var many = flag.Int("many", 1_000_000, "documents of the large file of benchmarks")

// The passes are measured over a BSON file of few documents and over one of many: by the time of the processor, and
// by the peak of the memory of the process.

// The pass of plan, which makes all decisions.
func BenchmarkSurvey(b *testing.B) {
	measure(b, func(b *testing.B, path string, _ Job) {
		if _, _, err := Survey(b.Context(), reading(b, path)); err != nil {
			b.Fatal(err)
		}
	})
}

// The pass of apply, which writes.
func BenchmarkConvert(b *testing.B) {
	measure(b, func(b *testing.B, path string, j Job) {
		out := filepath.Join(b.TempDir(), "out.bson")
		if _, _, err := j.run(b.Context(), b, out); err != nil {
			b.Fatal(err)
		}
		if err := os.Remove(out); err != nil {
			b.Fatal(err)
		}
	})
}

// The pass of verify, here over a dry conversion of the dump and the dump itself.
func BenchmarkVerify(b *testing.B) {
	measure(b, func(b *testing.B, path string, j Job) {
		if v, err := Verify(b.Context(), j, open(b, path)); err != nil || v.Wrong != v.Documents {
			b.Fatal(err)
		}
	})
}

// measure calls pass with files of few and of many documents, and with their conversion.
func measure(b *testing.B, pass func(*testing.B, string, Job)) {
	few := filepath.Join(b.TempDir(), "shop", "orders.bson")
	generate(b, few, 10_000)
	collections := job(b, few, conversion(b, "javaLegacy"), nil).Collections
	for _, n := range []int{10_000, *many} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "shop", "orders.bson")
			size := generate(b, path, n)
			j := Job{Collections: collections, Temp: b.TempDir(), Progress: func(int) {}, Digest: digestOf(b, path)}
			debug.FreeOSMemory()
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins anew
				b.Fatal(err)
			}
			begin := processor(b)
			for b.Loop() {
				j.Input = open(b, path)
				pass(b, path, j)
			}
			b.ReportMetric(float64(b.N)*float64(size)/1e6/(processor(b)-begin), "MB/s-of-a-core")
			status, err := os.ReadFile("/proc/self/status")
			if err != nil {
				b.Fatal(err)
			}
			_, peak, _ := strings.Cut(string(status), "VmHWM:")
			kib, err := strconv.ParseFloat(strings.Fields(peak)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(kib/1024, "peak-MiB")
		})
	}
}

// processor returns how many seconds of processors the process has used.
func processor(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// digestOf returns the digest of the documents of a dump.
func digestOf(b *testing.B, path string) string {
	b.Helper()
	sum, r := digest{}, open(b, path).Reader()
	for {
		item, err := r.Next()
		if err != nil {
			return sum.sum()
		}
		if item.Kind == dump.Document {
			sum.add(item.Collection, item.Bytes)
		}
	}
}

// generate writes a file of n orders with four UUIDs each, of about 260 bytes, and returns its size.
func generate(b *testing.B, path string, n int) (size int) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	r, w := rand.New(rand.NewPCG(1, 2)), bufio.NewWriter(f)
	for i := range n {
		id := func() bson.Binary { return kindstest.Stored(v4(r, i), "javaLegacy") }
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id()}, {Key: "customer", Value: id()}, {Key: "name", Value: "Ada Lovelace"}, {Key: "n", Value: int32(i)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 3.5}}, bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 4.5}}}},
			{Key: "city", Value: "London"}, {Key: "paid", Value: true}, {Key: "note", Value: "a text of some length"}})
		if err == nil {
			_, err = w.Write(doc)
		}
		if err != nil {
			b.Fatal(err)
		}
		size += len(doc)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return size
}
