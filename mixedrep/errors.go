package mixedrep

import "fmt"

// UncoveredError reports a UUID at a place where it cannot be matched in two representations.
// Nothing was sent. Errors of the driver may wrap it; it answers to errors.As.
type UncoveredError struct {
	// Path is the path of the place: the field names and operators, joined by dots.
	Path string
	// Reason says what the place is, and what to do.
	Reason string
}

// Error names the path and the reason. It does not contain the UUID.
func (e *UncoveredError) Error() string {
	return fmt.Sprintf("mixedrep: cannot match a UUID in two representations at %s: %s", e.Path, e.Reason)
}
