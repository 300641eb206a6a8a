package terminal

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar is a progress bar. An error in drawing it does not stop the work.
type Bar struct{ bar *progressbar.ProgressBar }

// NewBar starts a progress bar on w, a terminal. total is the number of documents, or -1 if it is
// not known. what is the text next to the bar.
func NewBar(w io.Writer, total int64, what string) Bar {
	return Bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(Cell(what)),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("documents"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// Add adds documents.
func (b Bar) Add(documents int) { _ = b.bar.Add(documents) }

// Done clears the bar.
func (b Bar) Done() { _ = b.bar.Finish() }
