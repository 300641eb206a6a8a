package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows how many documents a command has read. The zero value shows nothing.
type Progress struct {
	add  func(n int)
	lag  func(seconds int64)
	done func()
}

// NewProgress returns a Progress that calls the functions.
func NewProgress(add func(n int), lag func(seconds int64), done func()) *Progress {
	return &Progress{add, lag, done}
}

// NewBar starts a progress bar on w, a terminal. total is the number of documents, or -1 if it is
// not known. what is the text next to the bar.
func NewBar(w io.Writer, total int64, what string) *Progress {
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(Cell(what)),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("documents"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	// An error in drawing the bar must not stop the work.
	lag := func(seconds int64) {
		bar.Describe(fmt.Sprintf("%s, %d s behind", Cell(what), seconds))
		_ = bar.RenderBlank()
	}
	return NewProgress(func(n int) { _ = bar.Add(n) }, lag, func() { _ = bar.Finish() })
}

// Add adds n documents.
func (p *Progress) Add(n int) {
	if p.add != nil {
		p.add(n)
	}
}

// Lag shows how many seconds a copy is behind its source.
func (p *Progress) Lag(seconds int64) {
	if p.lag != nil {
		p.lag(seconds)
	}
}

// Done ends the display.
func (p *Progress) Done() {
	if p.done != nil {
		p.done()
	}
}
