// Package progress is how work on many documents reports how far it has come.
package progress

// Progress is told how many documents were read. The zero value shows nothing.
type Progress struct {
	add  func(n int)
	lag  func(seconds int64)
	done func()
}

// New returns a Progress that calls the functions.
func New(add func(n int), lag func(seconds int64), done func()) *Progress {
	return &Progress{add, lag, done}
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
