// Command table turns the output of cmd/run into medians and ratios, as Markdown.
//
//	go run ./bench/cmd/table bench.txt
//
// Each row compares one implementation of a task with the base: the first implementation in -base
// that has the task, or else the first implementation of the task. The ratio is how many times as
// fast as the base it is. The range of the ratio is over the rounds, each compared with the same
// round of the base.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	base := flag.String("base", "usual,google-pool,driver,gofrs", "the implementations to compare with, the first that a work has")
	flag.Parse()
	in := io.Reader(os.Stdin)
	if flag.NArg() > 0 {
		f, err := os.Open(flag.Arg(0))
		if err != nil {
			fmt.Fprintln(os.Stderr, "table:", err)
			os.Exit(1)
		}
		defer f.Close()
		in = f
	}
	works, err := read(in)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	print(os.Stdout, works, strings.Split(*base, ","))
}

// work is a task that several implementations do.
type work struct {
	name  string
	impls []*result
}

// result holds the figures of one implementation, one per round. Only some implementations report
// extras.
type result struct {
	name              string
	ns, bytes, allocs []float64
	extras            []string // of the last round
}

// read parses Go's benchmark format.
func read(r io.Reader) ([]*work, error) {
	var works []*work
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, implName, ok := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "/impl=")
		if !ok {
			return nil, fmt.Errorf("no implementation in %q", fields[0])
		}
		if dash := strings.LastIndexByte(implName, '-'); dash >= 0 {
			if procs := implName[dash+1:]; procs != "1" {
				name += " (GOMAXPROCS " + procs + ")"
			}
			implName = implName[:dash]
		}
		res := find(&works, name).find(implName)
		res.extras = nil
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", lines.Text(), err)
			}
			switch unit := fields[i+1]; unit {
			case "ns/op":
				res.ns = append(res.ns, v)
			case "B/op":
				res.bytes = append(res.bytes, v)
			case "allocs/op":
				res.allocs = append(res.allocs, v)
			default:
				res.extras = append(res.extras, fields[i]+" "+unit)
			}
		}
	}
	return works, lines.Err()
}

func find(works *[]*work, name string) *work {
	for _, w := range *works {
		if w.name == name {
			return w
		}
	}
	*works = append(*works, &work{name: name})
	return (*works)[len(*works)-1]
}

func (w *work) find(name string) *result {
	for _, r := range w.impls {
		if r.name == name {
			return r
		}
	}
	w.impls = append(w.impls, &result{name: name})
	return w.impls[len(w.impls)-1]
}

func (w *work) base(names []string) *result {
	for _, name := range names {
		for _, r := range w.impls {
			if r.name == name {
				return r
			}
		}
	}
	return w.impls[0]
}

func print(out io.Writer, works []*work, bases []string) {
	fmt.Fprintln(out, "| work | implementation | median | B/op | allocs/op | times as fast | range of the rounds |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|---|")
	for _, w := range works {
		b := w.base(bases)
		for _, r := range w.impls {
			ratio, spread := "1", ""
			if r != b {
				ratio = fmt.Sprintf("%.2f", median(b.ns)/median(r.ns))
				spread = ratios(b.ns, r.ns)
			}
			fmt.Fprintf(out, "| %s | %s | %s | %.0f | %.0f | %s | %s |\n", w.name, strings.Join(append([]string{r.name}, r.extras...), ", "),
				duration(median(r.ns)), median(r.bytes), median(r.allocs), ratio, spread)
		}
	}
}

// ratios returns the lowest and the highest ratio of two results in the same round.
func ratios(base, ns []float64) string {
	var all []float64
	for i := range min(len(base), len(ns)) {
		all = append(all, base[i]/ns[i])
	}
	return fmt.Sprintf("%.2f–%.2f", slices.Min(all), slices.Max(all))
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.1f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}
