// Command plot draws how the time for a document grows with its fields, its depth and its arrays, as an SVG image, from
// the output of cmd/run for the cases WholeGrowth.
//
//	go run ./bench/cmd/plot growth.txt > docs/growth.svg
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	in := io.Reader(os.Stdin)
	if len(os.Args) > 1 {
		f, err := os.Open(os.Args[1])
		if err != nil {
			fail(err)
		}
		defer f.Close()
		in = f
	}
	figures, err := read(in)
	if err != nil {
		fail(err)
	}
	if err := draw(os.Stdout, figures); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "plot:", err)
	os.Exit(1)
}

// A series is one line of a panel.
type series struct {
	work string // Marshal or Unmarshal
	impl string
}

// figures holds the times in nanoseconds by panel, series and size, one for each round.
type figures map[string]map[series]map[int][]float64

// read parses lines such as
//
//	BenchmarkWholeGrowth/Marshal/fields8/impl=bsonids-1  12000  312.0 ns/op  ...
func read(r io.Reader) (figures, error) {
	all := figures{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "BenchmarkWholeGrowth/") {
			continue
		}
		parts := strings.Split(words[0], "/")
		if len(parts) != 4 || words[3] != "ns/op" {
			return nil, fmt.Errorf("not a case of WholeGrowth: %q", lines.Text())
		}
		digits := strings.IndexAny(parts[2], "0123456789")
		impl, _, _ := strings.Cut(strings.TrimPrefix(parts[3], "impl="), "-")
		ns, err := strconv.ParseFloat(words[2], 64)
		if digits < 1 || err != nil {
			return nil, fmt.Errorf("not a case of WholeGrowth: %q", lines.Text())
		}
		n, err := strconv.Atoi(parts[2][digits:])
		if err != nil {
			return nil, fmt.Errorf("not a case of WholeGrowth: %q", lines.Text())
		}
		panel, s := parts[2][:digits], series{parts[1], impl}
		if all[panel] == nil {
			all[panel] = map[series]map[int][]float64{}
		}
		if all[panel][s] == nil {
			all[panel][s] = map[int][]float64{}
		}
		all[panel][s][n] = append(all[panel][s][n], ns)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no case of WholeGrowth in the input")
	}
	return all, nil
}

// The measures of the image, in pixels.
const (
	panelWidth  = 250
	panelHeight = 230
	left        = 52 // of the panel, for the scale
	top         = 44
	bottom      = 74 // for the scale and the legend
	gap         = 18
)

var (
	panels = []struct{ name, title string }{
		{"fields", "fields of a struct"}, {"depth", "levels of documents"}, {"elements", "elements of an array"},
	}
	lines = []struct {
		series
		title, color, dash string
	}{
		{series{"Unmarshal", "usual"}, "driver, Unmarshal", "#d1495b", "6 4"},
		{series{"Marshal", "usual"}, "driver, Marshal", "#e8924a", "6 4"},
		{series{"Unmarshal", "bsonids"}, "bsonids, Unmarshal", "#2a6f97", ""},
		{series{"Marshal", "bsonids"}, "bsonids, Marshal", "#4f9d69", ""},
	}
)

// draw writes the image. Both scales of a panel are linear and begin at 0.
func draw(out io.Writer, all figures) error {
	w := bufio.NewWriter(out)
	width := len(panels)*(left+panelWidth+gap) + gap
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, top+panelHeight+bottom)
	fmt.Fprintln(w, "<title>Time for a document, in microseconds, by its size</title>")
	fmt.Fprintf(w, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, top+panelHeight+bottom)
	for i, p := range panels {
		drawPanel(w, i*(left+panelWidth+gap)+left, p.title, all[p.name])
	}
	for i, l := range lines {
		x, y := left+i*200, top+panelHeight+58
		fmt.Fprintf(w, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", x, y-4, x+28, y-4, l.color, l.dash)
		fmt.Fprintf(w, `<text x="%d" y="%d" fill="#333333">%s</text>`+"\n", x+34, y, l.title)
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

func drawPanel(w io.Writer, x0 int, title string, data map[series]map[int][]float64) {
	maxN, maxTime := 0, 0.0
	for _, s := range data {
		for n, ns := range s {
			maxN, maxTime = max(maxN, n), max(maxTime, median(ns)/1e3)
		}
	}
	if maxN == 0 {
		return
	}
	step := niceStep(maxTime)
	maxTime = math.Ceil(maxTime/step) * step
	x := func(n int) float64 { return float64(x0) + float64(n)/float64(maxN)*panelWidth }
	y := func(us float64) float64 { return top + panelHeight - us/maxTime*panelHeight }

	fmt.Fprintf(w, `<text x="%d" y="%d" fill="#111111" font-weight="bold">%s</text>`+"\n", x0, top-22, title)
	for v := 0.0; v <= maxTime+step/2; v += step {
		fmt.Fprintf(w, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#dddddd"/>`+"\n", x0, y(v), x0+panelWidth, y(v))
		fmt.Fprintf(w, `<text x="%d" y="%.1f" text-anchor="end" fill="#555555">%s µs</text>`+"\n", x0-6, y(v)+4, strconv.FormatFloat(v, 'g', -1, 64))
	}
	for n := 0; n <= maxN; n += maxN / 4 {
		fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" fill="#555555">%d</text>`+"\n", x(n), top+panelHeight+18, n)
	}
	for _, l := range lines {
		var points []string
		for _, n := range slices.Sorted(maps.Keys(data[l.series])) {
			us := median(data[l.series][n]) / 1e3
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(n), y(us)))
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x(n), y(us), l.color)
		}
		fmt.Fprintf(w, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(points, " "), l.color, l.dash)
	}
}

// niceStep returns 1, 2 or 5 times a power of ten, so that about five steps reach top.
func niceStep(top float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, f := range []float64{1, 2, 5, 10} {
		if top/(step*f) <= 6 {
			return step * f
		}
	}
	return step * 10
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
