package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
)

// NewBar starts a progress bar on w, a terminal. total is the number of documents, or -1 if it is
// not known. what is the text next to the bar.
func NewBar(w io.Writer, total int64, what string) *progress.Progress {
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
	return progress.New(func(n int) { _ = bar.Add(n) }, lag, func() { _ = bar.Finish() })
}
