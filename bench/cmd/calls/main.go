// Command calls measures whole calls of a client: the processor time of the client for a document, its allocations and
// their bytes. It prints a table in Markdown.
//
//	go run ./bench/cmd/calls
//
// The server is a process of its own on loopback, which answers from memory and compares what it receives with the driver's
// own encoding. Every round makes all calls, every second one in reverse order, and the figures are the medians of the rounds.
//
// With a connection string, it measures inserts and reads of orders on that server instead, and also prints the documents
// a second:
//
//	go run ./bench/cmd/calls -uri mongodb://localhost:27017/ -documents 100000 -rounds 3
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/bench"
)

func main() {
	rounds := flag.Int("rounds", 15, "how many times each call is measured")
	limit := flag.Duration("for", 10*time.Minute, "begin no round that would end after this time")
	only := flag.String("only", "", "a regular expression that the row and the column, such as InsertOne, order/floor, must match")
	uri := flag.String("uri", "", "insert and read orders on the server that has this connection string")
	documents := flag.Int("documents", 100_000, "the number of orders, with -uri")
	procs := flag.Int("procs", 1, "the GOMAXPROCS of the client")
	cpu := flag.String("cpuprofile", "", "write a profile of the processor time to this file")
	allocations := flag.String("memprofile", "", "write a profile of all allocations to this file; the times are of no use then")
	serve := flag.Bool("serve", false, "be the server")
	flag.Parse()
	if *serve {
		exit(beServer())
		return
	}
	stop, err := startProfiles(*cpu, *allocations)
	exit(err)
	err = run(*rounds, *limit, *only, *uri, *documents, *procs)
	stop()
	exit(err)
}

// exit ends the process if err is an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "calls:", err)
		os.Exit(1)
	}
}

func run(rounds int, limit time.Duration, only, uri string, documents, procs int) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	connect := func() ([]bench.Call, func(), error) { return bench.OrderCalls(uri, documents) }
	if uri == "" {
		served, stop, err := startServer()
		if err != nil {
			return err
		}
		defer stop()
		connect = func() ([]bench.Call, func(), error) { return bench.Calls(served) }
	}
	runtime.GOMAXPROCS(procs)
	calls, disconnect, err := connect()
	if err != nil {
		return err
	}
	defer disconnect()
	calls = slices.DeleteFunc(calls, func(c bench.Call) bool { return !match.MatchString(c.Row + "/" + c.Column) })
	figures := make([][]figure, len(calls))
	start := time.Now()
	for round := range rounds {
		if passed := time.Since(start); round > 0 && passed+passed/time.Duration(round) > limit {
			fmt.Fprintf(os.Stderr, "the time is over: the figures are of %d rounds\n", round)
			break
		}
		fmt.Fprintf(os.Stderr, "round %d of %d, %s\n", round+1, rounds, time.Now().Format(time.TimeOnly))
		for i := range calls {
			if round%2 == 1 && uri == "" { // on a server, a read needs what was inserted
				i = len(calls) - 1 - i
			}
			c := calls[i]
			if c.Run == nil {
				continue
			}
			repeat := 1
			if uri == "" {
				repeat = min(atLeastCalls, (atLeast+c.Documents-1)/c.Documents)
			}
			f, err := measure(c, repeat, round == 0 && uri == "")
			if err != nil {
				return fmt.Errorf("%s/%s: %w", c.Row, c.Column, err)
			}
			figures[i] = append(figures[i], f)
		}
	}
	print(os.Stdout, calls, figures, uri != "")
	return nil
}

// startServer runs this program as the server, and returns its connection string. The server ends when its input does.
func startServer() (uri string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, "-serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the server did not start: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

func beServer() error {
	uri, err := bench.ServeCalls()
	if err != nil {
		return err
	}
	fmt.Println(uri)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A figure is what one document of a call takes.
type figure struct {
	cpu, wall     time.Duration
	allocs, bytes float64
}

// atLeast is how many documents are measured at once, and how many calls, whichever is less work.
const (
	atLeast      = 10_000
	atLeastCalls = 1000
)

// measure makes a call so many times. With check, it makes the call once before that, and checks what was read.
func measure(c bench.Call, calls int, check bool) (figure, error) {
	ctx := context.Background()
	if c.Prepare != nil {
		if err := c.Prepare(ctx); err != nil {
			return figure{}, err
		}
	}
	if check {
		last, err := c.Run(ctx)
		if err == nil {
			err = c.Check(last)
		}
		if err != nil {
			return figure{}, err
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), bench.CPUTime()
	for range calls {
		if _, err := c.Run(ctx); err != nil {
			return figure{}, err
		}
	}
	cpu, wall := bench.CPUTime()-cpu, time.Since(start)
	runtime.ReadMemStats(&after)
	n := calls * c.Documents
	return figure{
		cpu / time.Duration(n), wall / time.Duration(n),
		float64(after.Mallocs-before.Mallocs) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}
