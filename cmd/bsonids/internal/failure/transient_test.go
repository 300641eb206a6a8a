package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// The codes are those of src/mongo/base/error_codes.yml of MongoDB.
func TestTransient(t *testing.T) {
	code := func(n int) error {
		return mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: n}}}}
	}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"NotWritablePrimary", mongo.CommandError{Code: 10107}, true},
		{"PrimarySteppedDown, of a document", code(189), true},
		{"ShutdownInProgress", mongo.CommandError{Code: 91}, true},
		{"network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"deadline", fmt.Errorf("a batch: %w", context.DeadlineExceeded), true},
		{"WriteConflict", code(112), true},
		{"CursorNotFound", mongo.CommandError{Code: 43}, true},
		{"IngressRequestRateLimitExceeded", mongo.CommandError{Code: 462}, true},
		{"overload", mongo.CommandError{Code: 1, Labels: []string{"SystemOverloadedError"}}, true},
		{"interrupt", context.Canceled, false},
		{"interrupt and network", errors.Join(context.Canceled, mongo.CommandError{Labels: []string{"NetworkError"}}), false},
		{"Unauthorized", mongo.CommandError{Code: 13}, false},
		{"OutOfDiskSpace", code(14031), false},
		{"UserWritesBlocked", code(371), false},
		{"DuplicateKey", code(11000), false},
		{"usage", Usagef("wrong"), false},
		{"explained", &Error{Kind: Unreachable}, true},
		{"other", errors.New("other"), false},
	} {
		if got := Transient(tt.err); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
