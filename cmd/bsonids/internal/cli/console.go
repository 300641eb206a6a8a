package cli

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// console holds what the commands of one command line share.
type console struct {
	out, err  io.Writer
	cmd       *cobra.Command // that runs; nil while the command line is read
	args      []string       // of cmd
	quiet     bool
	logFormat string
	log       *log // nil if messages are not written as log lines, or before the first one
	uri       string
	uriFile   string
	dump      string
	client    *mongo.Client
	output    string // the format
	retryFor  time.Duration
	recording session.Recording
	wayOn     *wayOn // nil until a command starts to write
	namespace string // the collection that all messages are about, if several are converted at once
}

// logger returns the log, or nil if stderr is a terminal and the user did not ask for log lines.
func (c *console) logger() *log {
	format := c.logFormat
	if format == "" && !terminal.Is(c.err) {
		format = logText
	}
	if c.log == nil && format != "" {
		c.log = newLog(c.err, format, c.quiet, time.Now)
	}
	return c.log
}

// complete is that of a verb whose flags and arguments need no check.
func (c *console) complete() error { return nil }

// close ends the connection and the log.
func (c *console) close() {
	if c.client != nil {
		server.Disconnect(c.client)
	}
	if c.log != nil {
		c.log.Stop()
	}
}

// Child returns a console for one of several collections that are converted at once. It shows no
// progress.
func (c *console) Child(namespace string) session.Messages {
	child := *c
	child.namespace, child.quiet = namespace, true
	return &child
}

// About sets the collection that further log lines name.
func (c *console) About(namespace string) {
	if c.namespace != "" {
		return
	}
	if l := c.logger(); l != nil {
		l.About(namespace)
	}
}

// Warn writes a warning to stderr.
func (c *console) Warn(format string, args ...any) { c.message(slog.LevelWarn, format, args...) }

// fail writes an error to stderr.
func (c *console) fail(format string, args ...any) { c.message(slog.LevelError, format, args...) }

func (c *console) message(level slog.Level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.namespace != "" {
		text = c.namespace + ": " + text
	}
	if l := c.logger(); l != nil {
		l.Message(level, text)
		return
	}
	fmt.Fprintf(c.err, "bsonids: %s\n", terminal.Line(text))
}

// Progress shows on stderr how many documents of a collection were read. total is the number of
// documents to read, or -1 if it is not known. doing says what is done, such as "scanning".
func (c *console) Progress(total int64, doing, namespace string) terminal.Progress {
	if l := c.logger(); l != nil {
		return l.Begin(total, doing, namespace)
	}
	if c.quiet {
		return terminal.NoProgress{}
	}
	return terminal.NewBar(c.err, total, doing+" "+namespace)
}

// print writes a result to stdout in the format of --output. The error is failure.ErrIncomplete unless it is complete.
func (c *console) print(r report.Result, complete bool) error {
	if c.output != formatJSON {
		r.Text(c.out)
	} else if err := report.JSON(c.out, r); err != nil {
		return err
	}
	if !complete {
		return failure.ErrIncomplete
	}
	return nil
}
