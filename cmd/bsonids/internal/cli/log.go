package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// The formats of a log.
const (
	logText = "text" // time, level, collection, message, and attributes as key=value
	logJSON = "json" // an object for each line
)

const (
	// silence is the time after which [log.Beat] writes a line.
	silence = 25 * time.Second
	// tick is the interval at which a running command calls [log.Beat].
	tick = 2 * time.Second
)

// log writes log lines. It is safe for concurrent use.
type log struct {
	w     io.Writer
	json  *slog.JSONHandler // nil for text
	level slog.Level        // lines of lower levels are not written
	now   func() time.Time
	stop  chan struct{}

	mu         sync.Mutex
	start      time.Time // of the command
	last       time.Time // of the last line
	collection string    // that the command is about, or ""
	task       *logTask  // the last task that was begun, or nil
}

// newLog returns a log that writes to w in the given format, logText or logJSON. A quiet log has only
// warnings and errors.
func newLog(w io.Writer, format string, quiet bool, now func() time.Time) *log {
	t := now()
	l := &log{w: w, level: slog.LevelInfo, now: now, start: t, last: t}
	if quiet {
		l.level = slog.LevelWarn
	}
	if format == logJSON {
		l.json = slog.NewJSONHandler(w, nil)
	}
	return l
}

// Start calls [log.Beat] periodically until [log.Stop].
func (l *log) Start() {
	stop := make(chan struct{})
	l.stop = stop
	go func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				l.Beat()
			}
		}
	}()
}

// Stop ends what Start began, if it was called.
func (l *log) Stop() {
	if l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
}

// About sets the collection of the lines that are not about a [logTask].
func (l *log) About(collection string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collection = collection
}

// Message writes a warning or an error.
func (l *log) Message(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(level, text, l.collection)
}

// Beat writes what the command is doing if the log had no line for a while.
func (l *log) Beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch now := l.now(); {
	case now.Sub(l.last) < silence:
	case l.task != nil:
		l.write(slog.LevelInfo, l.task.doing, l.task.collection, l.task.attrs(now)...)
	default:
		l.write(slog.LevelInfo, "running", l.collection, elapsed(now.Sub(l.start)))
	}
}

// write writes a line. The caller holds l.mu. An error in writing the log must not stop the work.
func (l *log) write(level slog.Level, text, collection string, attrs ...slog.Attr) {
	if level < l.level {
		return
	}
	l.last = l.now()
	text, collection = terminal.Line(text), terminal.Cell(collection)
	if l.json != nil {
		r := slog.NewRecord(l.last.UTC(), level, text, 0)
		if collection != "" {
			r.AddAttrs(slog.String("collection", collection))
		}
		r.AddAttrs(attrs...)
		_ = l.json.Handle(context.Background(), r)
		return
	}
	// Unlike slog.TextHandler, this does not quote the message, so that a user can copy a command in it.
	line := fmt.Sprintf("%s %s ", l.last.UTC().Format("2006-01-02T15:04:05.000Z07:00"), level)
	if collection != "" {
		line += collection + ": "
	}
	line += text
	for _, a := range attrs {
		line += " " + a.String()
	}
	_, _ = io.WriteString(l.w, line+"\n") // one call of Write
}

// logTask is a part of the work of a command that reads documents.
type logTask struct {
	log               *log
	doing, collection string
	total             int64
	start             time.Time
	documents         atomic.Int64
}

// Begin writes that a task begins. doing says what it does, such as "scanning". total is the number
// of documents to read, or -1 if it is not known.
func (l *log) Begin(total int64, doing, collection string) *logTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.task = &logTask{log: l, doing: doing, collection: collection, total: total, start: l.now()}
	var attrs []slog.Attr
	if total >= 0 {
		attrs = append(attrs, slog.Int64("total", total))
	}
	l.write(slog.LevelInfo, doing, collection, attrs...)
	return l.task
}

// Add adds n documents.
func (t *logTask) Add(n int) { t.documents.Add(int64(n)) }

// Done writes that the task ended. It may be called more than once.
func (t *logTask) Done() {
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.task == t {
		l.write(slog.LevelInfo, t.doing+" ended", t.collection, t.attrs(l.now())...)
		l.task = nil
	}
}

func (t *logTask) attrs(now time.Time) []slog.Attr {
	attrs := []slog.Attr{slog.Int64("documents", t.documents.Load())}
	if t.total >= 0 {
		attrs = append(attrs, slog.Int64("total", t.total))
	}
	return append(attrs, elapsed(now.Sub(t.start)))
}

// elapsed returns a duration in seconds.
func elapsed(d time.Duration) slog.Attr {
	return slog.Float64("seconds", d.Round(time.Millisecond).Seconds())
}
