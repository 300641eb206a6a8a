package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bsonids/bsonids/bench"
)

var titles = map[string]string{
	"driver": "driver, `bson.Binary`", "usual": "hand-written codec", "bsonids": "bsonids", "autoid": "with `autoid`", "floor": "floor",
}

// print prints a line for each row of calls: in each column, the microseconds of processor time, the allocations and the
// bytes of a document, and how many times as fast bsonids is as the driver and as the hand-written codec.
func print(out io.Writer, calls []bench.Call, figures [][]figure, rates bool) {
	rows := map[string]map[string][]figure{}
	var names []string
	for i, c := range calls {
		if rows[c.Row] == nil {
			rows[c.Row] = map[string][]figure{}
			names = append(names, c.Row)
		}
		rows[c.Row][c.Column] = figures[i]
	}
	for _, c := range calls {
		if c.SameAs != "" {
			rows[c.Row][c.Column] = rows[c.SameAs][c.Column]
		}
	}
	fmt.Fprint(out, "| call, document |")
	for _, column := range bench.CallColumns {
		fmt.Fprintf(out, " %s |", titles[column])
	}
	fmt.Fprint(out, " × driver | × hand-written |\n|---|")
	for range len(bench.CallColumns) + 2 {
		fmt.Fprint(out, "---:|")
	}
	fmt.Fprintln(out)
	for _, name := range names {
		row := rows[name]
		fmt.Fprintf(out, "| %s |", name)
		for _, column := range bench.CallColumns {
			fmt.Fprintf(out, " %s |", cell(row[column], rates))
		}
		fmt.Fprintf(out, " %s | %s |\n", ratio(row["driver"], row["bsonids"]), ratio(row["usual"], row["bsonids"]))
	}
}

func cell(rounds []figure, rates bool) string {
	if len(rounds) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s µs, %.0f, %.0f", micro(median(rounds, cpuOf)), median(rounds, func(f figure) float64 { return f.allocs }),
		median(rounds, func(f figure) float64 { return f.bytes }))
	if rates {
		text += fmt.Sprintf("; %.0f/s", float64(time.Second)/median(rounds, func(f figure) float64 { return float64(f.wall) }))
	}
	return text
}

func cpuOf(f figure) float64 { return float64(f.cpu) }

// micro returns a duration in nanoseconds as microseconds, with two digits or more.
func micro(ns float64) string {
	if ns < 10_000 {
		return fmt.Sprintf("%.2f", ns/1000)
	}
	return fmt.Sprintf("%.1f", ns/1000)
}

// ratio returns the median, over the rounds, of how many times as fast b is as a.
func ratio(a, b []figure) string {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, float64(a[i].cpu)/float64(b[i].cpu))
	}
	if len(ratios) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", medianOf(ratios))
}

func median(rounds []figure, of func(figure) float64) float64 {
	all := make([]float64, len(rounds))
	for i, f := range rounds {
		all[i] = of(f)
	}
	return medianOf(all)
}

func medianOf(all []float64) float64 {
	slices.Sort(all)
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[len(all)/2]
}
