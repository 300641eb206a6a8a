package failure

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Transient reports whether an operation that ended with err may succeed if it is tried again: the
// server was lost, has no primary, or is overloaded. An interrupt by the user is not transient.
func Transient(err error) bool {
	var e *Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, mongo.ErrClientDisconnected):
		return false
	case errors.As(err, &e):
		return e.Kind == Unreachable
	case Explain(err, "").Kind == Unreachable:
		return true
	}
	var se mongo.ServerError
	return Means(err, Busy) || errors.As(err, &se) && se.HasErrorLabel("SystemOverloadedError")
}
