package terminal

// Progress is how work on many documents tells how far it has come. It is told how many documents were read.
type Progress interface {
	Add(documents int)
	Done() // ends the display; it may be called more than once
}

// NoProgress is a [Progress] that shows nothing.
type NoProgress struct{}

// Add does nothing.
func (NoProgress) Add(int) {}

// Done does nothing.
func (NoProgress) Done() {}
