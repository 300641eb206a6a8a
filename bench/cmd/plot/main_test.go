package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const sample = `goos: linux
BenchmarkWholeGrowth/Marshal/fields8/impl=usual-1	4000	1000 ns/op	5 B/op	1 allocs/op
BenchmarkWholeGrowth/Marshal/fields8/impl=usual-1	4000	3000 ns/op	5 B/op	1 allocs/op
BenchmarkWholeGrowth/Marshal/fields8/impl=usual-1	4000	2000 ns/op	5 B/op	1 allocs/op
BenchmarkWholeGrowth/Marshal/fields16/impl=usual-1	4000	4000 ns/op	5 B/op	1 allocs/op
BenchmarkWholeInsert/Order/impl=usual-1	4000	4000 ns/op	5 B/op	1 allocs/op
`

func TestDraw(t *testing.T) {
	all, err := read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := draw(&buf, all); err != nil {
		t.Fatal(err)
	}
	// 2 µs of 4 is the middle of the panel, and 8 of 16.
	if want := `<polyline points="177.0,159.0 302.0,44.0"`; !strings.Contains(buf.String(), want) {
		t.Errorf("no %s in %s", want, buf.String())
	}
	for d := xml.NewDecoder(&buf); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for _, in := range []string{
		"", "text\n", "BenchmarkWholeGrowth/Marshal/fields8-1 1 1 ns/op\n", "BenchmarkWholeGrowth/Marshal/fields/impl=usual-1 1 1 ns/op\n",
		"BenchmarkWholeGrowth/Marshal/8/impl=usual-1 1 1 ns/op\n", "BenchmarkWholeGrowth/Marshal/fields8/impl=usual-1 1 x ns/op\n",
		"BenchmarkWholeGrowth/Marshal/fields8/impl=usual-1 1 1 B/op\n",
	} {
		if _, err := read(strings.NewReader(in)); err == nil {
			t.Errorf("%q: no error", in)
		}
	}
}
