package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestLogText(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	l := newLog(&out, logText, false, c.now)
	l.Message(slog.LevelWarn, "no collection yet")
	l.About("shop.orders")
	task := l.Begin(4000, "scanning", "shop.a b=\"c\"\n")
	task.Add(1000)
	task.Add(500)
	c.pass(90 * time.Second)
	l.Beat()
	task.Done()
	task.Done()
	l.Begin(-1, "restoring", "shop.x").Done()
	l.Message(slog.LevelError, "run 'it'\\''s': \"$MONGODB_URI\"\nand\x1b more")
	want := `2026-01-02T03:04:05.000Z WARN no collection yet
2026-01-02T03:04:05.000Z INFO shop.a b="c"�: scanning total=4000
2026-01-02T03:05:35.000Z INFO shop.a b="c"�: scanning documents=1500 total=4000 seconds=90
2026-01-02T03:05:35.000Z INFO shop.a b="c"�: scanning ended documents=1500 total=4000 seconds=90
2026-01-02T03:05:35.000Z INFO shop.x: restoring
2026-01-02T03:05:35.000Z INFO shop.x: restoring ended documents=0 seconds=0
2026-01-02T03:05:35.000Z ERROR shop.orders: run 'it'\''s': "$MONGODB_URI" and� more
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestLogJSON(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	l := newLog(&out, logJSON, false, c.now)
	l.About("shop.orders")
	l.Message(slog.LevelError, "two\nlines \u202e \"quoted\"")
	l.Begin(7, "converting", "shop.orders").Add(3)
	c.pass(time.Minute)
	l.Beat()
	var lines []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, m)
	}
	if len(lines) != 3 || lines[0]["msg"] != "two lines \ufffd \"quoted\"" || lines[0]["level"] != "ERROR" || lines[0]["collection"] != "shop.orders" ||
		lines[0]["time"] != "2026-01-02T03:04:05Z" {
		t.Errorf("%v", lines)
	}
	if got := lines[2]; got["documents"] != 3.0 || got["total"] != 7.0 || got["seconds"] != 60.0 || got["level"] != "INFO" {
		t.Errorf("%v", got)
	}
}

// However rarely a task reads a document, and also between two tasks, the log has a line at least
// every 30 seconds.
func TestNeverSilent(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	l := newLog(&out, logText, false, c.now)
	last, lines := c.now(), 0
	run := func(d time.Duration) {
		for end := c.now().Add(d); c.now().Before(end); {
			c.pass(tick)
			l.Beat()
			if out.Len() > 0 {
				last, lines = c.now(), lines+strings.Count(out.String(), "\n")
				out.Reset()
			}
			if gap := c.now().Sub(last); gap > 30*time.Second {
				t.Fatalf("no line for %v", gap)
			}
		}
	}
	run(5 * time.Minute) // connecting
	task := l.Begin(-1, "scanning", "a.b")
	run(5 * time.Minute)
	task.Done()
	run(5 * time.Minute)
	if most := int(15*time.Minute/(20*time.Second)) + 2; lines > most {
		t.Errorf("%d lines in 15 minutes", lines)
	}
}

func TestQuiet(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	l := newLog(&out, logText, true, c.now)
	task := l.Begin(1, "scanning", "a.b")
	c.pass(time.Hour)
	l.Beat()
	task.Done()
	if out.Len() > 0 {
		t.Error(out.String())
	}
	l.Message(slog.LevelWarn, "w")
	l.Message(slog.LevelError, "e")
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Error(out.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A log that cannot be written does not stop the command.
func TestBrokenPipe(t *testing.T) {
	l := newLog(brokenPipe{}, logJSON, false, time.Now)
	l.Start()
	l.Begin(1, "scanning", "a.b").Done()
	l.Message(slog.LevelError, "e")
	l.Stop()
	l.Stop()
}

// Lines that several goroutines write are whole.
func TestConcurrent(t *testing.T) {
	var out bytes.Buffer
	c := newClock()
	l := newLog(&out, logText, false, c.now)
	task := l.Begin(-1, "scanning", "a.b")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				task.Add(1)
				c.pass(time.Second)
				l.Beat()
				l.Message(slog.LevelWarn, "w")
				l.About("c.d")
			}
		})
	}
	wg.Wait()
	task.Done()
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "2026-01-02T03:") || strings.Count(line, "2026") != 1 {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(out.String(), "a.b: scanning ended documents=400") {
		t.Error(out.String())
	}
}
