// Command run measures every case of package bench in interleaved rounds and prints Go's benchmark
// format.
//
//	go run ./bench/cmd/run -rounds 10 > bench.txt
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"testing"

	"github.com/bsonids/bsonids/bench"
)

func main() {
	testing.Init()
	rounds := flag.Int("rounds", 10, "how many times each case is measured")
	only := flag.String("only", "", "a regular expression that Work/impl=Impl must match")
	cpu := flag.Bool("cpu", false, "print the processor time, for a machine that others use too; needs a -test.benchtime such as 20000x, so that the collection before each benchmark counts little")
	list := flag.Bool("list", false, "print the names of the cases and stop")
	flag.Parse()

	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(2)
	}
	cases := bench.All()
	fmt.Printf("goos: %s\ngoarch: %s\npkg: github.com/bsonids/bsonids/bench\n", runtime.GOOS, runtime.GOARCH)
	failed := false
	for round := range *rounds {
		for i := range cases {
			// Every second round runs in reverse order, so that a slow drift of the machine affects
			// all cases alike.
			c := cases[i]
			if round%2 == 1 {
				c = cases[len(cases)-1-i]
			}
			name := c.Work + "/impl=" + c.Impl
			if !match.MatchString(name) {
				continue
			}
			if *list {
				if round == 0 {
					fmt.Println(name)
				}
				continue
			}
			procs := max(c.Procs, 1)
			old := runtime.GOMAXPROCS(procs)
			runtime.GC()
			before := bench.CPUTime()
			r := testing.Benchmark(c.Run)
			if *cpu && r.N > 0 {
				r.T = bench.CPUTime() - before
			}
			runtime.GOMAXPROCS(old)
			if r.N == 0 {
				fmt.Fprintln(os.Stderr, "run:", name, "failed")
				failed = true
				continue
			}
			fmt.Printf("Benchmark%s-%d\t%s\t%s\n", name, procs, r.String(), r.MemString())
		}
	}
	if failed {
		os.Exit(1)
	}
}
