package failure

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// busy holds the error codes of a server that is overloaded, or that gave up an operation which may
// succeed later: LockTimeout, CursorNotFound, WriteConflict, QueryPlanKilled, CursorKilled,
// SnapshotUnavailable, TemporarilyUnavailable, IngressRequestRateLimitExceeded and Interrupted. The
// codes are those of src/mongo/base/error_codes.yml of MongoDB.
var busy = []int{24, 43, 112, 175, 237, 246, 365, 462, 11601}

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
	return errors.As(err, &se) && (slices.ContainsFunc(busy, se.HasErrorCode) || se.HasErrorLabel("SystemOverloadedError"))
}
