// Package progress is how work on many documents reports how far it has come.
package progress

// Progress is told how many documents were read.
type Progress interface {
	Add(documents int)
	Lag(seconds int64) // how far a copy is behind its source
	Done()             // ends the display; it may be called more than once
}

// None is a [Progress] that shows nothing.
type None struct{}

// Add does nothing.
func (None) Add(int) {}

// Lag does nothing.
func (None) Lag(int64) {}

// Done does nothing.
func (None) Done() {}
