// Package timerange holds the error that the packages of this module share for an instant that a
// format cannot hold.
package timerange

import "errors"

// Err is the error for an instant or a timestamp outside the range of a format. Each package
// exports it as ErrTimeRange and wraps it behind its own name: fmt.Errorf("uuidgen: %w: …", Err).
// [errors.Is] thus matches across packages.
var Err = errors.New("time out of range")
