// Package progress is how work on many documents reports how far it has come.
package progress

// Progress is told how many documents were read.
type Progress interface {
	Add(documents int)
	Done() // ends the display; it may be called more than once
}

// None is a [Progress] that shows nothing.
type None struct{}

// Add does nothing.
func (None) Add(int) {}

// Done does nothing.
func (None) Done() {}
