package main

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	// 50 documents are two full batches and a partial one.
	if err := run(ctx, &out, io.Discard, config{documents: 50, batch: 20, rounds: 2}); err != nil {
		t.Fatal(err)
	}
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(out.String()), "\n")[2:]
	if len(rows) != len(all) {
		t.Fatalf("%d rows for %d kinds:\n%s", len(rows), len(all), &out)
	}
	for i, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 6 || cells[0] != all[i].name {
			t.Fatalf("row %d: %q", i, row)
		}
		for _, n := range []int{1, 2, 4, 5} {
			if f, err := strconv.ParseFloat(cells[n], 64); err != nil || f <= 0 {
				t.Errorf("row %d, cell %d: %q, %v", i, n, cells[n], err)
			}
		}
	}
}

func TestRunFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	if err := run(ctx, &out, io.Discard, config{documents: 50, batch: 20, rounds: 1}); err == nil || out.Len() != 0 {
		t.Errorf("cancelled: %v, %q", err, &out)
	}
	for _, uri := range []string{"http://localhost", "mongodb://"} {
		if err := run(context.Background(), &out, io.Discard, config{uri: uri, documents: 1, batch: 1, rounds: 1}); err == nil {
			t.Errorf("%s: no error", uri)
		}
	}
}
