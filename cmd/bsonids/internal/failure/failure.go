// Package failure describes errors of commands: their cause, one sentence for the user, and the
// exit code.
package failure

import (
	"errors"
	"fmt"
)

// Kind is the cause of an error.
type Kind int

const (
	// Failed is any other error.
	Failed Kind = iota
	// Usage is an error in what the user specified.
	Usage
	// Unreachable is a server that did not answer, or whose connection was lost.
	Unreachable
	// Denied is a server that rejected the command: wrong credentials or a missing privilege.
	Denied
	// Interrupted is an interrupt by the user.
	Interrupted
	// Held is a collection that other operations hold. The same may succeed later.
	Held
)

// The exit codes, as docs/command.md lists them.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitIncomplete  = 3 // documents were skipped, a proof found differences, or scan found what must not be there
	ExitUnreachable = 4
	ExitDenied      = 5
	ExitInterrupted = 130
)

// ExitCode returns the exit code of a command that ends with an error of kind k.
func (k Kind) ExitCode() int {
	return [...]int{Failed: ExitFailed, Usage: ExitUsage, Unreachable: ExitUnreachable, Denied: ExitDenied, Interrupted: ExitInterrupted,
		Held: ExitFailed}[k]
}

// ErrIncomplete is the error of a command that did its work, and found and reported something that
// needs attention.
var ErrIncomplete = errors.New("incomplete")

// Error describes an error to the user in one sentence. It does not contain credentials.
type Error struct {
	Kind Kind
	Text string
	Err  error // the error behind the sentence
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the underlying error. Its text may contain credentials.
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error of kind Usage.
func Usagef(format string, args ...any) *Error {
	return &Error{Kind: Usage, Text: fmt.Sprintf(format, args...)}
}

// CollectionError is the error of one of several collections.
type CollectionError struct {
	Collection string
	Err        error
}

func (e *CollectionError) Error() string { return fmt.Sprintf("%q: %v", e.Collection, e.Err) }

// Unwrap returns the error of the work.
func (e *CollectionError) Unwrap() error { return e.Err }
