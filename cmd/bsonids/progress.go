package main

import (
	"fmt"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on stderr where that is a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// progress starts a bar of total documents; -1 where that isn't known.
func (a *app) progress(total int64, what string) *progress {
	if a.quiet || !terminal(a.err) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.err),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("documents"),
		progressbar.OptionThrottle(100_000_000),
		progressbar.OptionClearOnFinish(),
	)}
}

func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // a bar that can't be drawn is no reason to stop
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// warn writes a line to stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.err, "bsonids: %s\n", oneLine(fmt.Sprintf(format, args...)))
}
