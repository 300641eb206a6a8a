package files

import "fmt"

// Error is an error of a file that a migration has made, at Path.
type Error struct {
	What string // such as "the undo log"
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.What, e.Path, e.Err) }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
