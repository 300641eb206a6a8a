// Command measuredump measures the conversion of a BSON file beside cat of the same file, and the
// memory of the command with few and with many documents. It prints a table.
//
//	go run ./internal/measuredump -dir DIR
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", os.TempDir(), "directory for the files")
	few := flag.Int("few", 10_000, "documents of the small file")
	many := flag.Int("many", 3_000_000, "documents of the large file")
	rounds := flag.Int("rounds", 3, "runs of each command, of which the median counts")
	flag.Parse()
	if err := run(*dir, []int{*few, *many}, *rounds); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, counts []int, rounds int) error {
	work, err := os.MkdirTemp(dir, "measuredump-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	command := filepath.Join(work, "bsonids")
	if out, err := exec.Command("go", "build", "-o", command, "github.com/bsonids/bsonids/cmd/bsonids").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	fmt.Println("| documents | MB | command | seconds | MB/s | CPU seconds | MB/s a core | peak MiB |")
	fmt.Println("|---:|---:|---|---:|---:|---:|---:|---:|")
	for _, n := range counts {
		file := filepath.Join(work, fmt.Sprint(n), "shop", "orders.bson")
		if err := generate(file, n); err != nil {
			return err
		}
		m := filepath.Join(work, fmt.Sprint(n)+".d")
		for _, c := range []struct {
			name string
			args []string
			made string
		}{
			{"cat FILE >COPY", []string{"sh", "-c", `cat "$1" >"$2"`, "sh", file, file + ".cat"}, file + ".cat"},
			{"scan --dump FILE", []string{command, "scan", "--dump", file}, ""},
			{"plan --dump FILE (the deciding pass)", []string{command, "plan", m, "--dump", file}, m},
			{"apply --out (the writing pass)", []string{command, "apply", m, "--out", file + ".out.bson"}, file + ".out.bson"},
			{"verify", []string{command, "verify", m}, ""},
		} {
			if err := measure(n, file, c.name, c.args, c.made, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs a command several times and prints the median.
func measure(n int, file, name string, args []string, made string, rounds int) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	mb := float64(info.Size()) / 1e6
	type result struct {
		took, cpu time.Duration
		rss       int64
	}
	var results []result
	for range rounds {
		if made != "" {
			if err := os.RemoveAll(made); err != nil {
				return err
			}
		}
		debug.FreeOSMemory() // the peak of a child begins with the memory of this process
		cmd := exec.Command(args[0], args[1:]...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, out.Bytes())
		}
		results = append(results, result{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), peak(cmd.ProcessState)})
	}
	slices.SortFunc(results, func(a, b result) int { return int(a.took - b.took) })
	r := results[len(results)/2]
	fmt.Printf("| %d | %.0f | %s | %.2f | %.0f | %.2f | %.0f | %d |\n", n, mb, name, r.took.Seconds(), mb/r.took.Seconds(), r.cpu.Seconds(), mb/r.cpu.Seconds(), r.rss>>20)
	return nil
}

// generate writes a file of n orders with four UUIDs each, about 350 bytes.
func generate(path string, n int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	id := func() bson.Binary {
		b := make([]byte, 16)
		binary.BigEndian.PutUint64(b, r.Uint64())
		binary.BigEndian.PutUint64(b[8:], r.Uint64())
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80 // version 4
		slices.Reverse(b[:8])                       // javaLegacy
		slices.Reverse(b[8:])
		return bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: b}
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id()}, {Key: "customer", Value: id()}, {Key: "name", Value: "Ada Lovelace"}, {Key: "n", Value: int32(i)},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 3.5}}, bson.D{{Key: "sku", Value: id()}, {Key: "price", Value: 4.5}}}},
			{Key: "city", Value: "London"}, {Key: "paid", Value: true}, {Key: "note", Value: "a text of some length"}})
		if err != nil {
			return err
		}
		if _, err := w.Write(doc); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
